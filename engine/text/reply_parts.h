// SPDX-License-Identifier: Apache-2.0
// Finds the answer in the reply of a reasoning model: the text after <think>...</think> or similar
// tags, or the final channel (<|channel|>analysis<|message|>...).
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "engine/unicode/traced_text.h"

namespace colibri {

class Tokenizer;

// Offsets in the text, in its code units.
struct ReplyParts {
    int64_t reasoningFrom = 0, reasoningTo = 0;  // no reasoning if equal
    int64_t answerFrom = 0;
    bool open = false;  // the reasoning has not ended yet
};

// `begun`: the prompt ended inside the reasoning (endsInReasoning). UTF-8 or UTF-16.
ReplyParts splitReply(std::string_view text, bool begun = false);
ReplyParts splitReply(std::u16string_view text, bool begun = false);

// Some templates put the opening tag at the end of the prompt.
bool endsInReasoning(std::string_view prompt);
bool endsInReasoning(const Tokenizer& tokenizer, const std::vector<int32_t>& prompt);

// Whether the tags are special tokens, which must then be included in the text.
bool marksAreSpecial(const Tokenizer& tokenizer);

// The text of a reply that will be continued. The tags around its reasoning are control tokens.
// Everything else is data, so that a control token that the reply mentions stays text.
TracedText tracedReply(std::string_view text, bool begun = false);

// The parts of a reply that is still growing. Holds back text that may be the beginning of a tag,
// and never changes the kind of text it has returned.
class ReplySplitter {
public:
    explicit ReplySplitter(bool begun = false) : m_begun(begun) {}

    struct Piece {
        std::string reasoning, answer;
    };
    Piece add(std::string_view text);
    Piece finish();  // the text held back

private:
    Piece upTo(const ReplyParts& parts, size_t reasoningEnd, size_t answerEnd);

    bool m_begun;
    bool m_plain = false;  // it started as an answer
    std::string m_text;
    size_t m_reasoned = 0, m_answered = 0;  // returned so far, as offsets in m_text
};

}  // namespace colibri
