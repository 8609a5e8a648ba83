// SPDX-License-Identifier: Apache-2.0
#include "engine/text/unigram_model.h"

#include <algorithm>
#include <cmath>

#include "engine/unicode/unicode.h"

namespace colibri::text {
namespace {

// Limits the time of encoding, which tries all tokens at each position.
constexpr size_t kLongestToken = 4096;
constexpr double kUnknownPenalty = 10;  // subtracted from the lowest score, as in the reference

}  // namespace

Status UnigramModel::readVocabulary(const JsonNode& node) {
    const JsonNode vocab = node.at("vocab");
    if (!vocab.json().is_array())
        return vocab.bad("an array of tokens and scores is expected here");
    if (vocab.json().size() > size_t(kHighestId) + 1) {
        return vocab.bad("more than " + std::to_string(kHighestId + 1) + " tokens");
    }
    double lowest = 0;
    for (const auto& entry : vocab.json()) {
        const std::string which = "token " + std::to_string(m_tokens.size());
        if (!entry.is_array() || entry.size() != 2 || !entry[0].is_string() ||
            !entry[1].is_number() || !std::isfinite(entry[1].get<double>())) {
            return vocab.bad(which + " is not a string and a score");
        }
        const auto& token = entry[0].get_ref<const std::string&>();
        if (token.size() > kLongestToken) {
            return vocab.unsupported(which + " of more than " + std::to_string(kLongestToken) +
                                     " bytes");
        }
        const double score = entry[1].get<double>();
        lowest = m_tokens.empty() ? score : std::min(lowest, score);
        addToTrie(token, int32_t(m_tokens.size()));
        m_tokens.push_back(token);
        m_scores.push_back(score);
    }
    m_unknownScore = lowest - kUnknownPenalty;
    return {};
}

Result<std::unique_ptr<TokenModel>> UnigramModel::make(const JsonNode& node) {
    auto model = std::make_unique<UnigramModel>();
    model->m_firstBytes.fill(-1);
    model->m_idOf.assign(1, -1);
    COLIBRI_TRY(model->readVocabulary(node));
    const Result<bool> fallback = node.flag("byte_fallback", false);
    if (!fallback) return fallback.status();
    model->m_byteFallback = *fallback;
    if (node.has("unk_id")) {
        const Result<int64_t> unknown = node.integer("unk_id");
        if (!unknown) return unknown.status();
        if (*unknown < 0 || *unknown >= int64_t(model->size())) {
            return node.bad("unk_id " + std::to_string(*unknown) + " is not in the vocabulary");
        }
        model->m_unknown = int32_t(*unknown);
    }
    for (int b = 0; b < 256; ++b) {
        model->m_byteIds[b] = model->tokenToId(byteToken(uint8_t(b))).value_or(-1);
    }
    return {std::move(model)};
}

void UnigramModel::addToTrie(std::string_view token, int32_t id) {
    int32_t state = 0;
    for (size_t i = 0; i < token.size(); ++i) {
        const auto byte = static_cast<unsigned char>(token[i]);
        int32_t next = child(state, byte);
        if (next < 0) {
            next = int32_t(m_idOf.size());
            m_idOf.push_back(-1);
            if (state == 0) {
                m_firstBytes[byte] = next;
            } else {
                m_edges.emplace(uint64_t(state) << 8 | byte, next);
            }
        }
        state = next;
    }
    m_idOf[state] = id;  // as in the reference, the last of equal tokens counts
}

int32_t UnigramModel::child(int32_t state, unsigned char byte) const {
    if (state == 0) return m_firstBytes[byte];
    const auto found = m_edges.find(uint64_t(state) << 8 | byte);
    return found == m_edges.end() ? -1 : found->second;
}

std::optional<int32_t> UnigramModel::tokenToId(std::string_view token) const {
    int32_t state = 0;
    for (size_t i = 0; i < token.size() && state >= 0; ++i) {
        state = child(state, static_cast<unsigned char>(token[i]));
    }
    if (state < 0 || m_idOf[state] < 0) return std::nullopt;
    return m_idOf[state];
}

const std::string* UnigramModel::idToToken(int32_t id) const {
    return id >= 0 && size_t(id) < m_tokens.size() ? &m_tokens[id] : nullptr;
}

// Viterbi over the positions between characters. Of equal scores the first one found wins: the one
// from the earlier position, then the shorter token.
std::vector<UnigramModel::Step> UnigramModel::bestSteps(std::string_view piece,
                                                        const std::vector<bool>* barred) const {
    std::vector<Step> best(piece.size() + 1);
    const auto offer = [&](size_t begin, size_t end, int32_t id, double score) {
        const double sum = best[begin].score + score;
        if (best[end].begin < 0 || sum > best[end].score) best[end] = {sum, id, int32_t(begin)};
    };
    for (size_t begin = 0; begin < piece.size();) {
        const size_t character = nextUtf8(piece, begin).bytes;
        bool known = false;  // the character by itself is a token
        int32_t state = 0;
        for (size_t end = begin; end < piece.size();) {
            state = child(state, static_cast<unsigned char>(piece[end++]));
            if (state < 0) break;
            const int32_t id = m_idOf[state];
            if (id < 0 || isBarred(barred, id)) continue;
            offer(begin, end, id, m_scores[id]);
            known |= end == begin + character;
        }
        if (!known) offer(begin, begin + character, m_unknown, m_unknownScore);
        begin += character;
    }
    return best;
}

void UnigramModel::addUnknown(std::string_view text, std::vector<int32_t>& ids,
                              const std::vector<bool>* barred) const {
    if (const auto id = tokenToId(text); id && !isBarred(barred, *id)) {
        ids.push_back(*id);
        return;
    }
    const bool bytes = m_byteFallback && std::all_of(text.begin(), text.end(), [this](char c) {
                           return m_byteIds[static_cast<unsigned char>(c)] >= 0;
                       });
    if (bytes) {
        for (char c : text) ids.push_back(m_byteIds[static_cast<unsigned char>(c)]);
    } else if (m_unknown >= 0) {
        ids.push_back(m_unknown);
    }
}

void UnigramModel::encode(std::string_view piece, std::vector<int32_t>& ids,
                          const std::vector<bool>* barred) const {
    const std::vector<Step> best = bestSteps(piece, barred);
    std::vector<size_t> ends;
    for (size_t end = piece.size(); end > 0; end = size_t(best[end].begin)) ends.push_back(end);
    // Consecutive unknown characters are one token.
    size_t unknownBegin = 0;
    bool unknownWaits = false;
    for (size_t i = ends.size(); i-- > 0;) {
        const Step& step = best[ends[i]];
        const bool unknown = step.id == m_unknown;
        if (unknown && !unknownWaits) unknownBegin = size_t(step.begin);
        if (!unknown && unknownWaits) {
            addUnknown(piece.substr(unknownBegin, size_t(step.begin) - unknownBegin), ids, barred);
        }
        if (!unknown) ids.push_back(step.id);
        unknownWaits = unknown;
    }
    if (unknownWaits) addUnknown(piece.substr(unknownBegin), ids, barred);
}

}  // namespace colibri::text
