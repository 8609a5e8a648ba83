// SPDX-License-Identifier: Apache-2.0
#include "engine/run/sampler.h"

#include <algorithm>
#include <cmath>

namespace colibri {

double uniformDraw(uint64_t seed, uint64_t index) {
    uint64_t z = seed + (index + 1) * 0x9e3779b97f4a7c15ull;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ull;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebull;
    z ^= z >> 31;
    return double(z >> 11) * 0x1.0p-53;
}

Sampler::Sampler(const Sampling& sampling, std::span<const int32_t> prompt) : m_sampling(sampling) {
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

// The `count` best candidates in front, in order.
void Sampler::sortBest(size_t count) {
    const auto better = [](const Candidate& a, const Candidate& b) {
        return a.logit != b.logit ? a.logit > b.logit : a.id < b.id;
    };
    count = std::min(count, m_candidates.size());
    std::partial_sort(m_candidates.begin(), m_candidates.begin() + std::ptrdiff_t(count),
                      m_candidates.end(), better);
}

// One draw from what temperature, top-k, top-p and min-p leave.
std::optional<int32_t> Sampler::draw() {
    m_candidates.clear();
    for (size_t i = 0; i < m_logits.size(); ++i) {
        if (std::isfinite(m_logits[i])) {
            m_candidates.push_back({m_logits[i] / m_sampling.temperature, int32_t(i)});
        }
    }
    if (m_candidates.empty()) return std::nullopt;
    float best = m_candidates[0].logit;
    for (const Candidate& c : m_candidates) best = std::max(best, c.logit);
    if (m_sampling.topK > 0 && size_t(m_sampling.topK) < m_candidates.size()) {
        sortBest(size_t(m_sampling.topK));
        m_candidates.resize(size_t(m_sampling.topK));
    } else if (m_sampling.topP < 1) {
        sortBest(m_candidates.size());
    }
    m_weights.resize(m_candidates.size());
    double total = 0;
    for (size_t i = 0; i < m_weights.size(); ++i) {
        m_weights[i] = std::exp(double(m_candidates[i].logit) - double(best));
        total += m_weights[i];
    }
    if (m_sampling.topP < 1) {
        // The smallest leading set whose share reaches topP; at least one.
        double sum = 0;
        size_t kept = 0;
        while (kept < m_weights.size() && (kept == 0 || sum < double(m_sampling.topP) * total)) {
            sum += m_weights[kept++];
        }
        m_weights.resize(kept);
        total = sum;
    }
    if (m_sampling.minP > 0) {
        total = 0;  // weights are relative to the best one's, which is 1
        for (double& w : m_weights) {
            if (w < double(m_sampling.minP)) w = 0;
            total += w;
        }
    }
    double left = uniformDraw(m_sampling.seed, m_index) * total;
    std::optional<int32_t> chosen;
    for (size_t i = 0; i < m_weights.size(); ++i) {
        if (m_weights[i] <= 0) continue;
        chosen = m_candidates[i].id;  // the last one, should rounding leave a rest
        left -= m_weights[i];
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
