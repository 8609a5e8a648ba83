// SPDX-License-Identifier: Apache-2.0
// Renders a model's chat template as Jinja2 does in the reference (trim_blocks, lstrip_blocks,
// loop controls). Immutable after parsing; render may be called from any thread.
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

// Whether `args` can be further variables of a chat's template: an object that sets nothing of
// what the chat and the model set themselves, or null. Errors: InvalidArgument.
Status checkTemplateArgs(const nlohmann::ordered_json& args);

class ChatTemplate {
public:
    // Errors: BadInput "name:line:column: what".
    static Result<std::unique_ptr<ChatTemplate>> parse(std::string_view source,
                                                       const std::string& name);
    ~ChatTemplate();

    struct RenderOptions {
        std::optional<std::tm> now;  // what strftime_now tells; the local time where empty
    };

    // `context` is what the reference passes: {"messages": [...], "tools": [...],
    // "add_generation_prompt": true, "bos_token": "...", ...}; key order is kept. As there, a
    // message's null entries are left out, its reasoning is given under each of the names that
    // templates use, and `tools`, `documents` are none where absent. Bounded in steps, memory and
    // output size: a hostile template ends with BadInput. raise_exception ends with its message.
    // Errors: BadInput "name:line:column: what".
    Result<std::string> render(const nlohmann::ordered_json& context) const {
        return render(context, {});
    }
    Result<std::string> render(const nlohmann::ordered_json& context,
                               const RenderOptions& options) const;
    // The same text, which knows what of it came from the context and not from the template: the
    // contents, names and unusual roles of messages, tools, and every other string but
    // kTemplateTokens. jinja/value.h says how closely each operation is traced.
    Result<TracedText> renderTraced(const nlohmann::ordered_json& context,
                                    const RenderOptions& options) const;

private:
    ChatTemplate();
    struct Impl;
    std::unique_ptr<const Impl> m_impl;
};

}  // namespace colibri
