// SPDX-License-Identifier: Apache-2.0
// Byte-pair encoding: merges characters (or bytes) pair by pair, in the order of the merge list.
#pragma once

#include <array>
#include <functional>
#include <string>
#include <unordered_map>
#include <vector>

#include "engine/text/token_model.h"

namespace colibri::text {

struct StringHash {
    using is_transparent = void;
    size_t operator()(std::string_view text) const { return std::hash<std::string_view>()(text); }
};

class BpeModel : public TokenModel {
public:
    static Result<std::unique_ptr<TokenModel>> make(const JsonNode& node);

    void encode(std::string_view piece, std::vector<int32_t>& ids,
                const std::vector<bool>* barred) const override;
    std::optional<int32_t> tokenToId(std::string_view token) const override;
    const std::string* idToToken(int32_t id) const override;
    int32_t highestId() const override { return int32_t(m_tokens.size()) - 1; }
    size_t size() const override { return m_ids.size(); }

private:
    struct Merge {
        uint32_t rank;
        int32_t id;  // the merged token
    };
    // A symbol of the piece, in a doubly linked list over an array; -1 ends it.
    struct Symbol {
        int32_t id, previous, next;
        bool merged;
    };

    Status readVocabulary(const JsonNode& node);
    Status readMerges(const JsonNode& node);
    Status addMerge(const JsonNode& where, uint32_t rank, std::string_view left,
                    std::string_view right);
    void addSymbols(std::string_view piece, std::vector<Symbol>& symbols,
                    const std::vector<bool>* barred) const;
    bool addBytes(std::string_view character, std::vector<Symbol>& symbols) const;
    void mergeAll(std::vector<Symbol>& symbols, const std::vector<bool>* barred) const;
    const Merge* mergeOf(int32_t left, int32_t right, const std::vector<bool>* barred) const;

    std::unordered_map<std::string, int32_t, StringHash, std::equal_to<>> m_ids;
    std::vector<std::string> m_tokens;             // by id; empty if the id is not used
    std::vector<bool> m_used;                      // by id
    std::unordered_map<uint64_t, Merge> m_merges;  // left << 32 | right
    std::array<int32_t, 256> m_byteIds{};          // of <0x00> .. <0xFF>; -1: none
    // Prefix of symbols that do not begin a piece, suffix of the one that ends it.
    std::string m_prefix, m_suffix;
    int32_t m_unknown = -1;
    bool m_fuseUnknown = false, m_byteFallback = false, m_ignoreMerges = false;
};

}  // namespace colibri::text
