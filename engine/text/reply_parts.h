// SPDX-License-Identifier: Apache-2.0
// Where the answer begins in a reply of a reasoning model: behind <think>...</think> or its like,
// or in the final one of several channels (<|channel|>analysis<|message|>...).
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "engine/unicode/traced_text.h"

namespace colibri {

class Tokenizer;

// Places in the text, in its own units.
struct ReplyParts {
    int64_t reasoningFrom = 0, reasoningTo = 0;  // empty when equal
    int64_t answerFrom = 0;
    bool open = false;  // the reasoning has not ended yet
};

// `begun`: the prompt ended inside the reasoning (endsInReasoning). UTF-8 or UTF-16.
ReplyParts splitReply(std::string_view text, bool begun = false);
ReplyParts splitReply(std::u16string_view text, bool begun = false);

// Some templates write the opening tag themselves, at the end of the prompt.
bool endsInReasoning(std::string_view prompt);
bool endsInReasoning(const Tokenizer& tokenizer, const std::vector<int32_t>& prompt);

// Whether the marks are special tokens: the text must have those, or its parts cannot be told.
bool marksAreSpecial(const Tokenizer& tokenizer);

// A reply that is to be continued: the marks round its reasoning are marks, all else of it is data,
// so that a control token that it only names does not become one.
TracedText tracedReply(std::string_view text, bool begun = false);

// The parts of a reply that is still growing. What may be the beginning of a tag is held back, and
// what was given out stays what it was.
class ReplySplitter {
public:
    explicit ReplySplitter(bool begun = false) : m_begun(begun) {}

    struct Piece {
        std::string reasoning, answer;
    };
    Piece add(std::string_view text);
    Piece finish();  // what was held back

private:
    Piece upTo(const ReplyParts& parts, size_t reasoningEnd, size_t answerEnd);

    bool m_begun;
    bool m_plain = false;  // it began as an answer
    std::string m_text;
    size_t m_reasoned = 0, m_answered = 0;  // given out, as places in m_text
};

}  // namespace colibri
