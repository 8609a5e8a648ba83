// SPDX-License-Identifier: Apache-2.0
#include "engine/convert/gguf/gguf_scores.h"

#include <algorithm>
#include <tuple>
#include <unordered_set>

namespace colibri {

namespace {

struct Merge {
    double rank = 0;          // lower is earlier
    int left = 0, right = 0;  // characters of both parts; negative if longer ones come first
    std::string_view token;
    size_t cut = 0;  // bytes of the left part
};

}  // namespace

std::vector<std::pair<std::string, std::string>> mergesFromScores(
    std::span<const ScoredToken> tokens) {
    std::unordered_set<std::string_view> texts;
    for (const ScoredToken& token : tokens) texts.insert(token.text);
    const bool scored = std::any_of(tokens.begin(), tokens.end(), [&](const ScoredToken& token) {
        return token.score != tokens[0].score;
    });
    const int sign = scored ? -1 : 1;
    std::vector<Merge> merges;
    for (const ScoredToken& token : tokens) {
        const auto startsCharacter = [&](size_t at) { return (token.text[at] & 0xC0) != 0x80; };
        int characters = 0;
        for (size_t at = 0; at < token.text.size(); ++at) characters += startsCharacter(at);
        int left = 0;
        for (size_t cut = 0; cut < token.text.size(); ++cut) {
            if (!startsCharacter(cut)) continue;
            if (cut > 0 && texts.contains(token.text.substr(0, cut)) &&
                texts.contains(token.text.substr(cut))) {
                merges.push_back({scored ? -token.score : double(token.id), sign * left,
                                  sign * (characters - left), token.text, cut});
            }
            ++left;
        }
    }
    std::stable_sort(merges.begin(), merges.end(), [](const Merge& a, const Merge& b) {
        return std::tie(a.rank, a.left, a.right) < std::tie(b.rank, b.left, b.right);
    });
    std::vector<std::pair<std::string, std::string>> pairs;
    pairs.reserve(merges.size());
    for (const Merge& merge : merges) {
        pairs.emplace_back(merge.token.substr(0, merge.cut), merge.token.substr(merge.cut));
    }
    return pairs;
}

}  // namespace colibri
