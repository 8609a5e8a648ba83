// SPDX-License-Identifier: Apache-2.0
// The "decoder" of tokenizer.json: from tokens back to text.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "engine/base/json_node.h"
#include "engine/base/status.h"

namespace colibri::text {

struct DecodedToken {
    std::string text;
    bool added = false;  // an added token decodes to its own text, regardless of its characters
};

// Immutable; any thread. The output is raw bytes: incomplete characters stay as they are, while the
// reference implementation writes U+FFFD.
class Decoder {
public:
    virtual ~Decoder() = default;
    // `atStart`: the tokens begin the text, so rules for its first character apply.
    virtual void apply(std::vector<DecodedToken>& tokens, bool atStart) const = 0;
};

// Null for a null node. Errors: BadInput; Unsupported with the type's name.
Result<std::unique_ptr<Decoder>> makeDecoder(const JsonNode& node, int depth = 0);

}  // namespace colibri::text
