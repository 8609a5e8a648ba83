// SPDX-License-Identifier: Apache-2.0
#include "engine/text/added_tokens.h"

#include <algorithm>
#include <optional>

#include "engine/text/normalizers.h"
#include "engine/text/unicode.h"

namespace colibri::text {

int32_t StringFinder::step(int32_t state, unsigned char byte) const {
    const auto found = m_edges.find(uint64_t(state) << 8 | byte);
    return found == m_edges.end() ? -1 : found->second;
}

void StringFinder::build(const std::vector<std::string>& strings) {
    m_states.assign(1, {});
    std::vector<std::pair<int32_t, unsigned char>> parents{{0, 0}};  // how each state is reached
    for (size_t i = 0; i < strings.size(); ++i) {
        int32_t state = 0;
        for (char c : strings[i]) {
            const auto [edge, added] = m_edges.try_emplace(
                uint64_t(state) << 8 | static_cast<unsigned char>(c), int32_t(m_states.size()));
            if (added) {
                m_states.push_back({0, -1, -1, m_states[state].depth + 1});
                parents.emplace_back(state, static_cast<unsigned char>(c));
            }
            state = edge->second;
        }
        if (state != 0 && m_states[state].string < 0) m_states[state].string = int32_t(i);
        m_lengths.push_back(strings[i].size());
    }
    std::vector<int32_t> order(m_states.size() - 1);
    for (size_t i = 0; i < order.size(); ++i) order[i] = int32_t(i + 1);
    std::stable_sort(order.begin(), order.end(),
                     [&](int32_t a, int32_t b) { return m_states[a].depth < m_states[b].depth; });
    for (int32_t state : order) {
        const auto [parent, byte] = parents[state];
        int32_t fail = m_states[parent].fail;
        int32_t target = parent == 0 ? 0 : step(fail, byte);
        while (target < 0 && fail != 0) {
            fail = m_states[fail].fail;
            target = step(fail, byte);
        }
        m_states[state].fail = std::max(target, 0);
        const State& behind = m_states[m_states[state].fail];
        m_states[state].suffixHit = behind.string >= 0 ? m_states[state].fail : behind.suffixHit;
    }
}

std::vector<StringFinder::Hit> StringFinder::find(std::string_view text) const {
    std::vector<Hit> hits;
    if (m_states.size() < 2) return hits;
    std::optional<Hit> best;  // the first that begins, as far as is known
    int32_t state = 0;
    size_t at = 0;
    // A string that may still be found begins at `at - depth`; behind that `best` cannot be beaten.
    const auto settle = [&] {
        if (!best || at - size_t(m_states[state].depth) <= best->begin) return false;
        hits.push_back(*best);
        at = best->end;
        state = 0;
        best.reset();
        return true;
    };
    while (at <= text.size()) {
        const int32_t next =
            at < text.size() ? step(state, static_cast<unsigned char>(text[at])) : -1;
        if (next < 0) {
            if (state == 0) {
                if (best) {
                    hits.push_back(*best);
                    at = best->end;
                    best.reset();
                } else {
                    ++at;
                }
                continue;
            }
            state = m_states[state].fail;
            settle();
            continue;
        }
        state = next;
        ++at;
        const int32_t ending = m_states[state].string >= 0 ? state : m_states[state].suffixHit;
        if (ending >= 0) {
            const size_t which = size_t(m_states[ending].string);
            const size_t begin = at - m_lengths[which];
            if (!best || begin <= best->begin) best = Hit{begin, at, which};
        }
        settle();
    }
    return hits;
}

void AddedTokens::build(std::vector<AddedToken> tokens, const Normalizer* normalizer) {
    m_tokens = std::move(tokens);
    m_normalizer = normalizer;
    std::vector<std::string> raw, normalized;
    for (size_t i = 0; i < m_tokens.size(); ++i) {
        AddedToken& token = m_tokens[i];
        m_byId.emplace(token.id, i);
        m_byContent.emplace(token.content, i);
        token.written = token.content;
        if (token.normalized && m_normalizer) m_normalizer->apply(token.written);
        (token.normalized ? m_normalized : m_raw).tokens.push_back(i);
        (token.normalized ? normalized : raw).push_back(token.written);
    }
    m_raw.finder.build(raw);
    m_normalized.finder.build(normalized);
}

const AddedToken* AddedTokens::byId(int32_t id) const {
    const auto found = m_byId.find(id);
    return found == m_byId.end() ? nullptr : &m_tokens[found->second];
}

const AddedToken* AddedTokens::byContent(std::string_view content) const {
    const auto found = m_byContent.find(std::string(content));
    return found == m_byContent.end() ? nullptr : &m_tokens[found->second];
}

void AddedTokens::cutBy(const Group& group, std::string_view text, bool atStart, bool special,
                        std::vector<Piece>& out) const {
    size_t done = 0;
    size_t spaceBegin = 1, spaceEnd = 0;  // white space that rightStrip has walked over already
    for (const StringFinder::Hit& hit : group.finder.find(text)) {
        const AddedToken& token = m_tokens[group.tokens[hit.which]];
        if (token.special && !special) continue;
        size_t begin = hit.begin, end = hit.end;
        if (token.singleWord) {
            const bool before =
                begin > 0 && isWordCharacter(nextUtf8(text, previousUtf8(text, begin)).code);
            const bool after = end < text.size() && isWordCharacter(nextUtf8(text, end).code);
            if (before || after) continue;
        }
        // White space that the token before has taken already stays with it.
        if (token.leftStrip) {
            const size_t from = std::min(done, begin);
            begin = from + trimWhiteSpace(text.substr(from, begin - from), false, true).size();
            begin = std::max(begin, done);
        }
        if (token.rightStrip) {
            if (end < spaceBegin || end > spaceEnd) {
                spaceBegin = end;
                spaceEnd = text.size() - trimWhiteSpace(text.substr(end), true, false).size();
            }
            end = spaceEnd;
        }
        if (done < begin) {
            out.push_back({std::string(text.substr(done, begin - done)), -1, atStart && done == 0});
        }
        out.push_back({std::string(), token.id, false});
        done = end;
    }
    if (done < text.size())
        out.push_back({std::string(text.substr(done)), -1, atStart && done == 0});
}

std::vector<Piece> AddedTokens::cut(std::string_view text, bool special) const {
    std::vector<Piece> raw, out;
    cutBy(m_raw, text, true, special, raw);
    for (Piece& piece : raw) {
        if (piece.id >= 0) {
            out.push_back(std::move(piece));
            continue;
        }
        if (m_normalizer) m_normalizer->apply(piece.text);
        cutBy(m_normalized, piece.text, piece.atStart, special, out);
    }
    return out;
}

}  // namespace colibri::text
