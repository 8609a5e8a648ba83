// SPDX-License-Identifier: Apache-2.0
// Tokenizer, chat templates and special tokens that a GGUF file carries.
#pragma once

#include "engine/convert/gguf/gguf.h"
#include "engine/convert/source/source_texts.h"

namespace colibri {

SourceTexts ggufTexts(const GgufHeader& header);

}  // namespace colibri
