// SPDX-License-Identifier: Apache-2.0
#include "engine/text/added_tokens.h"

#include <algorithm>
#include <optional>

#include "engine/text/normalizers.h"
#include "engine/unicode/unicode.h"

namespace colibri::text {

int32_t StringFinder::step(int32_t state, unsigned char byte) const {
    const auto found = m_edges.find(uint64_t(state) << 8 | byte);
    return found == m_edges.end() ? -1 : found->second;
}

void StringFinder::build(const std::vector<std::string>& strings) {
    m_states.assign(1, {});
    // Parent state and byte of each state.
    std::vector<std::pair<int32_t, unsigned char>> parents{{0, 0}};
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

std::vector<StringFinder::Hit> StringFinder::find(
    std::string_view text, const std::function<bool(const Hit&)>& admits) const {
    std::vector<Hit> hits;
    if (m_states.size() < 2) return hits;
    std::optional<Hit> best;  // the hit that begins first, as far as known
    int32_t state = 0;
    size_t at = 0;
    // A string that is still being matched begins at `at - depth` or later, so a `best` that begins
    // earlier is final.
    const auto accept = [&] {
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
            accept();
            continue;
        }
        state = next;
        ++at;
        int32_t ending = m_states[state].string >= 0 ? state : m_states[state].suffixHit;
        for (; ending >= 0; ending = m_states[ending].suffixHit) {
            const size_t which = size_t(m_states[ending].string);
            const Hit hit{at - m_lengths[which], at, which};
            if (!admits(hit)) continue;
            if (!best || hit.begin <= best->begin) best = hit;
            break;
        }
        accept();
    }
    return hits;
}

namespace {

bool looksLikeControl(std::string_view content) {
    constexpr std::string_view marks[][2] = {{"<|", "|>"}, {"<｜", "｜>"}};
    return std::any_of(std::begin(marks), std::end(marks), [&](const auto& mark) {
        return content.size() > mark[0].size() + mark[1].size() && content.starts_with(mark[0]) &&
               content.ends_with(mark[1]);
    });
}

}  // namespace

void AddedTokens::build(std::vector<AddedToken> tokens, const Normalizer* normalizer) {
    m_tokens = std::move(tokens);
    m_normalizer = normalizer;
    std::vector<std::string> raw, normalized;
    for (size_t i = 0; i < m_tokens.size(); ++i) {
        AddedToken& token = m_tokens[i];
        m_byId.emplace(token.id, i);
        m_byContent.emplace(token.content, i);
        token.control = token.special || looksLikeControl(token.content);
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

std::vector<AddedTokens::Cut> AddedTokens::cutsBy(const Group& group, const TracedText& traced,
                                                  bool special) const {
    const std::string_view text = traced.text;
    std::vector<Cut> out;
    size_t done = 0;
    size_t spaceBegin = 1, spaceEnd = 0;  // white space that rightStrip has covered
    const auto tokenOf = [&](const StringFinder::Hit& hit) -> const AddedToken& {
        return m_tokens[group.tokens[hit.which]];
    };
    const auto admits = [&](const StringFinder::Hit& hit) {
        return !tokenOf(hit).control || !traced.hasData(hit.begin, hit.end);
    };
    for (const StringFinder::Hit& hit : group.finder.find(text, admits)) {
        const AddedToken& token = tokenOf(hit);
        if (token.special && !special) continue;
        size_t begin = hit.begin, end = hit.end;
        if (token.singleWord) {
            const bool before =
                begin > 0 && isWordCharacter(nextUtf8(text, previousUtf8(text, begin)).code);
            const bool after = end < text.size() && isWordCharacter(nextUtf8(text, end).code);
            if (before || after) continue;
        }
        // White space that belongs to the previous token stays with it.
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
        if (done < begin) out.push_back({done, begin, -1});
        out.push_back({begin, end, token.id});
        done = end;
    }
    if (done < text.size()) out.push_back({done, text.size(), -1});
    return out;
}

TracedText AddedTokens::normalized(TracedText text) const {
    if (!m_normalizer) return text;
    std::string whole = text.text;
    m_normalizer->apply(whole);
    if (!text.hasData()) return TracedText(std::move(whole));
    if (whole == text.text) return text;
    // The position of data in the normalized text is found by normalizing the text before it. At
    // the ends of a range it can be off by one character that the normalizer combines with its
    // neighbour, but never by a whole token.
    const auto offsetInNormalized = [&](size_t at) {
        std::string before = text.text.substr(0, at);
        m_normalizer->apply(before);
        return std::min(before.size(), whole.size());
    };
    TracedText out;
    const auto appendUpTo = [&](size_t end, bool isData) {
        const size_t begin = out.text.size();
        if (end > begin) out.append(std::string_view(whole).substr(begin, end - begin), isData);
    };
    const bool matters = std::any_of(m_normalized.tokens.begin(), m_normalized.tokens.end(),
                                     [&](size_t token) { return m_tokens[token].control; });
    for (const ByteRange& range : text.data) {
        if (!matters) break;
        appendUpTo(offsetInNormalized(range.begin), false);
        appendUpTo(offsetInNormalized(range.end), true);
    }
    appendUpTo(whole.size(), false);
    return out;
}

std::vector<Piece> AddedTokens::cut(const TracedText& text, bool special) const {
    std::vector<Piece> out;
    for (const Cut& raw : cutsBy(m_raw, text, special)) {
        if (raw.id >= 0) {
            out.push_back({std::string(), raw.id, false});
            continue;
        }
        const TracedText part = normalized(text.slice(raw.begin, raw.end));
        for (const Cut& cut : cutsBy(m_normalized, part, special)) {
            const bool atStart = cut.id < 0 && raw.begin == 0 && cut.begin == 0;
            out.push_back({cut.id < 0 ? part.text.substr(cut.begin, cut.end - cut.begin) : "",
                           cut.id, atStart});
        }
    }
    return out;
}

}  // namespace colibri::text
