// SPDX-License-Identifier: Apache-2.0
// The loss caused by a weight type or an approximate router: the perplexity of a model on a text,
// and the difference between the predictions of two models for the same text.
//
// The text is split into windows of `window` tokens that overlap by half. Only the second half of
// every window except the first is scored, so that each token is scored once and has at least half
// a window of context; the first token of the text is context only.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "engine/base/progress.h"
#include "engine/base/status.h"

namespace colibri {

class Engine;

struct PerplexityOptions {
    int64_t window = 512;   // tokens, 2..the engine's context
    int64_t maxTokens = 0;  // maximum tokens of the text; 0: all
};

struct Perplexity {
    int64_t tokens = 0;         // scored
    double meanNll = 0;         // nats per token
    double standardError = 0;   // of meanNll, assuming independent tokens
    double perplexity() const;  // exp(meanNll)
};

// Errors: InvalidArgument for fewer than two tokens, ids out of range or a window
// larger than the context; Cancelled; and the errors of a forward pass.
Result<Perplexity> measurePerplexity(Engine& engine, const std::vector<int32_t>& ids,
                                     const PerplexityOptions& options, const ProgressFn& progress,
                                     const CancelFlag* cancel);

struct Comparison {
    Perplexity a, b;
    double meanKl = 0, p99Kl = 0, maxKl = 0;  // KL(a || b) of the next token, nats
    double top1Agreement = 0;                 // share of positions with the same most likely token
};

// Both models process the same ids; their vocabularies must have the same size.
Result<Comparison> compareModels(Engine& a, Engine& b, const std::vector<int32_t>& ids,
                                 const PerplexityOptions& options, const ProgressFn& progress,
                                 const CancelFlag* cancel);

}  // namespace colibri
