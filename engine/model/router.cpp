// SPDX-License-Identifier: Apache-2.0
#include "engine/model/router.h"

#include <algorithm>
#include <cmath>
#include <vector>

namespace colibri {

namespace {

float sigmoid(float x) {
    return 1.0f / (1.0f + std::exp(-x));
}

// Excludes the experts of all but the best groups.
void keepBestGroups(const RoutingSpec& spec, float* scores, int experts) {
    const auto size = experts / spec.groups;
    std::vector<float> best(size_t(spec.groups));
    for (int64_t g = 0; g < spec.groups; ++g) {
        const float* of = scores + g * size;
        float first = -INFINITY, second = -INFINITY;
        for (int64_t i = 0; i < size; ++i) {
            second = std::max(second, std::min(first, of[i]));
            first = std::max(first, of[i]);
        }
        best[size_t(g)] = spec.groupScore == GroupScore::Max ? first : first + second;
    }
    std::vector<int> kept(size_t(spec.groupTopK));
    colibri::topK(best.data(), int(spec.groups), int(spec.groupTopK), kept.data());
    for (int64_t g = 0; g < spec.groups; ++g) {
        if (std::find(kept.begin(), kept.end(), int(g)) != kept.end()) continue;
        std::fill(scores + g * size, scores + (g + 1) * size, -INFINITY);
    }
}

// The weight of `best` in a softmax over the logits whose distance to it, relative to the larger
// magnitude, is at most 2 * jitter. Logits of minus infinity are excluded.
float sparseWeight(const float* logits, int experts, int best, double jitter) {
    const float top = logits[best];
    double sum = 0;
    for (int e = 0; e < experts; ++e) {
        if (!std::isfinite(logits[e])) continue;
        const float factor = std::max(std::abs(logits[e]), top);
        if ((top - logits[e]) / factor > float(2 * jitter)) continue;
        sum += std::exp(double(logits[e] - top));
    }
    return float(1 / sum);
}

}  // namespace

// Turns logits into scores for the choice, and scratch into weights.
void Router::score(float* logits, const float* bias, float* scratch) const {
    // Weights from logits need a copy, because the scores replace the logits.
    std::copy(logits, logits + m_experts, scratch);
    float* scores = logits;
    if (m_spec.scoreFn == ScoreFn::Softmax) {
        m_kernels->softmax(scores, m_experts);
    } else if (m_spec.scoreFn == ScoreFn::Sigmoid) {
        for (int e = 0; e < m_experts; ++e) scores[e] = sigmoid(scores[e]);
    }
    switch (m_spec.weightSource) {
        case WeightSource::Score:
            std::copy(scores, scores + m_experts, scratch);
            break;
        case WeightSource::LogitSoftmax:
        case WeightSource::SparseMixer:
            break;
        case WeightSource::SigmoidLogit:
            for (int e = 0; e < m_experts; ++e) scratch[e] = sigmoid(scratch[e]);
            break;
    }
    if (m_spec.selectBias && bias) {
        for (int e = 0; e < m_experts; ++e) scores[e] += bias[e];
    }
    if (m_spec.groups > 1) keepBestGroups(m_spec, scores, m_experts);
}

// Returns the sum of the weights.
float Router::weightsOf(const float* scratch, const int* experts, float* weights) const {
    for (int i = 0; i < m_topK; ++i) weights[i] = scratch[experts[i]];
    if (m_spec.weightSource == WeightSource::LogitSoftmax) m_kernels->softmax(weights, m_topK);
    if (m_spec.weightSource == WeightSource::SparseMixer) {
        // The weight of each expert is computed without the experts before it.
        std::vector<float> left(scratch, scratch + m_experts);
        for (int i = 0; i < m_topK; ++i) {
            weights[i] = sparseWeight(left.data(), m_experts, experts[i], m_spec.sparseJitter);
            left[size_t(experts[i])] = -INFINITY;
        }
    }
    if (m_spec.renorm) {
        float sum = 0;
        for (int i = 0; i < m_topK; ++i) sum += weights[i];
        const float divisor = sum + float(m_spec.renormEps);
        if (divisor > 0) {
            for (int i = 0; i < m_topK; ++i) weights[i] /= divisor;
        }
    }
    if (m_spec.scale != 1) {
        for (int i = 0; i < m_topK; ++i) weights[i] *= float(m_spec.scale);
    }
    float sum = 0;
    for (int i = 0; i < m_topK; ++i) sum += weights[i];
    return sum;
}

void Router::select(float* logits, const float* bias, float* scratch, int* experts,
                    float* weights) const {
    score(logits, bias, scratch);
    colibri::topK(logits, m_experts, m_topK, experts);
    weightsOf(scratch, experts, weights);
}

void Router::weigh(float* logits, const float* bias, float* scratch, const int* experts, int* own,
                   float* weights) const {
    score(logits, bias, scratch);
    colibri::topK(logits, m_experts, m_topK, own);
    const float wanted = weightsOf(scratch, own, weights);
    const float sum = weightsOf(scratch, experts, weights);
    for (int i = 0; i < m_topK; ++i) {
        weights[i] = sum > 0 ? weights[i] * (wanted / sum) : wanted / float(m_topK);
    }
}

}  // namespace colibri
