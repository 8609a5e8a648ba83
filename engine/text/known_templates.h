// SPDX-License-Identifier: Apache-2.0
// Common chat templates, for a model without a template or with an unsuitable one.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "engine/text/chat_template.h"

namespace colibri {

struct KnownTemplate {
    std::string_view name;  // "ChatML"
    std::string_view text;  // Jinja
};
std::span<const KnownTemplate> knownTemplates();

// The text that ends a reply in a chat rendered with `chat`: a control token ("<|im_end|>") or the
// beginning of the next message ("\nUser:"); "" if unknown. `bos` and `eos`: tokens of the model.
std::string replyEnd(const ChatTemplate& chat, const std::string& bos, const std::string& eos);

}  // namespace colibri
