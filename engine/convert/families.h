// SPDX-License-Identifier: Apache-2.0
// The families the converters know. A family is a row: which config keys mean what, how its
// router and attention are built, and under which names its tensors lie. A new family is a new
// row; only a family whose config needs arithmetic gets a `finish` function.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "engine/model/config.h"
#include "engine/model/json_fields.h"

namespace colibri {

// Where a container tensor lies in a checkpoint: "{L}" is the layer, "{e}" the expert, and "|"
// separates alternatives, tried in order.
struct NameRow {
    const char* part;                    // "embed", "q", "router", ... as in the container
    const char* names;
};

struct ExpertNames {
    const char *w1, *w3, *w2;            // one tensor per expert
    const char *stackedW13, *stackedW1, *stackedW3, *stackedW2;  // [E, 2I, H], [E, I, H], [E, H, I]
};

struct Naming {
    std::span<const NameRow> rows;
    ExpertNames experts;
};

enum class RenormRule { Always, Never, ByConfig };   // ByConfig: norm_topk_prob, absent = false
enum class WindowRule { None, Plain, Gated };        // Gated: only with use_sliding_window

struct FamilyRow {
    const char* modelType;               // config.json's model_type
    const char* ggufArch;                // general.architecture
    bool ggufPairedRope;                 // that GGUF stores q and k rows as rotated pairs
    const Naming* naming;
    QkNorm qkNorm;
    RenormRule renorm;
    WindowRule window;
    bool clipQkv;                        // reads clip_qkv
    bool sparseSteps;                    // mlp_only_layers and decoder_sparse_step: dense layers
    bool biasKey;                        // reads attention_bias
    const char* expertSizeKeys;          // alternatives, as in NameRow
    bool interleavedRope;
    double defaultEps, defaultTheta;
    int64_t defaultPositions;
    // What the columns cannot say; may be nullptr.
    void (*finish)(Fields& config, ModelConfig& out);
};

std::span<const FamilyRow> families();
const FamilyRow* familyByModelType(std::string_view modelType);
const FamilyRow* familyByGgufArch(std::string_view arch);
std::string supportedModelTypes();       // "mixtral, olmoe, qwen3_moe", for messages
const Naming& ggufNaming();

std::vector<std::string> splitAlternatives(std::string_view names);
// With {L} and {e} filled in.
std::string fillName(std::string_view pattern, int64_t layer, int64_t expert);

}  // namespace colibri
