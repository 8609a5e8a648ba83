// SPDX-License-Identifier: Apache-2.0
// Chat templates that many models share, for a model that has none of its own or another one.
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

// The text that ends a reply in a chat rendered with `chat`: a mark ("<|im_end|>") or the beginning
// of the next message ("\nUser:"). "" where it cannot be told. `bos` and `eos`: tokens of the
// model.
std::string replyEnd(const ChatTemplate& chat, const std::string& bos, const std::string& eos);

}  // namespace colibri
