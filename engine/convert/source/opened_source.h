// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include "engine/base/status.h"
#include "engine/convert/source/families.h"
#include "engine/convert/source/source.h"
#include "engine/model/config.h"

namespace colibri {

// An opened checkpoint: the data that all formats have in common.
struct OpenedSource {
    Checkpoint checkpoint;
    ModelConfig config;
    const Naming* naming = nullptr;
    StackForm stack = StackForm::Rows;  // of stacked experts
    std::array<int64_t, 2> fp8Block{};  // rows and columns per scale
    bool tiedKnown = true;              // config.tiedEmbeddings comes from the source
    bool pairedRope = false;            // q and k rows are stored as rotated pairs
    int64_t extraLayers = 0;            // layers after the last one; ignored
    std::string kind;                   // "Hugging Face safetensors", "GGUF"
    std::string fingerprint;
    std::vector<std::pair<std::string, std::string>> extraFiles;  // name, content
    std::string configText, generationText;  // of a Hugging Face checkpoint; empty: none
    std::filesystem::path routerTable;       // a router_table.bin to include; empty: none
    // Ok, or why there is no usable tokenizer or chat template: Unsupported if the model can be
    // converted anyway, BadInput for a damaged file.
    Status tokenizerProblem, templateProblem;
    std::vector<std::string> notes;  // for the user: what was chosen or left out
};

}  // namespace colibri
