// SPDX-License-Identifier: Apache-2.0
// Merges from scores: SentencePiece BPE vocabularies have a score for each token, but no merges.
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
    double score = 0;  // higher: learnt earlier
};

// All pairs of tokens that join to a third token, in merge order: by the score of the result (by
// its id if all scores are equal, as in files without scores), then by the length of the left part.
// The conversion of the reference implementation uses the same order. REQUIRES: distinct texts;
// none longer than kLongestScoredToken.
std::vector<std::pair<std::string, std::string>> mergesFromScores(
    std::span<const ScoredToken> tokens);

inline constexpr size_t kLongestScoredToken = 1024;  // bytes

}  // namespace colibri
