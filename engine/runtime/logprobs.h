// SPDX-License-Identifier: Apache-2.0
// Log-probabilities of one position, for requests with logprobs.
#pragma once

#include <span>
#include <vector>

#include "engine/runtime/request.h"

namespace colibri {

// Log-softmax of `logits` (vocab) at `token`, then at the `count` most likely ids in decreasing
// order, ties by ascending id. Logits that are not finite are left out of the sum and give -inf.
std::vector<Logprob> logprobsOf(std::span<const float> logits, int32_t token, int count);

}  // namespace colibri
