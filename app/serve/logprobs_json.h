// SPDX-License-Identifier: GPL-3.0-or-later
// Log-probabilities of generated tokens in the OpenAI API's JSON.
//
// The name of a token is its text; its bytes as \xe2\x9c if they are not UTF-8 on their own; or
// token_id:7 if it has no text. The value of a logit that is not finite is -9999.
#pragma once

#include <nlohmann/json.hpp>
#include <span>
#include <vector>

#include "engine/runtime/engine.h"
#include "engine/unicode/utf8_assembler.h"

namespace colibri::serve {

using Json = nlohmann::ordered_json;
using TokenLogprobs = std::vector<Logprob>;  // as in GeneratedToken

// One entry of a chat's "content": token, logprob, bytes (null: none), and the same for the
// most likely tokens in top_logprobs. `tokenizer` may be nullptr.
Json chatLogprob(const Tokenizer* tokenizer, const TokenLogprobs& token);

// A completion's object of parallel arrays. In it, names of bytes begin with "bytes:", top_logprobs
// always includes the chosen token, and text_offset counts characters of the reply's text.
class CompletionLogprobs {
public:
    explicit CompletionLogprobs(const Tokenizer* tokenizer) : m_tokenizer(tokenizer) {}
    Json next(std::span<const TokenLogprobs> tokens);  // for the following tokens

private:
    const Tokenizer* m_tokenizer;
    Utf8Assembler m_text;
    int64_t m_offset = 0;
};

}  // namespace colibri::serve
