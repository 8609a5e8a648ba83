// SPDX-License-Identifier: GPL-3.0-or-later
// Log-probabilities of generated tokens in the OpenAI API's JSON.
//
// A token is named by its text; where its bytes alone are not UTF-8, by these as \xe2\x9c; where it
// has none, as token_id:7. A logit that is not finite is told as -9999.
#pragma once

#include <nlohmann/json.hpp>
#include <span>
#include <vector>

#include "engine/unicode/utf8_assembler.h"
#include "engine/runtime/engine.h"

namespace colibri::serve {

using Json = nlohmann::ordered_json;
using TokenLogprobs = std::vector<Logprob>;  // as of GeneratedToken

// One entry of a chat's "content": token, logprob, bytes (null: none), and the same of the
// likeliest ones in top_logprobs. `tokenizer` may be nullptr.
Json chatLogprob(const Tokenizer* tokenizer, const TokenLogprobs& token);

// A completion's object of parallel arrays. Names of bytes begin with "bytes:" there, the chosen
// token is always among top_logprobs, and text_offset counts characters of the reply's text.
class CompletionLogprobs {
public:
    explicit CompletionLogprobs(const Tokenizer* tokenizer) : m_tokenizer(tokenizer) {}
    Json next(std::span<const TokenLogprobs> tokens);  // those that follow

private:
    const Tokenizer* m_tokenizer;
    Utf8Assembler m_text;
    int64_t m_offset = 0;
};

}  // namespace colibri::serve
