// SPDX-License-Identifier: GPL-3.0-or-later
// Fuzz targets: all parsers of untrusted files.
#pragma once

#include <array>
#include <string_view>

namespace colibri::fuzz {

// Each function accepts any bytes and returns. A violated invariant aborts the program.
void safetensors(std::string_view bytes);   // a file from its start
void gguf(std::string_view bytes);          // a file from its start, and the tokenizer in it
void tokenizer(std::string_view bytes);     // tokenizer.json, a zero byte, a text
void chatTemplate(std::string_view bytes);  // a template, a zero byte, the messages as JSON
void hfConfig(std::string_view bytes);      // config.json, a zero byte, generation_config.json
void modelJson(std::string_view bytes);     // model.json of a container

struct Target {
    std::string_view name;  // also of the folder in corpus/
    void (*run)(std::string_view bytes);
};
inline constexpr std::array<Target, 6> kTargets = {{{"safetensors", safetensors},
                                                    {"gguf", gguf},
                                                    {"tokenizer", tokenizer},
                                                    {"template", chatTemplate},
                                                    {"config", hfConfig},
                                                    {"model_json", modelJson}}};

}  // namespace colibri::fuzz
