// SPDX-License-Identifier: Apache-2.0
#include "engine/runtime/sampler.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "engine/model/config.h"

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

void Sampler::addTo(int32_t id, float bias) {
    if (id >= 0 && size_t(id) < m_logits.size()) m_logits[size_t(id)] += bias;
}

void Sampler::penalise() {
    for (const auto& [id, bias] : m_sampling.logitBias) addTo(id, bias);
    const float penalty = m_sampling.repetitionPenalty;
    for (const int32_t id : m_seen) {
        if (id < 0 || size_t(id) >= m_logits.size()) continue;
        float& x = m_logits[size_t(id)];
        x = x < 0 ? x * penalty : x / penalty;
    }
    for (const auto& [id, count] : m_generated) {
        addTo(id, -m_sampling.presencePenalty - m_sampling.frequencyPenalty * float(count));
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

// How far m_logits lie below the best one, over the temperature, into m_weights; what is not finite
// gets the least number there is. Whether any is finite.
bool Sampler::scale() {
    m_weights.resize(m_logits.size());
    float best = -kMost;
    bool any = false;
    for (const float x : m_logits) {
        const bool finite = std::fabs(x) <= kMost;
        any |= finite;
        best = finite && x > best ? x : best;
    }
    const float temperature = m_sampling.temperature;
    for (size_t i = 0; i < m_logits.size(); ++i) {
        const float x = m_logits[i];
        const float below = (x - best) / temperature;
        m_weights[i] = std::fabs(x) <= kMost && below >= -kMost ? below : -kMost;
    }
    return any;
}

bool Sampler::better(const Ranked& a, const Ranked& b) {
    return a.weight != b.weight ? a.weight > b.weight : a.id < b.id;
}

// Tokens of at least this weight into m_ranked.
void Sampler::rank(float least) {
    m_ranked.clear();
    for (size_t i = 0; i < m_weights.size(); ++i) {
        if (m_weights[i] >= least) m_ranked.push_back({m_weights[i], int32_t(i)});
    }
}

// Sets the weight of all tokens worse than `last` to `dropped`.
void Sampler::keepTo(const Ranked& last, float dropped) {
    for (size_t i = 0; i < m_weights.size(); ++i) {
        if (better(last, {m_weights[i], int32_t(i)})) m_weights[i] = dropped;
    }
}

// Before the softmax.
void Sampler::keepTopK() {
    rank(-kMost);
    if (m_ranked.size() <= size_t(m_sampling.topK)) return;
    const auto last = m_ranked.begin() + (m_sampling.topK - 1);
    std::nth_element(m_ranked.begin(), last, m_ranked.end(), better);
    keepTo(*last, -kMost);
}

double Sampler::total() const {
    double parts[8] = {};  // for the processor to add side by side
    for (size_t i = 0; i < m_weights.size(); ++i) parts[i % 8] += double(m_weights[i]);
    return std::accumulate(std::begin(parts), std::end(parts), 0.0);
}

// The smallest leading set whose share reaches topP; at least one. Sorting a vocabulary would take
// longer than many a model: the end of the set is searched for by halves.
void Sampler::keepTopP() {
    const double all = total(), enough = double(m_sampling.topP) * all;
    // Those so light that all of them together are not needed stay out.
    rank(float((all - enough) / double(m_weights.size()) / 2));
    auto first = m_ranked.begin(), last = m_ranked.end();
    double before = 0;  // weight of what is better than *first
    while (last - first > 1) {
        const auto middle = first + (last - first) / 2;
        std::nth_element(first, middle, last, better);
        double half = 0;
        for (auto r = first; r != middle; ++r) half += double(r->weight);
        if (before + half >= enough) {
            last = middle;
        } else {
            before += half;
            first = middle;
        }
    }
    keepTo(*first, 0);
}

void Sampler::keepMinP() {
    const float least = m_sampling.minP * *std::max_element(m_weights.begin(), m_weights.end());
    for (float& w : m_weights) w = w < least ? 0 : w;
}

// One draw from what temperature, top-k, top-p and min-p leave.
std::optional<int32_t> Sampler::draw() {
    if (!scale()) return std::nullopt;
    if (m_sampling.topK > 0) keepTopK();
    m_kernels->softmax(m_weights.data(), int64_t(m_weights.size()));
    if (m_sampling.topP < 1) keepTopP();
    if (m_sampling.minP > 0) keepMinP();
    double left = uniformDraw(m_sampling.seed, m_index) * total();
    std::optional<int32_t> chosen;
    for (size_t i = 0; i < m_weights.size(); ++i) {
        if (m_weights[i] <= 0) continue;
        chosen = int32_t(i);  // the last one, should rounding leave a rest
        left -= double(m_weights[i]);
        if (left < 0) break;
    }
    return chosen;
}

std::optional<int32_t> Sampler::next(std::span<const float> logits, std::optional<int32_t> forced) {
    m_logits.assign(logits.begin(), logits.end());
    penalise();
    std::optional<int32_t> chosen = m_sampling.temperature <= 0 ? greedy() : draw();
    if (chosen && forced) chosen = forced;
    ++m_index;
    if (chosen && m_sampling.repetitionPenalty != 1) m_seen.insert(*chosen);
    if (chosen && counts()) ++m_generated[*chosen];
    return chosen;
}

Sampling chatSampling(const ModelConfig& model) {
    Sampling s;
    s.temperature = model.temperature >= 0 ? model.temperature : 0.7f;
    s.topP = model.topP > 0 ? model.topP : 0.95f;
    s.topK = std::max(0, model.topKSampling);
    s.seed = 42;
    return s;
}

}  // namespace colibri
