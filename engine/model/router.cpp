// SPDX-License-Identifier: Apache-2.0
#include "engine/model/router.h"

#include <algorithm>
#include <cmath>

namespace colibri {

namespace {

float sigmoid(float x) {
    return 1.0f / (1.0f + std::exp(-x));
}

}  // namespace

// logits -> scores to choose by; scratch -> what the chosen are weighted by.
void Router::score(float* logits, const float* bias, float* scratch) const {
    // Weights taken from logits need them after the scores have replaced them.
    std::copy(logits, logits + m_experts, scratch);
    float* scores = logits;
    if (m_spec.scoreFn == ScoreFn::Softmax) {
        m_kernels->softmax(scores, m_experts);
    } else {
        for (int e = 0; e < m_experts; ++e) scores[e] = sigmoid(scores[e]);
    }
    switch (m_spec.weightSource) {
        case WeightSource::Score:
            std::copy(scores, scores + m_experts, scratch);
            break;
        case WeightSource::LogitSoftmax:
            break;
        case WeightSource::SigmoidLogit:
            for (int e = 0; e < m_experts; ++e) scratch[e] = sigmoid(scratch[e]);
            break;
    }
    if (m_spec.selectBias && bias) {
        for (int e = 0; e < m_experts; ++e) scores[e] += bias[e];
    }
}

// Returns their sum.
float Router::weightsOf(const float* scratch, const int* experts, float* weights) const {
    for (int i = 0; i < m_topK; ++i) weights[i] = scratch[experts[i]];
    if (m_spec.weightSource == WeightSource::LogitSoftmax) m_kernels->softmax(weights, m_topK);
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
