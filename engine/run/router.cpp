// SPDX-License-Identifier: Apache-2.0
#include "engine/run/router.h"

#include <algorithm>
#include <cmath>

namespace colibri {

namespace {

float sigmoid(float x) {
    return 1.0f / (1.0f + std::exp(-x));
}

}  // namespace

void Router::select(float* logits, const float* bias, float* scratch, int* experts,
                    float* weights) const {
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
    colibri::topK(scores, m_experts, m_topK, experts);
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
}

}  // namespace colibri
