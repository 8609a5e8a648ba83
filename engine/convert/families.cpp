// SPDX-License-Identifier: Apache-2.0
#include "engine/convert/families.h"

namespace colibri {

namespace {

constexpr NameRow kHfRows[] = {
    {"embed", "model.embed_tokens.weight"},
    {"norm", "model.norm.weight"},
    {"head", "lm_head.weight"},
    {"attn_norm", "model.layers.{L}.input_layernorm.weight"},
    {"q", "model.layers.{L}.self_attn.q_proj.weight"},
    {"k", "model.layers.{L}.self_attn.k_proj.weight"},
    {"v", "model.layers.{L}.self_attn.v_proj.weight"},
    {"o", "model.layers.{L}.self_attn.o_proj.weight"},
    {"q_norm", "model.layers.{L}.self_attn.q_norm.weight"},
    {"k_norm", "model.layers.{L}.self_attn.k_norm.weight"},
    {"q_bias", "model.layers.{L}.self_attn.q_proj.bias"},
    {"k_bias", "model.layers.{L}.self_attn.k_proj.bias"},
    {"v_bias", "model.layers.{L}.self_attn.v_proj.bias"},
    {"o_bias", "model.layers.{L}.self_attn.o_proj.bias"},
    {"ffn_norm", "model.layers.{L}.post_attention_layernorm.weight"},
    {"router", "model.layers.{L}.mlp.gate.weight|model.layers.{L}.block_sparse_moe.gate.weight|"
               "model.layers.{L}.gate.weight|model.layers.{L}.router.weight"},
    {"router_bias", "model.layers.{L}.mlp.gate.e_score_correction_bias"},
    {"gate", "model.layers.{L}.mlp.gate_proj.weight"},
    {"up", "model.layers.{L}.mlp.up_proj.weight"},
    {"down", "model.layers.{L}.mlp.down_proj.weight"},
};

// Every family is read with either spelling: savers rename block_sparse_moe to mlp, and back. The
// spellings after these are those of tools that cut models into experts by themselves.
#define COLIBRI_EXPERT_NAMES(hf, w)                               \
    "model.layers.{L}.mlp.experts.{e}." hf ".weight|"             \
    "model.layers.{L}.block_sparse_moe.experts.{e}." w ".weight|" \
    "model.layers.{L}.mlp.experts.{e}." w ".weight|"              \
    "model.layers.{L}.expert_{e}." w ".weight|"                   \
    "model.layers.{L}.expert_{e}.expert_feedforward." w ".weight|" \
    "model.layers.{L}.expert_feedforward.expert_{e}." w ".weight|" \
    "model.layers.{L}.expert_feedforward.{e}." w ".weight|"       \
    "model.layers.{L}.expert_feedforward_{e}." w ".weight"

constexpr ExpertNames kHfExperts = {
    COLIBRI_EXPERT_NAMES("gate_proj", "w1"),
    COLIBRI_EXPERT_NAMES("up_proj", "w3"),
    COLIBRI_EXPERT_NAMES("down_proj", "w2"),
    "model.layers.{L}.mlp.experts.gate_up_proj|"
    "model.layers.{L}.block_sparse_moe.experts.gate_up_proj",
    "", "",
    "model.layers.{L}.mlp.experts.down_proj|"
    "model.layers.{L}.block_sparse_moe.experts.down_proj",
};
#undef COLIBRI_EXPERT_NAMES

constexpr Naming kHfNaming = {kHfRows, kHfExperts};

constexpr NameRow kGgufRows[] = {
    {"embed", "token_embd.weight"},
    {"norm", "output_norm.weight"},
    {"head", "output.weight"},
    {"attn_norm", "blk.{L}.attn_norm.weight"},
    {"q", "blk.{L}.attn_q.weight"},
    {"k", "blk.{L}.attn_k.weight"},
    {"v", "blk.{L}.attn_v.weight"},
    {"o", "blk.{L}.attn_output.weight"},
    {"q_norm", "blk.{L}.attn_q_norm.weight"},
    {"k_norm", "blk.{L}.attn_k_norm.weight"},
    {"q_bias", "blk.{L}.attn_q.bias"},
    {"k_bias", "blk.{L}.attn_k.bias"},
    {"v_bias", "blk.{L}.attn_v.bias"},
    {"o_bias", "blk.{L}.attn_output.bias"},
    {"ffn_norm", "blk.{L}.ffn_norm.weight"},
    {"router", "blk.{L}.ffn_gate_inp.weight"},
    {"router_bias", "blk.{L}.exp_probs_b.bias"},
    {"gate", "blk.{L}.ffn_gate.weight"},
    {"up", "blk.{L}.ffn_up.weight"},
    {"down", "blk.{L}.ffn_down.weight"},
};

constexpr ExpertNames kGgufExperts = {
    "blk.{L}.ffn_gate.{e}.weight",     // files from before experts were stacked
    "blk.{L}.ffn_up.{e}.weight",
    "blk.{L}.ffn_down.{e}.weight",
    "blk.{L}.ffn_gate_up_exps.weight",
    "blk.{L}.ffn_gate_exps.weight",
    "blk.{L}.ffn_up_exps.weight",
    "blk.{L}.ffn_down_exps.weight",
};

constexpr Naming kGgufNaming = {kGgufRows, kGgufExperts};

constexpr FamilyRow kFamilies[] = {
    {.modelType = "mixtral",
     .ggufArch = "llama",
     .ggufPairedRope = true,
     .naming = &kHfNaming,
     .qkNorm = QkNorm::None,
     .renorm = RenormRule::Always,
     .window = WindowRule::Plain,
     .clipQkv = false,
     .sparseSteps = false,
     .biasKey = false,
     .expertSizeKeys = "intermediate_size",
     .interleavedRope = false,
     .defaultEps = 1e-5,
     .defaultTheta = 1e6,
     .defaultPositions = 131072,
     .finish = nullptr},
    {.modelType = "olmoe",
     .ggufArch = "olmoe",
     .ggufPairedRope = false,
     .naming = &kHfNaming,
     .qkNorm = QkNorm::FullWidth,
     .renorm = RenormRule::ByConfig,
     .window = WindowRule::None,
     .clipQkv = true,
     .sparseSteps = false,
     .biasKey = true,
     .expertSizeKeys = "intermediate_size",
     .interleavedRope = false,
     .defaultEps = 1e-5,
     .defaultTheta = 1e4,
     .defaultPositions = 4096,
     .finish = nullptr},
    {.modelType = "qwen3_moe",
     .ggufArch = "qwen3moe",
     .ggufPairedRope = false,
     .naming = &kHfNaming,
     .qkNorm = QkNorm::PerHead,
     .renorm = RenormRule::ByConfig,
     .window = WindowRule::Gated,
     .clipQkv = false,
     .sparseSteps = true,
     .biasKey = true,
     .expertSizeKeys = "moe_intermediate_size",
     .interleavedRope = false,
     .defaultEps = 1e-6,
     .defaultTheta = 1e4,
     .defaultPositions = 32768,
     .finish = nullptr},
};

}  // namespace

std::span<const FamilyRow> families() { return kFamilies; }

const FamilyRow* familyByModelType(std::string_view modelType) {
    for (const FamilyRow& row : kFamilies) {
        if (modelType == row.modelType) return &row;
    }
    return nullptr;
}

const FamilyRow* familyByGgufArch(std::string_view arch) {
    for (const FamilyRow& row : kFamilies) {
        if (row.ggufArch && arch == row.ggufArch) return &row;
    }
    return nullptr;
}

std::string supportedModelTypes() {
    std::string out;
    for (const FamilyRow& row : kFamilies) {
        if (!out.empty()) out += ", ";
        out += row.modelType;
    }
    return out;
}

const Naming& ggufNaming() { return kGgufNaming; }

std::vector<std::string> splitAlternatives(std::string_view names) {
    std::vector<std::string> out;
    while (!names.empty()) {
        size_t bar = names.find('|');
        out.emplace_back(names.substr(0, bar));
        if (bar == std::string_view::npos) break;
        names.remove_prefix(bar + 1);
    }
    return out;
}

std::string fillName(std::string_view pattern, int64_t layer, int64_t expert) {
    std::string out;
    out.reserve(pattern.size() + 8);
    for (size_t i = 0; i < pattern.size(); ++i) {
        if (pattern.substr(i, 3) == "{L}") {
            out += std::to_string(layer);
            i += 2;
        } else if (pattern.substr(i, 3) == "{e}") {
            out += std::to_string(expert);
            i += 2;
        } else {
            out += pattern[i];
        }
    }
    return out;
}

}  // namespace colibri
