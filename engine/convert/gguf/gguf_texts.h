// SPDX-License-Identifier: Apache-2.0
// The tokenizer, chat templates and special tokens in a GGUF file.
#pragma once

#include <vector>

#include "engine/convert/gguf/gguf.h"
#include "engine/convert/source/source_texts.h"

namespace colibri {

SourceTexts ggufTexts(const GgufHeader& header);
// tokenizer.chat_template and tokenizer.chat_template.NAME.
std::vector<NamedTemplate> ggufTemplates(const GgufHeader& header);

}  // namespace colibri
