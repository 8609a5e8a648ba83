// SPDX-License-Identifier: Apache-2.0
// The "decoder" of tokenizer.json: from tokens back to text.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "engine/base/status.h"
#include "engine/text/json_reader.h"

namespace colibri::text {

struct DecodedToken {
    std::string text;
    bool added = false;  // an added token stands for its own text, whatever its characters
};

// Immutable; any thread. Bytes come out as bytes: what is no whole character stays so, where the
// reference puts U+FFFD.
class Decoder {
public:
    virtual ~Decoder() = default;
    // `atStart`: the tokens begin the text (what is done to its first character is done).
    virtual void apply(std::vector<DecodedToken>& tokens, bool atStart) const = 0;
};

// Null for a null node. Errors: BadInput; Unsupported with the type's name.
Result<std::unique_ptr<Decoder>> makeDecoder(const JsonNode& node, int depth = 0);

}  // namespace colibri::text
