// SPDX-License-Identifier: Apache-2.0
// Renders a model's chat template like Jinja2 in the reference implementation (trim_blocks,
// lstrip_blocks, loop controls). Immutable after parsing; render may be called from any thread.
#pragma once

#include <ctime>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>

#include "engine/base/status.h"
#include "engine/unicode/traced_text.h"

namespace colibri {

// Entries of a template's context that name the model's own tokens. All other entries are data.
inline constexpr std::string_view kTemplateTokens[] = {
    "bos_token", "eos_token", "unk_token", "sep_token", "pad_token", "cls_token", "mask_token"};

// Checks that `args` can be additional variables of a chat template: null, or an object that sets
// no variable of the chat or the model. Errors: InvalidArgument.
Status checkTemplateArgs(const nlohmann::ordered_json& args);

class ChatTemplate {
public:
    // Errors: BadInput "name:line:column: what".
    static Result<std::unique_ptr<ChatTemplate>> parse(std::string_view source,
                                                       const std::string& name);
    ~ChatTemplate();

    struct RenderOptions {
        std::optional<std::tm> now;  // the time of strftime_now; the local time if empty
    };

    // `context` is what the reference passes: {"messages": [...], "tools": [...],
    // "add_generation_prompt": true, "bos_token": "...", ...}; key order is kept. As in the
    // reference, null entries of a message are omitted, its reasoning appears under each of the
    // names that templates use, and absent `tools` and `documents` are none. Steps, memory and
    // output size are bounded: a hostile template gives BadInput. raise_exception gives its
    // message. Errors: BadInput "name:line:column: what".
    Result<std::string> render(const nlohmann::ordered_json& context) const {
        return render(context, {});
    }
    Result<std::string> render(const nlohmann::ordered_json& context,
                               const RenderOptions& options) const;
    // The same text, with the bytes marked that came from the context and not from the template:
    // the contents, names and unusual roles of messages, tools, and every other string except
    // kTemplateTokens. jinja/value.h documents how precisely each operation is traced.
    Result<TracedText> renderTraced(const nlohmann::ordered_json& context,
                                    const RenderOptions& options) const;

private:
    ChatTemplate();
    struct Impl;
    std::unique_ptr<const Impl> m_impl;
};

}  // namespace colibri
