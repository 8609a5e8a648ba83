// SPDX-License-Identifier: Apache-2.0
// Unigram: splits a piece into the tokens with the highest sum of scores.
#pragma once

#include <array>
#include <string>
#include <unordered_map>
#include <vector>

#include "engine/text/token_model.h"

namespace colibri::text {

class UnigramModel : public TokenModel {
public:
    static Result<std::unique_ptr<TokenModel>> make(const JsonNode& node);

    void encode(std::string_view piece, std::vector<int32_t>& ids,
                const std::vector<bool>* barred) const override;
    std::optional<int32_t> tokenToId(std::string_view token) const override;
    const std::string* idToToken(int32_t id) const override;
    int32_t highestId() const override { return int32_t(m_tokens.size()) - 1; }
    size_t size() const override { return m_tokens.size(); }

private:
    // The best path to an offset in the piece: the token that ends there and its start.
    struct Step {
        double score = 0;  // sum up to here
        int32_t id = -1, begin = -1;
    };

    Status readVocabulary(const JsonNode& node);
    void addToTrie(std::string_view token, int32_t id);
    int32_t child(int32_t state, unsigned char byte) const;  // -1: no token continues with it
    std::vector<Step> bestSteps(std::string_view piece, const std::vector<bool>* barred) const;
    void addUnknown(std::string_view text, std::vector<int32_t>& ids,
                    const std::vector<bool>* barred) const;

    std::vector<std::string> m_tokens;  // by id
    std::vector<double> m_scores;       // logarithms of probabilities, by id
    // The vocabulary as a tree over bytes.
    std::array<int32_t, 256> m_firstBytes{};
    std::unordered_map<uint64_t, int32_t> m_edges;  // state << 8 | byte
    std::vector<int32_t> m_idOf;                    // by state; -1: no token ends here
    std::array<int32_t, 256> m_byteIds{};           // of <0x00> .. <0xFF>; -1: none
    double m_unknownScore = 0;                      // score of a character that begins no token
    int32_t m_unknown = -1;
    bool m_byteFallback = false;
};

}  // namespace colibri::text
