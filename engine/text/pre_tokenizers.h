// SPDX-License-Identifier: Apache-2.0
// The "pre_tokenizer" of tokenizer.json: splits a text into pieces that the model encodes one by
// one.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "engine/base/json_node.h"
#include "engine/base/status.h"

namespace colibri::text {

struct Piece {
    std::string text;
    int32_t id = -1;       // an added token's id; such a piece is never changed again
    bool atStart = false;  // the piece begins at the start of the input
};

// Immutable; any thread.
class PreTokenizer {
public:
    virtual ~PreTokenizer() = default;
    virtual void apply(std::vector<Piece>& pieces) const = 0;
};

// Null for a null node. Errors: BadInput; Unsupported with the type's name.
Result<std::unique_ptr<PreTokenizer>> makePreTokenizer(const JsonNode& node, int depth = 0);

}  // namespace colibri::text
