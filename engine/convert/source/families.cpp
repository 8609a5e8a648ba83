// SPDX-License-Identifier: Apache-2.0
#include "engine/convert/source/families.h"

#include <algorithm>
#include <cmath>

namespace colibri {

namespace {

using Json = nlohmann::json;

// Arithmetic on a config that the columns of a row cannot express.

void finishGranite(Fields& f, ModelConfig& c) {
    c.embeddingScale = f.number("embedding_multiplier", 0, 1e9, 1.0);
    c.residualScale = f.number("residual_multiplier", 0, 1e9, 1.0);
    c.attentionScale = f.number("attention_multiplier", 0, 1e9, 1.0);
    c.logitScale = f.number("logits_scaling", 0, 1e9, 1.0);
}

void finishGptOss(Fields& f, ModelConfig& c) {
    c.activation = Activation::ClampedSwiglu;
    c.activationLimit = f.number("swiglu_limit", 0, 1e30, 7.0);
    c.activationAlpha = f.number("swiglu_alpha", 0, 1e30, 1.702);
}

// The scale of q . k grows with YaRN's context extension.
void finishDeepseek(Fields& f, ModelConfig& c) {
    double m = 1;
    for (const char* key : {"rope_scaling", "rope_parameters"}) {  // a config may have both
        const Json* json = f.find(key);
        if (!json || c.rope.type == "default") continue;
        Fields r(*json, key);
        const double all = r.number("mscale_all_dim", 0, 1e9, 0.0);
        m = all != 0 ? yarnScale(c.rope.factor, all) : 1;
        if (!r.status().ok()) f.fail(r.status().message());
    }
    c.attentionScale = m * m / std::sqrt(double(c.headDim));
}

void finishDeepseekV2(Fields& f, ModelConfig& c) {
    const std::string method = f.text("topk_method", "greedy");
    if (method == "greedy") {
        c.routing.groups = c.routing.groupTopK = 1;
    } else if (method != "group_limited_greedy") {
        f.fail("topk_method \"" + method + "\" is not supported", Code::Unsupported);
    }
    finishDeepseek(f, c);
}

void finishPhimoe(Fields& f, ModelConfig& c) {
    c.routing.sparseJitter = f.number("router_jitter_noise", 0, 1e3, 0.01);
    c.headBias = f.flag("lm_head_bias", false);
    if (c.topK != 2) f.fail("num_experts_per_tok of phimoe must be 2", Code::Unsupported);
}

void finishErnie(Fields& f, ModelConfig& c) {
    c.routing.renormEps = f.number("moe_norm_min", 0, 1, 1e-12);
    c.attentionBias = c.ffnBias = c.headBias = f.flag("use_bias", false);
}

void finishLlama4(Fields& f, ModelConfig& c) {
    c.sharedSize = c.expertSize;
    const int64_t interval = f.integer("no_rope_layer_interval", 1, 1 << 20, 4);
    c.ropeLayer.assign(size_t(c.numLayers), true);
    for (int64_t i = 0; i < c.numLayers; ++i) c.ropeLayer[size_t(i)] = (i + 1) % interval != 0;
    if (const Json* list = f.array("no_rope_layers", true); list && !list->empty()) {
        for (size_t i = 0; i < std::min(list->size(), c.ropeLayer.size()); ++i) {
            c.ropeLayer[i] = wholeNumber((*list)[i]).value_or(1) != 0;
        }
    }
    c.slidingWindow = f.integer("attention_chunk_size", 0, int64_t(1) << 31, 0);
    c.chunkedWindow = c.slidingWindow > 0;
    if (c.chunkedWindow && c.windowLayer.empty()) c.windowLayer = c.ropeLayer;
    if (f.flag("attn_temperature_tuning", true)) {
        c.queryScale = f.number("attn_scale", 0, 1e6, 0.1);
        c.queryScalePositions = f.number("floor_scale", 1, 1e15, 8192.0);
    }
}

constexpr NameRow kHfRows[] = {
    {"embed", "model.embed_tokens.weight"},
    {"norm", "model.norm.weight"},
    {"norm_bias", "model.norm.bias"},
    {"head", "lm_head.weight"},
    {"head_bias", "lm_head.bias"},
    {"attn_norm", "model.layers.{L}.input_layernorm.weight"},
    {"attn_norm_bias", "model.layers.{L}.input_layernorm.bias"},
    {"q", "model.layers.{L}.self_attn.q_proj.weight"},
    {"k", "model.layers.{L}.self_attn.k_proj.weight"},
    {"v", "model.layers.{L}.self_attn.v_proj.weight"},
    {"o", "model.layers.{L}.self_attn.o_proj.weight"},
    {"q_norm",
     "model.layers.{L}.self_attn.q_norm.weight|"
     "model.layers.{L}.self_attn.query_layernorm.weight"},
    {"k_norm",
     "model.layers.{L}.self_attn.k_norm.weight|"
     "model.layers.{L}.self_attn.key_layernorm.weight"},
    {"q_bias", "model.layers.{L}.self_attn.q_proj.bias"},
    {"k_bias", "model.layers.{L}.self_attn.k_proj.bias"},
    {"v_bias", "model.layers.{L}.self_attn.v_proj.bias"},
    {"o_bias", "model.layers.{L}.self_attn.o_proj.bias"},
    {"sinks", "model.layers.{L}.self_attn.sinks"},
    {"q_a", "model.layers.{L}.self_attn.q_a_proj.weight"},
    {"q_a_norm", "model.layers.{L}.self_attn.q_a_layernorm.weight"},
    {"q_b", "model.layers.{L}.self_attn.q_b_proj.weight"},
    {"kv_a", "model.layers.{L}.self_attn.kv_a_proj_with_mqa.weight"},
    {"kv_a_norm", "model.layers.{L}.self_attn.kv_a_layernorm.weight"},
    {"kv_b", "model.layers.{L}.self_attn.kv_b_proj.weight"},  // contains k_up and v_up
    {"ffn_norm", "model.layers.{L}.post_attention_layernorm.weight"},
    {"ffn_norm_bias", "model.layers.{L}.post_attention_layernorm.bias"},
    {"router",
     "model.layers.{L}.mlp.gate.weight|model.layers.{L}.block_sparse_moe.gate.weight|"
     "model.layers.{L}.mlp.router.weight|model.layers.{L}.mlp.gate.wg.weight|"
     "model.layers.{L}.block_sparse_moe.router.layer.weight|"
     "model.layers.{L}.block_sparse_moe.router.weight|"
     "model.layers.{L}.feed_forward.router.weight|"
     "model.layers.{L}.gate.weight|model.layers.{L}.router.weight"},
    {"router_logit_bias", "model.layers.{L}.mlp.router.bias"},
    {"router_bias",
     "model.layers.{L}.mlp.gate.e_score_correction_bias|"
     "model.layers.{L}.mlp.e_score_correction_bias|"
     "model.layers.{L}.block_sparse_moe.e_score_correction_bias|"
     "model.layers.{L}.mlp.moe_statics.e_score_correction_bias|"
     "model.layers.{L}.mlp.gate.moe_statics.e_score_correction_bias"},
    // Interleaved with up's.
    {"expert_gate_bias", "model.layers.{L}.mlp.experts.gate_up_proj_bias"},
    {"expert_up_bias", "model.layers.{L}.mlp.experts.gate_up_proj_bias"},
    {"expert_down_bias", "model.layers.{L}.mlp.experts.down_proj_bias"},
    {"gate",
     "model.layers.{L}.mlp.gate_proj.weight|model.layers.{L}.feed_forward.gate_proj.weight"},
    {"up", "model.layers.{L}.mlp.up_proj.weight|model.layers.{L}.feed_forward.up_proj.weight"},
    {"down",
     "model.layers.{L}.mlp.down_proj.weight|model.layers.{L}.feed_forward.down_proj.weight"},
    {"gate_bias", "model.layers.{L}.mlp.gate_proj.bias"},
    {"up_bias", "model.layers.{L}.mlp.up_proj.bias"},
    {"down_bias", "model.layers.{L}.mlp.down_proj.bias"},
#define COLIBRI_SHARED_NAMES(matrix)              \
    "model.layers.{L}.mlp.shared_expert." matrix  \
    "_proj.weight|"                               \
    "model.layers.{L}.mlp.shared_experts." matrix \
    "_proj.weight|"                               \
    "model.layers.{L}.mlp.shared_mlp." matrix     \
    "_proj.weight|"                               \
    "model.layers.{L}.feed_forward.shared_expert." matrix "_proj.weight|"
    {"shared_gate",
     COLIBRI_SHARED_NAMES("gate") "model.layers.{L}.shared_mlp.input_linear.weight[0/2]"},
    {"shared_up",
     COLIBRI_SHARED_NAMES("up") "model.layers.{L}.shared_mlp.input_linear.weight[1/2]"},
    {"shared_down",
     COLIBRI_SHARED_NAMES("down") "model.layers.{L}.shared_mlp.output_linear.weight"},
#undef COLIBRI_SHARED_NAMES
    {"shared_gate_bias", "model.layers.{L}.mlp.shared_experts.gate_proj.bias"},
    {"shared_up_bias", "model.layers.{L}.mlp.shared_experts.up_proj.bias"},
    {"shared_down_bias", "model.layers.{L}.mlp.shared_experts.down_proj.bias"},
    {"shared_router", "model.layers.{L}.mlp.shared_expert_gate.weight"},
};

// All families accept all spellings, since savers rename block_sparse_moe to mlp and vice versa.
// The last spellings come from tools that split models into experts.
#define COLIBRI_EXPERT_NAMES(hf, w)                     \
    "model.layers.{L}.mlp.experts.{e}." hf              \
    ".weight|"                                          \
    "model.layers.{L}.block_sparse_moe.experts.{e}." w  \
    ".weight|"                                          \
    "model.layers.{L}.mlp.experts.{e}." w               \
    ".weight|"                                          \
    "model.layers.{L}.expert_{e}." w                    \
    ".weight|"                                          \
    "model.layers.{L}.expert_{e}.expert_feedforward." w \
    ".weight|"                                          \
    "model.layers.{L}.expert_feedforward.expert_{e}." w \
    ".weight|"                                          \
    "model.layers.{L}.expert_feedforward.{e}." w        \
    ".weight|"                                          \
    "model.layers.{L}.expert_feedforward_{e}." w ".weight"

// A stack in MXFP4 has separate tensors for blocks and scales, with the suffixes "_blocks" and
// "_scales".
constexpr ExpertNames kHfExperts = {
    COLIBRI_EXPERT_NAMES("gate_proj", "w1"),
    COLIBRI_EXPERT_NAMES("up_proj", "w3"),
    COLIBRI_EXPERT_NAMES("down_proj", "w2"),
    "model.layers.{L}.mlp.experts.gate_up_proj|"
    "model.layers.{L}.block_sparse_moe.experts.gate_up_proj|"
    "model.layers.{L}.block_sparse_moe.input_linear.weight|"
    "model.layers.{L}.feed_forward.experts.gate_up_proj",
    "",
    "",
    "model.layers.{L}.mlp.experts.down_proj|"
    "model.layers.{L}.block_sparse_moe.experts.down_proj|"
    "model.layers.{L}.block_sparse_moe.output_linear.weight|"
    "model.layers.{L}.feed_forward.experts.down_proj",
};
#undef COLIBRI_EXPERT_NAMES

constexpr Naming kHfNaming = {kHfRows, kHfExperts};

constexpr NameRow kGgufRows[] = {
    {"embed", "token_embd.weight"},
    {"norm", "output_norm.weight"},
    {"norm_bias", "output_norm.bias"},
    {"head", "output.weight"},
    {"head_bias", "output.bias"},
    {"attn_norm", "blk.{L}.attn_norm.weight"},
    {"attn_norm_bias", "blk.{L}.attn_norm.bias"},
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
    {"sinks", "blk.{L}.attn_sinks.weight"},
    {"q_a", "blk.{L}.attn_q_a.weight"},
    {"q_a_norm", "blk.{L}.attn_q_a_norm.weight"},
    {"q_b", "blk.{L}.attn_q_b.weight"},
    {"kv_a", "blk.{L}.attn_kv_a_mqa.weight"},
    {"kv_a_norm", "blk.{L}.attn_kv_a_norm.weight"},
    {"kv_b", "blk.{L}.attn_kv_b.weight"},
    {"k_up", "blk.{L}.attn_k_b.weight"},
    {"v_up", "blk.{L}.attn_v_b.weight"},
    {"ffn_norm", "blk.{L}.ffn_norm.weight|blk.{L}.post_attention_norm.weight"},
    {"ffn_norm_bias", "blk.{L}.ffn_norm.bias"},
    {"router", "blk.{L}.ffn_gate_inp.weight"},
    {"router_logit_bias", "blk.{L}.ffn_gate_inp.bias"},
    {"router_bias", "blk.{L}.exp_probs_b.bias"},
    {"expert_gate_bias", "blk.{L}.ffn_gate_exps.bias"},
    {"expert_up_bias", "blk.{L}.ffn_up_exps.bias"},
    {"expert_down_bias", "blk.{L}.ffn_down_exps.bias"},
    {"gate_bias", "blk.{L}.ffn_gate.bias"},
    {"up_bias", "blk.{L}.ffn_up.bias"},
    {"down_bias", "blk.{L}.ffn_down.bias"},
    {"shared_gate", "blk.{L}.ffn_gate_shexp.weight"},
    {"shared_up", "blk.{L}.ffn_up_shexp.weight"},
    {"shared_down", "blk.{L}.ffn_down_shexp.weight"},
    {"shared_router", "blk.{L}.ffn_gate_inp_shexp.weight"},
    {"gate", "blk.{L}.ffn_gate.weight"},
    {"up", "blk.{L}.ffn_up.weight"},
    {"down", "blk.{L}.ffn_down.weight"},
};

constexpr ExpertNames kGgufExperts = {
    "blk.{L}.ffn_gate.{e}.weight",  // older files with one tensor per expert
    "blk.{L}.ffn_up.{e}.weight",       "blk.{L}.ffn_down.{e}.weight",
    "blk.{L}.ffn_gate_up_exps.weight", "blk.{L}.ffn_gate_exps.weight",
    "blk.{L}.ffn_up_exps.weight",      "blk.{L}.ffn_down_exps.weight",
};

constexpr Naming kGgufNaming = {kGgufRows, kGgufExperts};

// Experts are chosen by scores with a bias and weighted without it (DeepSeek-V3 and similar
// models).
constexpr RoutingSpec kSigmoidBiased = {.scoreFn = ScoreFn::Sigmoid,
                                        .selectBias = true,
                                        .groupScore = GroupScore::Top2Sum,
                                        .renormEps = 1e-20};
constexpr RoutingSpec kLogitSoftmax = {.scoreFn = ScoreFn::Logit,
                                       .weightSource = WeightSource::LogitSoftmax};

constexpr FamilyRow kFamilies[] = {
    {.modelType = "mixtral",
     .title = "Mixtral",
     .ggufArch = "llama",
     .ggufPairedRope = true,
     .expertSizeKeys = "intermediate_size",
     .renorm = RenormRule::Always,
     .window = WindowRule::Plain,
     .bias = BiasRule::None,
     .defaultEps = 1e-5,
     .defaultTheta = 1e6,
     .defaultPositions = 131072},
    {.modelType = "olmoe",
     .title = "OLMoE",
     .ggufArch = "olmoe",
     .ggufRenorm = false,
     .expertSizeKeys = "intermediate_size",
     .qkNorm = QkNorm::FullWidth,
     .clipQkv = true,
     .defaultEps = 1e-5},
    {.modelType = "qwen3_moe",
     .title = "Qwen3-MoE",
     .ggufArch = "qwen3moe",
     .layers = LayerRule::Steps,
     .qkNorm = QkNorm::PerHead,
     .window = WindowRule::Gated,
     .defaultPositions = 32768},
    {.modelType = "qwen2_moe",
     .title = "Qwen1.5-MoE, Qwen2-MoE",
     .ggufArch = "qwen2moe",
     .ggufRenorm = false,
     .layers = LayerRule::Steps,
     .sharedSizeKeys = "shared_expert_intermediate_size",
     .sharedGate = true,
     .window = WindowRule::Alternating,
     .biasDefault = true,
     .defaultPositions = 32768},
    {.modelType = "granitemoe",
     .title = "Granite MoE",
     .ggufArch = "granitemoe",
     .ggufPairedRope = true,
     .expertSizeKeys = "intermediate_size",
     .routing = kLogitSoftmax,
     .renorm = RenormRule::Never,
     .reads = "embedding_multiplier residual_multiplier attention_multiplier logits_scaling",
     .defaultPositions = 2048,
     .finish = finishGranite},
    {.modelType = "granitemoeshared",
     .title = "Granite MoE, shared expert",
     .ggufArch = "granitemoe",
     .ggufPairedRope = true,
     .expertSizeKeys = "intermediate_size",
     .sharedSizeKeys = "shared_intermediate_size",
     .routing = kLogitSoftmax,
     .renorm = RenormRule::Never,
     .reads = "embedding_multiplier residual_multiplier attention_multiplier logits_scaling",
     .defaultPositions = 2048,
     .finish = finishGranite},
    {.modelType = "deepseek_v2",
     .title = "DeepSeek-V2",
     .ggufArch = "deepseek2",
     .layers = LayerRule::FirstDense,
     .sharedCountKeys = "n_shared_experts",
     .renorm = RenormRule::Never,
     .grouped = true,
     .scaled = true,
     .bias = BiasRule::None,
     .interleavedRope = true,
     .latent = true,
     .reads = "routed_scaling_factor",
     .defaultPositions = 2048,
     .finish = finishDeepseekV2},
    {.modelType = "deepseek_v3",
     .title = "DeepSeek-V3, R1",
     .ggufArch = "deepseek2",
     .ggufRenorm = false,
     .layers = LayerRule::FirstDense,
     .sharedCountKeys = "n_shared_experts",
     .routing = kSigmoidBiased,
     .renormDefault = true,
     .grouped = true,
     .scaled = true,
     .bias = BiasRule::None,
     .interleavedRope = true,
     .latent = true,
     .reads = "routed_scaling_factor",
     .finish = finishDeepseek},
    {.modelType = "gpt_oss",
     .title = "gpt-oss",
     .ggufArch = "gpt-oss",
     .expertSizeKeys = "intermediate_size",
     .stack = StackForm::Interleaved,
     .routing = {.scoreFn = ScoreFn::Logit,
                 .logitBias = true,
                 .weightSource = WeightSource::LogitSoftmax},
     .renorm = RenormRule::Never,
     .window = WindowRule::Plain,
     .biasDefault = true,
     .sinks = true,
     .expertBias = true,
     .reads = "swiglu_limit",
     .defaultEps = 1e-5,
     .defaultTheta = 150000,
     .defaultPositions = 131072,
     .finish = finishGptOss},
    {.modelType = "phimoe",
     .title = "Phi-3.5-MoE",
     .ggufArch = "phimoe",
     .expertSizeKeys = "intermediate_size",
     .routing = {.scoreFn = ScoreFn::Logit, .weightSource = WeightSource::SparseMixer},
     .renorm = RenormRule::Never,
     .norm = NormKind::Layer,
     .window = WindowRule::Plain,
     .defaultEps = 1e-5,
     .defaultTheta = 1e6,
     .defaultPositions = 131072,
     .finish = finishPhimoe},
    {.modelType = "glm4_moe",
     .title = "GLM-4.5 MoE",
     .ggufArch = "glm4moe",
     .ggufRenorm = false,
     .layers = LayerRule::FirstDense,
     .sharedCountKeys = "n_shared_experts",
     .routing = kSigmoidBiased,
     .renormDefault = true,
     .grouped = true,
     .scaled = true,
     .qkNorm = QkNorm::PerHead,
     .qkNormKey = "use_qk_norm",
     .partialRotary = true,
     .reads = "routed_scaling_factor partial_rotary_factor",
     .defaultEps = 1e-5,
     .defaultPositions = 131072},
    {.modelType = "ernie4_5_moe",
     .title = "Ernie 4.5 MoE",
     .ggufArch = "ernie4_5-moe",
     .layers = LayerRule::Span,
     .sharedCountKeys = "moe_num_shared_experts",
     .routing = {.selectBias = true},
     .renorm = RenormRule::Always,
     .bias = BiasRule::None,
     .interleavedRope = true,
     .reads = "use_bias",
     .tied = true,
     .defaultEps = 1e-5,
     .defaultTheta = 500000,
     .defaultPositions = 131072,
     .finish = finishErnie},
    {.modelType = "hunyuan_v1_moe",
     .title = "Hunyuan-A13B",
     .ggufArch = "hunyuan-moe",
     .expertSizeKeys = "moe_intermediate_size|intermediate_size",
     .sharedSizeKeys = "intermediate_size",
     .renorm = RenormRule::Always,
     .qkNorm = QkNorm::PerHead,
     .qkNormAfterRope = true,
     .defaultEps = 1e-5,
     .defaultPositions = 2048},
    {.modelType = "dots1",
     .title = "dots.llm1",
     .ggufArch = "dots1",
     .ggufRenorm = false,
     .layers = LayerRule::FirstDense,
     .sharedCountKeys = "n_shared_experts",
     .routing = kSigmoidBiased,
     .grouped = true,
     .scaled = true,
     .qkNorm = QkNorm::PerHead,
     .window = WindowRule::Layered,
     .windowDefault = true,
     .reads = "routed_scaling_factor",
     .defaultPositions = 2048},
    {.modelType = "minimax_m2",
     .title = "MiniMax-M2",
     .ggufArch = "minimax-m2",
     .expertSizeKeys = "intermediate_size",
     .routing = {.scoreFn = ScoreFn::Sigmoid, .selectBias = true},
     .renorm = RenormRule::Always,
     .qkNorm = QkNorm::FullWidth,
     .bias = BiasRule::None,
     .partialRotary = true,
     .reads = "partial_rotary_factor",
     .defaultTheta = 5e6,
     .defaultPositions = 196608},
    {.modelType = "llama4_text",
     .title = "Llama 4 (text)",
     .ggufArch = "llama4",
     .layers = LayerRule::Listed,
     .expertSizeKeys = "intermediate_size",
     .denseSizeKeys = "intermediate_size_mlp",
     .stack = StackForm::Columns,
     .routing = {.scoreFn = ScoreFn::Logit,
                 .weightSource = WeightSource::SigmoidLogit,
                 .scaleInput = true},
     .renorm = RenormRule::Never,
     .qkNorm = QkNorm::L2,
     .qkNormKey = "use_qk_norm",
     .qkNormAfterRope = true,
     .window = WindowRule::None,
     .interleavedRope = true,
     .reads = "layer_types",
     .defaultEps = 1e-5,
     .defaultTheta = 500000,
     .defaultPositions = 131072,
     .finish = finishLlama4},
    {.modelType = "llama",
     .title = "Llama 2, 3 (dense)",
     .ggufArch = "llama",
     .ggufPairedRope = true,
     .layers = LayerRule::None,
     .defaultPositions = 2048},
    {.modelType = "qwen2",
     .title = "Qwen2, Qwen2.5 (dense)",
     .ggufArch = "qwen2",
     .layers = LayerRule::None,
     .window = WindowRule::Layered,
     .bias = BiasRule::Always,
     .defaultPositions = 32768},
    {.modelType = "qwen3",
     .title = "Qwen3 (dense)",
     .ggufArch = "qwen3",
     .layers = LayerRule::None,
     .qkNorm = QkNorm::PerHead,
     .window = WindowRule::Layered,
     .defaultPositions = 32768},
};

}  // namespace

std::span<const FamilyRow> families() {
    return kFamilies;
}

const FamilyRow* familyByModelType(std::string_view modelType) {
    for (const FamilyRow& row : kFamilies) {
        if (modelType == row.modelType) return &row;
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

double yarnScale(double factor, double mscale) {
    return factor <= 1 ? 1.0 : 0.1 * mscale * std::log(factor) + 1.0;
}

const Naming& hfNaming() {
    return kHfNaming;
}

const Naming& ggufNaming() {
    return kGgufNaming;
}

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
