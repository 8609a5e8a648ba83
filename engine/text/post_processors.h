// SPDX-License-Identifier: Apache-2.0
// The "post_processor" of tokenizer.json, for a single text: ids added before and after it.
#pragma once

#include <cstdint>
#include <vector>

#include "engine/base/json_node.h"
#include "engine/base/status.h"

namespace colibri::text {

struct IdFrame {
    std::vector<int32_t> before, after;
};

// A null node gives an empty frame. Errors: BadInput; Unsupported with the type's name.
Result<IdFrame> readPostProcessor(const JsonNode& node, int depth = 0);

}  // namespace colibri::text
