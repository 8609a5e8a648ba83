// SPDX-License-Identifier: Apache-2.0
// The "model" of tokenizer.json: encodes a piece of text as ids; holds the vocabulary.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "engine/base/json_node.h"
#include "engine/base/status.h"

namespace colibri::text {

// Larger ids are rejected: no vocabulary needs them, and the highest id determines table sizes.
inline constexpr int32_t kHighestId = (1 << 22) - 1;

// Immutable; any thread.
class TokenModel {
public:
    virtual ~TokenModel() = default;
    // Appends the ids of one piece. Characters outside the vocabulary give the unknown token, or
    // nothing if there is none. Tokens in `barred` (by id; null: none) are never produced, even if
    // the text matches. REQUIRES: valid UTF-8.
    virtual void encode(std::string_view piece, std::vector<int32_t>& ids,
                        const std::vector<bool>* barred) const = 0;
    virtual std::optional<int32_t> tokenToId(std::string_view token) const = 0;
    virtual const std::string* idToToken(int32_t id) const = 0;  // null: no such token
    virtual int32_t highestId() const = 0;                       // -1 if empty
    virtual size_t size() const = 0;                             // number of tokens
};

// The token of one byte: <0x00> .. <0xFF>.
std::string byteToken(uint8_t byte);

inline bool isBarred(const std::vector<bool>* barred, int32_t id) {
    return barred && size_t(id) < barred->size() && (*barred)[size_t(id)];
}

// Errors: BadInput; Unsupported with the type's name.
Result<std::unique_ptr<TokenModel>> makeTokenModel(const JsonNode& node);

}  // namespace colibri::text
