// SPDX-License-Identifier: Apache-2.0
#include "engine/text/token_model.h"

#include "engine/text/bpe_model.h"
#include "engine/text/unigram_model.h"

namespace colibri::text {

std::string byteToken(uint8_t byte) {
    constexpr char digits[] = "0123456789ABCDEF";
    return {'<', '0', 'x', digits[byte >> 4], digits[byte & 15], '>'};
}

Result<std::unique_ptr<TokenModel>> makeTokenModel(const JsonNode& node) {
    if (!node.json().is_object()) return node.bad("an object is expected here");
    const bool guess = !node.has("type") && node.has("merges");  // older files have no "type"
    const Result<std::string> type =
        guess ? Result<std::string>(std::string("BPE")) : node.text("type");
    if (!type) return type.status();
    struct Kind {
        std::string_view type;
        Result<std::unique_ptr<TokenModel>> (*make)(const JsonNode&);
    };
    constexpr Kind kinds[] = {{"BPE", &BpeModel::make}, {"Unigram", &UnigramModel::make}};
    for (const Kind& kind : kinds) {
        if (kind.type == *type) return kind.make(node);
    }
    return node.unsupported("type \"" + *type + "\"");
}

}  // namespace colibri::text
