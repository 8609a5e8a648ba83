// SPDX-License-Identifier: Apache-2.0
// Log-probabilities of one position, for requests that want them.
#pragma once

#include <span>
#include <vector>

#include "engine/runtime/request.h"

namespace colibri {

// Log-softmax of `logits` (vocab) at `token`, then at the `count` likeliest ids: by falling value,
// equal ones by rising id. Logits that are not finite have no share: -inf.
std::vector<Logprob> logprobsOf(std::span<const float> logits, int32_t token, int count);

}  // namespace colibri
