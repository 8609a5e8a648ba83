// SPDX-License-Identifier: Apache-2.0
// Renders a model's chat template as Jinja2 does in the reference (trim_blocks, lstrip_blocks,
// loop controls). Immutable after parsing; render may be called from any thread.
#pragma once

#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

#include "engine/base/status.h"

namespace colibri {

class ChatTemplate {
public:
    // Errors: BadInput "name:line:column: what".
    static Result<std::unique_ptr<ChatTemplate>> parse(std::string_view source,
                                                       const std::string& name);
    ~ChatTemplate();

    // `context` is what the reference passes: {"messages": [...], "tools": [...],
    // "add_generation_prompt": true, "bos_token": "...", ...}; key order is kept. Bounded in steps and output size
    // (a hostile template ends with BadInput). raise_exception ends with its message.
    Result<std::string> render(const nlohmann::ordered_json& context) const;

private:
    ChatTemplate();
    struct Impl;
    std::unique_ptr<const Impl> m_impl;
};

}  // namespace colibri
