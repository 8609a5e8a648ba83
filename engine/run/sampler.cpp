// SPDX-License-Identifier: Apache-2.0
#include "engine/run/sampler.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace colibri {

namespace {
constexpr float kMost = std::numeric_limits<float>::max();
}

double uniformDraw(uint64_t seed, uint64_t index) {
    uint64_t z = seed + (index + 1) * 0x9e3779b97f4a7c15ull;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ull;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebull;
    z ^= z >> 31;
    return double(z >> 11) * 0x1.0p-53;
}

Sampler::Sampler(const Sampling& sampling, std::span<const int32_t> prompt,
                 const KernelSet& kernels)
    : m_sampling(sampling), m_kernels(&kernels) {
    if (sampling.repetitionPenalty != 1) m_seen.insert(prompt.begin(), prompt.end());
}

void Sampler::penalise() {
    const float penalty = m_sampling.repetitionPenalty;
    if (penalty == 1) return;
    for (const int32_t id : m_seen) {
        if (id < 0 || size_t(id) >= m_logits.size()) continue;
        float& x = m_logits[size_t(id)];
        x = x < 0 ? x * penalty : x / penalty;
    }
}

std::optional<int32_t> Sampler::greedy() const {
    std::optional<int32_t> best;
    for (size_t i = 0; i < m_logits.size(); ++i) {
        if (!std::isfinite(m_logits[i])) continue;
        if (!best || m_logits[i] > m_logits[size_t(*best)]) best = int32_t(i);
    }
    return best;
}

bool Sampler::better(const Candidate& a, const Candidate& b) {
    return a.logit != b.logit ? a.logit > b.logit : a.id < b.id;
}

// Leaves the candidates that are not worse than one of them, in their order.
void Sampler::keepTo(const Candidate& last) {
    std::erase_if(m_candidates, [&](const Candidate& c) { return better(last, c); });
}

void Sampler::keepTopK() {
    m_ranked = m_candidates;
    const auto last = m_ranked.begin() + (m_sampling.topK - 1);
    std::nth_element(m_ranked.begin(), last, m_ranked.end(), better);
    keepTo(*last);
}

// Softmax over the candidates.
void Sampler::weigh() {
    m_weights.resize(m_candidates.size());
    for (size_t i = 0; i < m_weights.size(); ++i) m_weights[i] = m_candidates[i].logit;
    m_kernels->softmax(m_weights.data(), int64_t(m_weights.size()));
    for (size_t i = 0; i < m_weights.size(); ++i) m_candidates[i].weight = m_weights[i];
}

double Sampler::total() const {
    double sum = 0;
    for (const Candidate& c : m_candidates) sum += double(c.weight);
    return sum;
}

// The smallest leading set whose share reaches topP; at least one. Sorting a vocabulary would take
// longer than many a model: the end of the set is searched for by halves.
void Sampler::keepTopP() {
    const double all = total(), enough = double(m_sampling.topP) * all;
    // So light that all of them together are not needed.
    const double light = (all - enough) / double(m_candidates.size()) / 2;
    m_ranked.clear();
    for (const Candidate& c : m_candidates) {
        if (double(c.weight) >= light) m_ranked.push_back(c);
    }
    auto first = m_ranked.begin(), last = m_ranked.end();
    double before = 0;  // weight of what is better than *first
    while (last - first > 1) {
        const auto middle = first + (last - first) / 2;
        std::nth_element(first, middle, last, better);
        double half = 0;
        for (auto c = first; c != middle; ++c) half += double(c->weight);
        if (before + half >= enough) {
            last = middle;
        } else {
            before += half;
            first = middle;
        }
    }
    keepTo(*first);
}

// One draw from what temperature, top-k, top-p and min-p leave.
std::optional<int32_t> Sampler::draw() {
    m_candidates.clear();
    for (size_t i = 0; i < m_logits.size(); ++i) {
        if (std::isfinite(m_logits[i])) {
            const float scaled = m_logits[i] / m_sampling.temperature;
            m_candidates.push_back({std::clamp(scaled, -kMost, kMost), 0, int32_t(i)});
        }
    }
    if (m_candidates.empty()) return std::nullopt;
    if (m_sampling.topK > 0 && size_t(m_sampling.topK) < m_candidates.size()) keepTopK();
    weigh();
    if (m_sampling.topP < 1) keepTopP();
    if (m_sampling.minP > 0) {
        float best = 0;
        for (const Candidate& c : m_candidates) best = std::max(best, c.weight);
        std::erase_if(m_candidates,
                      [&](const Candidate& c) { return c.weight < m_sampling.minP * best; });
    }
    double left = uniformDraw(m_sampling.seed, m_index) * total();
    std::optional<int32_t> chosen;
    for (const Candidate& c : m_candidates) {
        if (c.weight <= 0) continue;
        chosen = c.id;  // the last one, should rounding leave a rest
        left -= double(c.weight);
        if (left < 0) break;
    }
    return chosen;
}

std::optional<int32_t> Sampler::next(std::span<const float> logits) {
    m_logits.assign(logits.begin(), logits.end());
    penalise();
    const std::optional<int32_t> chosen = m_sampling.temperature <= 0 ? greedy() : draw();
    ++m_index;
    if (chosen && m_sampling.repetitionPenalty != 1) m_seen.insert(*chosen);
    return chosen;
}

}  // namespace colibri
