// SPDX-License-Identifier: Apache-2.0
// Picks the next token from logits. The order is: logit bias, repetition, presence and frequency
// penalty; then greedy if the temperature is 0, else temperature, top-k, top-p, min-p, one draw.
//
// The draw of token i (0-based among the generated ones) of a request with seed s is u / 2^53 with
// u the upper 53 bits of splitmix64's output function applied to s + (i + 1) * 0x9e3779b97f4a7c15:
// no hidden state, so the same seed gives the same text regardless of other requests.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "engine/runtime/request.h"
#include "kernels/kernels.h"

namespace colibri {

// In [0, 1).
double uniformDraw(uint64_t seed, uint64_t index);

class Sampler {
public:
    // `prompt` counts for the repetition penalty. `kernels` must outlive this.
    Sampler(const Sampling& sampling, std::span<const int32_t> prompt,
            const KernelSet& kernels = bestKernels());

    // The next token; none if no logit is finite. Of equal logits the lowest id wins. `forced` is
    // returned instead of the token that the logits give, for the same work.
    std::optional<int32_t> next(std::span<const float> logits, std::optional<int32_t> forced = {});

private:
    struct Ranked {
        float weight;
        int32_t id;
    };

    bool counts() const {
        return m_sampling.presencePenalty != 0 || m_sampling.frequencyPenalty != 0;
    }
    void addTo(int32_t id, float bias);
    void penalise();
    std::optional<int32_t> greedy() const;
    std::optional<int32_t> draw();
    bool scale();
    void keepTopK();
    void keepTopP();
    void keepMinP();
    static bool better(const Ranked& a, const Ranked& b);
    void rank(float least);
    void keepTo(const Ranked& last, float dropped);
    double total() const;

    Sampling m_sampling;
    const KernelSet* m_kernels;
    std::unordered_set<int32_t> m_seen;                 // tokens of the prompt and the reply
    std::unordered_map<int32_t, uint32_t> m_generated;  // number of occurrences
    uint64_t m_index = 0;
    std::vector<float> m_logits, m_weights;
    std::vector<Ranked> m_ranked;
};

}  // namespace colibri
