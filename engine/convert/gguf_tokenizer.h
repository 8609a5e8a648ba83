// SPDX-License-Identifier: Apache-2.0
// The tokenizer inside a GGUF file, as an equivalent tokenizer.json.
#pragma once

#include <string>

#include "engine/base/status.h"
#include "engine/convert/gguf.h"

namespace colibri {

// Byte-level BPE ("gpt2") with a pre-tokenizer this program knows. Errors: Unsupported naming the
// model or pre-tokenizer; BadInput when the lists do not fit each other.
Result<std::string> ggufTokenizerJson(const GgufHeader& header);

}  // namespace colibri
