// SPDX-License-Identifier: Apache-2.0
// The chat templates of a checkpoint, from all files that can contain them, and the default one.
#pragma once

#include <filesystem>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "engine/base/status.h"

namespace colibri {

struct NamedTemplate {
    std::string name;  // "default" if it has none
    std::string text;
    std::string from;  // the file, or the key of a GGUF
};

inline constexpr const char* kMoreTemplates = "additional_chat_templates";  // a folder
// Whether NAME.jinja is a file name everywhere: letters, digits, '-', '_' and '.' within.
bool isTemplateFileName(const std::string& name);

// chat_template.jinja and additional_chat_templates/NAME.jinja; without these the templates of
// tokenizer_config.json (one text, a list of named ones, or an object), and without these
// chat_template.json's. Errors: a file that cannot be read, or that is something else.
Result<std::vector<NamedTemplate>> hfTemplates(const std::filesystem::path& folder,
                                               const nlohmann::json& tokenizerConfig);

// The template to include; nothing if there is none. `choice`: empty, the name of one of
// them, or a file. Adds a note if there was a choice. Errors: InvalidArgument when
// the choice is neither a name (they are listed) nor a file.
Result<std::optional<std::string>> chooseTemplate(const std::vector<NamedTemplate>& all,
                                                  const std::string& choice,
                                                  std::vector<std::string>& notes);

}  // namespace colibri
