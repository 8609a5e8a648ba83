// SPDX-License-Identifier: Apache-2.0
#include "engine/text/reply_parts.h"

#include <algorithm>
#include <cstddef>
#include <utility>

#include "engine/text/tokenizer.h"

namespace colibri {

namespace {

constexpr std::string_view kTags[][2] = {
    {"<think>", "</think>"}, {"<thinking>", "</thinking>"}, {"[THINK]", "[/THINK]"}};
constexpr std::string_view kChannel = "<|channel|>", kMessage = "<|message|>", kEnd = "<|end|>";
constexpr std::string_view kStart = "<|start|>";
constexpr std::string_view kFinal = "<|channel|>final";

template <typename Text>
bool isSpaceAt(Text text, size_t at) {
    const auto c = text[at];
    return c == ' ' || (c >= '\t' && c <= '\r');
}
template <typename Text>
size_t skipSpace(Text text, size_t at) {
    while (at < text.size() && isSpaceAt(text, at)) ++at;
    return at;
}

// Tags are ASCII, so a search by code unit works in both encodings.
template <typename Text>
size_t findTag(Text text, std::string_view tag, size_t from = 0) {
    const auto found = std::search(text.begin() + std::ptrdiff_t(std::min(from, text.size())),
                                   text.end(), tag.begin(), tag.end());
    return found == text.end() ? text.npos : size_t(found - text.begin());
}
template <typename Text>
bool hasAt(Text text, size_t at, std::string_view tag) {
    return text.size() - at >= tag.size() &&
           std::equal(tag.begin(), tag.end(), text.begin() + std::ptrdiff_t(at));
}

template <typename Text>
size_t findLast(Text text, std::string_view tag) {
    const auto found = std::find_end(text.begin(), text.end(), tag.begin(), tag.end());
    return found == text.end() ? text.npos : size_t(found - text.begin());
}

// In channels (harmony), everything before the final channel is reasoning, including the marks
// between several channels.
template <typename Text>
ReplyParts splitChannels(Text text) {
    const size_t message = findTag(text, kMessage);
    const size_t from = message == text.npos ? text.size() : message + kMessage.size();
    const size_t final = findTag(text, kFinal);
    const size_t answer = final == text.npos ? final : findTag(text, kMessage, final);
    ReplyParts parts;
    parts.open = answer == text.npos;
    parts.answerFrom = int64_t(parts.open ? text.size() : answer + kMessage.size());
    if (final == 0) return parts;  // there is no reasoning
    const Text reasoning = text.substr(0, final);
    size_t to = reasoning.size();
    // Excludes the header of a next message without text.
    if (const size_t end = findLast(reasoning, kEnd); end != text.npos) {
        const Text rest = reasoning.substr(end + kEnd.size());
        const size_t n = std::min(rest.size(), kStart.size());
        const bool head =
            std::equal(kStart.begin(), kStart.begin() + std::ptrdiff_t(n), rest.begin());
        if (head && findTag(rest, kMessage) == text.npos) to = end;
    }
    parts.reasoningFrom = int64_t(from);
    parts.reasoningTo = int64_t(std::max(from, to));
    return parts;
}

// The reasoning from `from` to its closing tag, or to the end if there is none yet.
template <typename Text>
ReplyParts splitAt(Text text, size_t from, std::string_view close) {
    const size_t end = findTag(text, close, from);
    ReplyParts parts;
    parts.open = end == text.npos;
    parts.reasoningFrom = int64_t(from);
    parts.reasoningTo = int64_t(std::min(end, text.size()));
    parts.answerFrom = int64_t(parts.open ? text.size() : skipSpace(text, end + close.size()));
    return parts;
}

template <typename Text>
ReplyParts split(Text text, bool begun) {
    if (hasAt(text, 0, kChannel)) return splitChannels(text);
    const size_t start = skipSpace(text, 0);
    for (const auto& [open, close] : kTags) {
        if (hasAt(text, start, open)) return splitAt(text, start + open.size(), close);
    }
    if (!begun) return {};
    // The opening tag is unknown, so any closing tag ends it.
    for (const auto& [open, close] : kTags) {
        const ReplyParts parts = splitAt(text, start, close);
        if (!parts.open) return parts;
    }
    return splitAt(text, start, kTags[0][1]);
}

bool isBeginningOf(std::string_view text, std::string_view tag) {
    return text.size() < tag.size() && tag.starts_with(text);
}

// Whether the reply may still begin with a tag.
bool mayOpen(std::string_view text) {
    const std::string_view rest = text.substr(skipSpace(text, 0));
    return isBeginningOf(rest, kChannel) ||
           std::any_of(std::begin(kTags), std::end(kTags),
                       [&](const auto& tag) { return isBeginningOf(rest, tag[0]); });
}

// The number of bytes at the end that may be the beginning of a closing tag.
size_t heldBack(std::string_view text) {
    size_t most = 0;
    const auto look = [&](std::string_view tag) {
        for (size_t n = std::min(tag.size() - 1, text.size()); n > most; --n) {
            if (text.ends_with(tag.substr(0, n))) most = n;
        }
    };
    for (const auto& tag : kTags) look(tag[1]);
    look(kEnd);
    return most;
}

}  // namespace

ReplyParts splitReply(std::string_view text, bool begun) {
    return split(text, begun);
}
ReplyParts splitReply(std::u16string_view text, bool begun) {
    return split(text, begun);
}

TracedText tracedReply(std::string_view text, bool begun) {
    const ReplyParts parts = splitReply(text, begun);
    const size_t from = size_t(parts.reasoningFrom), to = size_t(parts.reasoningTo);
    const size_t answer = size_t(parts.answerFrom);
    TracedText out;
    if (from < to || answer > 0) {
        out.append(text.substr(0, from));
        out.append(text.substr(from, to - from), true);
        out.append(text.substr(to, answer - to));
    }
    out.append(text.substr(answer), true);
    return out;
}

bool endsInReasoning(std::string_view prompt) {
    while (!prompt.empty() && isSpaceAt(prompt, prompt.size() - 1)) prompt.remove_suffix(1);
    return std::any_of(std::begin(kTags), std::end(kTags),
                       [&](const auto& tag) { return prompt.ends_with(tag[0]); });
}

bool endsInReasoning(const Tokenizer& tokenizer, const std::vector<int32_t>& prompt) {
    constexpr std::ptrdiff_t kTokens = 16;  // sufficient for a tag
    return endsInReasoning(
        tokenizer.decode({prompt.end() - std::min(kTokens, std::ssize(prompt)), prompt.end()}));
}

bool marksAreSpecial(const Tokenizer& tokenizer) {
    const auto special = [&](std::string_view mark) {
        const std::optional<int32_t> id = tokenizer.tokenToId(std::string(mark));
        return id && tokenizer.isSpecial(*id);
    };
    return special(kChannel) || std::any_of(std::begin(kTags), std::end(kTags),
                                            [&](const auto& tag) { return special(tag[1]); });
}

ReplySplitter::Piece ReplySplitter::upTo(const ReplyParts& parts, size_t reasoningEnd,
                                         size_t answerEnd) {
    const auto take = [&](size_t from, size_t to, size_t& given) {
        from = std::max(from, given);
        if (from >= to) return std::string();
        given = to;
        return m_text.substr(from, to - from);
    };
    Piece piece;
    piece.reasoning = take(size_t(parts.reasoningFrom), reasoningEnd, m_reasoned);
    piece.answer = take(size_t(parts.answerFrom), answerEnd, m_answered);
    return piece;
}

ReplySplitter::Piece ReplySplitter::add(std::string_view text) {
    if (m_plain) return {{}, std::string(text)};
    m_text += text;
    if (!m_begun && mayOpen(m_text)) return {};
    const ReplyParts parts = splitReply(m_text, m_begun);
    m_plain = !parts.open && parts.answerFrom == 0;
    const size_t held = parts.open ? heldBack(m_text) : 0;
    return upTo(parts, std::min(size_t(parts.reasoningTo), m_text.size() - held), m_text.size());
}

ReplySplitter::Piece ReplySplitter::finish() {
    if (m_plain) return {};
    const ReplyParts parts = splitReply(m_text, m_begun);
    return upTo(parts, size_t(parts.reasoningTo), m_text.size());
}

}  // namespace colibri
