// SPDX-License-Identifier: Apache-2.0
// Computes experts and weights from router logits, following a model's RoutingSpec.
#pragma once

#include "engine/model/config.h"
#include "kernels/kernels.h"

namespace colibri {

class Router {
public:
    Router(const RoutingSpec& spec, int experts, int topK, const KernelSet& kernels)
        : m_spec(spec), m_experts(experts), m_topK(topK), m_kernels(&kernels) {}

    // Overwrites logits (E); scratch (E). Writes the k chosen experts, best first, and the weights
    // of their outputs. `bias` (E) takes part in the choice only; may be nullptr.
    void select(float* logits, const float* bias, float* scratch, int* experts,
                float* weights) const;

    // The weights of experts that a router table chose: applies the model's rule to them, then
    // scales them so that their sum equals that of the model's own choice, which it returns in
    // `own` (k). `own` must not be `experts`; logits, bias and scratch as above.
    void weigh(float* logits, const float* bias, float* scratch, const int* experts, int* own,
               float* weights) const;

    int experts() const { return m_experts; }
    int topK() const { return m_topK; }

private:
    void score(float* logits, const float* bias, float* scratch) const;
    float weightsOf(const float* scratch, const int* experts, float* weights) const;

    RoutingSpec m_spec;
    int m_experts, m_topK;
    const KernelSet* m_kernels;
};

}  // namespace colibri
