// SPDX-License-Identifier: Apache-2.0
// Converts the tokenizer in a GGUF file to an equivalent tokenizer.json.
#pragma once

#include <string>

#include "engine/base/status.h"
#include "engine/convert/gguf/gguf.h"

namespace colibri {

// tokenizer.ggml.model "gpt2" (byte-level BPE, with a splitting rule that ggufSplit supports),
// "llama" (SentencePiece BPE: merges are computed from the scores) and "t5" (Unigram). The ids are
// those of the tokenizer.json that the file was made from. Properties that a GGUF file cannot store
// are lost: added tokens that strip spaces or must be single words. Errors: Unsupported naming the
// model, the splitting rule or the normalizer; BadInput if the lists differ in length.
Result<std::string> ggufTokenizerJson(const GgufHeader& header);

}  // namespace colibri
