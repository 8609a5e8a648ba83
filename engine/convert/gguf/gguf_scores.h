// SPDX-License-Identifier: Apache-2.0
// SentencePiece's BPE vocabularies hold a score for each token, and no list of merges.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

namespace colibri {

struct ScoredToken {
    std::string_view text;
    int64_t id = 0;
    double score = 0;  // the higher, the earlier it was learnt
};

// Every way to join two tokens to a third, the first to be tried first: by the score of what they
// make (by its id, where all scores are the same, as in files that were made without them), then
// by the length of the left part. This is the order in which the reference's conversion lists
// them. REQUIRES: different texts; none longer than kLongestScoredToken.
std::vector<std::pair<std::string, std::string>> mergesFromScores(
    std::span<const ScoredToken> tokens);

inline constexpr size_t kLongestScoredToken = 1024;  // bytes

}  // namespace colibri
