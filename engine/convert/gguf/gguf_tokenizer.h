// SPDX-License-Identifier: Apache-2.0
// The tokenizer inside a GGUF file, as an equivalent tokenizer.json.
#pragma once

#include <string>

#include "engine/base/status.h"
#include "engine/convert/gguf/gguf.h"

namespace colibri {

// tokenizer.ggml.model "gpt2" (byte-level BPE, with a splitting rule that ggufSplit knows), "llama"
// (SentencePiece's BPE: merges are made from the scores) and "t5" (Unigram). The ids are those of
// the tokenizer.json that the file was made from; what a GGUF file cannot say is lost: added
// tokens that swallow spaces or must be single words. Errors: Unsupported naming the model, the
// splitting rule or the normalizer; BadInput when the lists do not fit each other.
Result<std::string> ggufTokenizerJson(const GgufHeader& header);

}  // namespace colibri
