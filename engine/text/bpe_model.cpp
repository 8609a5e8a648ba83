// SPDX-License-Identifier: Apache-2.0
#include "engine/text/bpe_model.h"

#include <queue>

#include "engine/unicode/unicode.h"

namespace colibri::text {

Status BpeModel::readVocabulary(const JsonNode& node) {
    const JsonNode vocab = node.at("vocab");
    if (!vocab.json().is_object()) return vocab.bad("an object of tokens and ids is expected here");
    m_ids.reserve(vocab.json().size());
    for (const auto& [token, value] : vocab.json().items()) {
        const std::string what =
            "token " + nlohmann::json(token.substr(0, 80))
                           .dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
        if (!value.is_number_integer() || value < 0 || value > kHighestId) {
            return vocab.bad(what + " has no id between 0 and " + std::to_string(kHighestId));
        }
        const int32_t id = value.get<int32_t>();
        if (size_t(id) >= m_tokens.size()) {
            m_tokens.resize(id + 1);
            m_used.resize(id + 1);
        }
        if (m_used[id]) {
            return vocab.bad(what + " has the id " + std::to_string(id) + " of another token");
        }
        m_used[id] = true;
        m_tokens[id] = token;
        m_ids.emplace(token, id);
    }
    return {};
}

Status BpeModel::addMerge(const JsonNode& where, uint32_t rank, std::string_view left,
                          std::string_view right) {
    const auto leftId = tokenToId(left), rightId = tokenToId(right);
    if (!leftId || !rightId) {
        return where.bad("merge " + std::to_string(rank) +
                         " names a token that is not in the vocabulary");
    }
    if (right.size() < m_prefix.size()) {
        return where.bad("merge " + std::to_string(rank) +
                         " is shorter than continuing_subword_prefix");
    }
    const auto joined = tokenToId(std::string(left) + std::string(right.substr(m_prefix.size())));
    if (!joined) {
        return where.bad("merge " + std::to_string(rank) +
                         " produces a token that is not in the vocabulary");
    }
    // As in the reference, the last occurrence of a duplicate pair counts.
    m_merges.insert_or_assign(uint64_t(*leftId) << 32 | uint32_t(*rightId), Merge{rank, *joined});
    return {};
}

Status BpeModel::readMerges(const JsonNode& node) {
    const JsonNode merges = node.at("merges");
    if (!merges.json().is_array()) return merges.bad("an array is expected here");
    m_merges.reserve(merges.json().size());
    uint32_t rank = 0;
    for (const auto& merge : merges.json()) {
        if (merge.is_string()) {
            const std::string_view text = merge.get_ref<const std::string&>();
            const size_t space = text.find(' ');
            if (space == std::string_view::npos ||
                text.find(' ', space + 1) != std::string_view::npos) {
                return merges.bad("merge " + std::to_string(rank) +
                                  " is not two tokens and a space");
            }
            COLIBRI_TRY(addMerge(merges, rank, text.substr(0, space), text.substr(space + 1)));
        } else if (merge.is_array() && merge.size() == 2 && merge[0].is_string() &&
                   merge[1].is_string()) {
            COLIBRI_TRY(addMerge(merges, rank, merge[0].get_ref<const std::string&>(),
                                 merge[1].get_ref<const std::string&>()));
        } else {
            return merges.bad("merge " + std::to_string(rank) + " is not a pair of tokens");
        }
        ++rank;
    }
    return {};
}

Result<std::unique_ptr<TokenModel>> BpeModel::make(const JsonNode& node) {
    auto model = std::make_unique<BpeModel>();
    COLIBRI_TRY(model->readVocabulary(node));
    struct Flag {
        const char* key;
        bool* target;
    };
    for (const Flag& flag :
         {Flag{"fuse_unk", &model->m_fuseUnknown}, Flag{"byte_fallback", &model->m_byteFallback},
          Flag{"ignore_merges", &model->m_ignoreMerges}}) {
        const Result<bool> value = node.flag(flag.key, false);
        if (!value) return value.status();
        *flag.target = *value;
    }
    struct Text {
        const char* key;
        std::string* target;
    };
    std::string unknown;
    for (const Text& text :
         {Text{"continuing_subword_prefix", &model->m_prefix},
          Text{"end_of_word_suffix", &model->m_suffix}, Text{"unk_token", &unknown}}) {
        Result<std::string> value = node.text(text.key, "");
        if (!value) return value.status();
        *text.target = std::move(*value);
    }
    if (node.has("unk_token")) model->m_unknown = model->tokenToId(unknown).value_or(-1);
    const JsonNode dropout = node.at("dropout");
    if (!dropout.isNull() && dropout.json() != 0) return dropout.unsupported("other than null");
    COLIBRI_TRY(model->readMerges(node));
    for (int b = 0; b < 256; ++b) {
        model->m_byteIds[b] = model->tokenToId(byteToken(uint8_t(b))).value_or(-1);
    }
    return {std::move(model)};
}

std::optional<int32_t> BpeModel::tokenToId(std::string_view token) const {
    const auto found = m_ids.find(token);
    if (found == m_ids.end()) return std::nullopt;
    return found->second;
}

const std::string* BpeModel::idToToken(int32_t id) const {
    return id >= 0 && size_t(id) < m_tokens.size() && m_used[id] ? &m_tokens[id] : nullptr;
}

const BpeModel::Merge* BpeModel::mergeOf(int32_t left, int32_t right,
                                         const std::vector<bool>* barred) const {
    const auto found = m_merges.find(uint64_t(left) << 32 | uint32_t(right));
    if (found == m_merges.end() || isBarred(barred, found->second.id)) return nullptr;
    return &found->second;
}

// Adds the byte tokens of a character that is not in the vocabulary. False: one of them is missing.
bool BpeModel::addBytes(std::string_view character, std::vector<Symbol>& symbols) const {
    for (char c : character) {
        if (m_byteIds[static_cast<unsigned char>(c)] < 0) return false;
    }
    for (char c : character)
        symbols.push_back({m_byteIds[static_cast<unsigned char>(c)], 0, 0, false});
    return true;
}

void BpeModel::addSymbols(std::string_view piece, std::vector<Symbol>& symbols,
                          const std::vector<bool>* barred) const {
    // Fused unknown characters become one symbol before the next known one.
    bool unknownWaits = false;
    std::string decorated;
    for (size_t at = 0, next; at < piece.size(); at = next) {
        next = at + nextUtf8(piece, at).bytes;
        std::string_view character = piece.substr(at, next - at);
        if (!m_prefix.empty() || !m_suffix.empty()) {
            decorated = (at > 0 ? m_prefix : "") + std::string(character);
            if (next == piece.size()) decorated += m_suffix;
            character = decorated;
        }
        if (const auto id = tokenToId(character); id && !isBarred(barred, *id)) {
            if (unknownWaits) symbols.push_back({m_unknown, 0, 0, false});
            unknownWaits = false;
            symbols.push_back({*id, 0, 0, false});
        } else if (m_byteFallback && addBytes(character, symbols)) {
            continue;
        } else if (m_unknown >= 0) {
            if (unknownWaits && !m_fuseUnknown) symbols.push_back({m_unknown, 0, 0, false});
            unknownWaits = true;
        }
    }
    if (unknownWaits) symbols.push_back({m_unknown, 0, 0, false});
    for (size_t i = 0; i < symbols.size(); ++i) {
        symbols[i].previous = int32_t(i) - 1;
        symbols[i].next = i + 1 < symbols.size() ? int32_t(i) + 1 : -1;
    }
}

// Repeats the merge of lowest rank, of equal ones the leftmost. A heap makes this O(n log n); stale
// entries are recognised when they are popped.
void BpeModel::mergeAll(std::vector<Symbol>& symbols, const std::vector<bool>* barred) const {
    struct Candidate {
        uint32_t rank;
        int32_t position, id;
        bool operator>(const Candidate& other) const {
            return rank != other.rank ? rank > other.rank : position > other.position;
        }
    };
    std::priority_queue<Candidate, std::vector<Candidate>, std::greater<>> queue;
    const auto offer = [&](int32_t left, int32_t right) {
        if (left < 0 || right < 0) return;
        if (const Merge* merge = mergeOf(symbols[left].id, symbols[right].id, barred)) {
            queue.push({merge->rank, left, merge->id});
        }
    };
    for (size_t i = 0; i + 1 < symbols.size(); ++i) offer(int32_t(i), int32_t(i) + 1);
    while (!queue.empty()) {
        const Candidate best = queue.top();
        queue.pop();
        Symbol& left = symbols[best.position];
        if (left.merged || left.next < 0) continue;
        Symbol& right = symbols[left.next];
        const Merge* merge = mergeOf(left.id, right.id, barred);
        if (!merge || merge->id != best.id) continue;
        left.id = best.id;
        right.merged = true;
        left.next = right.next;
        if (right.next >= 0) symbols[right.next].previous = best.position;
        offer(left.previous, best.position);
        offer(best.position, left.next);
    }
}

void BpeModel::encode(std::string_view piece, std::vector<int32_t>& ids,
                      const std::vector<bool>* barred) const {
    if (m_ignoreMerges) {
        if (const auto whole = tokenToId(piece); whole && !isBarred(barred, *whole)) {
            ids.push_back(*whole);
            return;
        }
    }
    std::vector<Symbol> symbols;
    symbols.reserve(piece.size());
    addSymbols(piece, symbols, barred);
    mergeAll(symbols, barred);
    for (const Symbol& symbol : symbols) {
        if (!symbol.merged) ids.push_back(symbol.id);
    }
}

}  // namespace colibri::text
