// SPDX-License-Identifier: Apache-2.0
// The families that the converters support. A family is a row: the meaning of its config keys, how
// its router and attention are built, and how its experts are stacked. A new family is a new row;
// only a family whose config needs arithmetic gets a `finish` function. One table has the tensor
// names of all families, since savers use different names.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "engine/base/json_fields.h"
#include "engine/model/config.h"

namespace colibri {

// Where a container tensor is in a checkpoint: "{L}" is the layer, "{e}" the expert, "|"
// separates alternatives, tried in order, and "[i/n]" after a name takes the i-th of n equal
// parts of its rows.
struct NameRow {
    const char* part;  // "embed", "q", "router", ... as in the container
    const char* names;
};

struct ExpertNames {
    const char *w1, *w3, *w2;                                    // one tensor per expert
    const char *stackedW13, *stackedW1, *stackedW3, *stackedW2;  // [E, 2I, H], [E, I, H], [E, H, I]
};

struct Naming {
    std::span<const NameRow> rows;
    ExpertNames experts;
};

enum class RenormRule { Always, Never, ByConfig };  // ByConfig: norm_topk_prob
// Plain: sliding_window. Gated: only with use_sliding_window. Layered: as Gated, and only from
// layer max_window_layers on; Alternating: every second one before it. In all of them, layer_types
// overrides the rule if present.
enum class WindowRule { None, Plain, Gated, Layered, Alternating };
enum class BiasRule { None, ByConfig, Always };  // of q, k and v
// Which layers have experts. All; Steps: decoder_sparse_step and mlp_only_layers; FirstDense:
// first_k_dense_replace and moe_layer_freq; Span: moe_layer_start_index, _end_index, _interval;
// Listed: moe_layers or interleave_moe_layer_step; None: a dense model.
enum class LayerRule { All, Steps, FirstDense, Span, Listed, None };
// Stacked experts as [E, out, in], as [E, in, out], or the latter with gate and up in turn.
enum class StackForm { Rows, Columns, Interleaved };

struct FamilyRow {
    const char* modelType;           // config.json's model_type
    const char* title;               // common name
    const char* ggufArch = nullptr;  // general.architecture
    bool ggufPairedRope = false;     // GGUF stores q and k rows as rotated pairs
    bool ggufRenorm = true;          // the default of its runtime if the GGUF does not say
    LayerRule layers = LayerRule::All;
    const char* expertSizeKeys = "moe_intermediate_size";  // alternatives, as in NameRow
    const char* denseSizeKeys = "intermediate_size";
    const char* sharedSizeKeys = nullptr;  // the shared expert's size, or its number of experts
    const char* sharedCountKeys = nullptr;
    bool sharedGate = false;
    StackForm stack = StackForm::Rows;

    RoutingSpec routing = {};  // the values that the config does not give
    RenormRule renorm = RenormRule::ByConfig;
    bool renormDefault = false;  // norm_topk_prob if absent
    bool grouped = false;        // reads n_group and topk_group
    bool scaled = false;         // reads routed_scaling_factor

    QkNorm qkNorm = QkNorm::None;
    const char* qkNormKey = nullptr;  // a flag that turns it on (absent: off)
    bool qkNormAfterRope = false;
    NormKind norm = NormKind::Rms;
    WindowRule window = WindowRule::None;
    bool windowDefault = false;  // use_sliding_window if absent
    BiasRule bias = BiasRule::ByConfig;
    bool biasDefault = false;  // attention_bias if absent
    bool sinks = false;
    bool expertBias = false;
    bool clipQkv = false;        // reads clip_qkv
    bool partialRotary = false;  // reads partial_rotary_factor
    bool interleavedRope = false;
    bool latent = false;  // reads kv_lora_rank and related keys: MLA
    // Config keys that `finish` reads; in other families they must have their neutral value.
    const char* reads = "";

    bool tied = false;  // tie_word_embeddings if absent
    double defaultEps = 1e-6, defaultTheta = 1e4;
    int64_t defaultPositions = 4096;
    // Arithmetic that the columns cannot express; may be nullptr.
    void (*finish)(Fields& config, ModelConfig& out) = nullptr;
};

std::span<const FamilyRow> families();
const FamilyRow* familyByModelType(std::string_view modelType);
std::string supportedModelTypes();  // "mixtral, olmoe, qwen3_moe", for messages
const Naming& hfNaming();
const Naming& ggufNaming();

std::vector<std::string> splitAlternatives(std::string_view names);
// YaRN's attention factor for a context extension: 1 for a factor up to 1.
double yarnScale(double factor, double mscale);
// Replaces {L} and {e}.
std::string fillName(std::string_view pattern, int64_t layer, int64_t expert);

}  // namespace colibri
