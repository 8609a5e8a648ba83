// SPDX-License-Identifier: Apache-2.0
#include "engine/convert/hf_config.h"

#include <algorithm>

#include "engine/base/format.h"
#include "engine/model/layout.h"

namespace colibri {

namespace {

using Json = nlohmann::json;

constexpr int64_t kAny = int64_t(1) << 40;   // checkConfig knows the real ranges

// Options that change the mathematics, with the value that leaves it alone (null always does).
struct NeutralOption {
    const char* key;
    double neutral;
};
constexpr NeutralOption kNeutral[] = {
    {"embedding_multiplier", 1}, {"residual_multiplier", 1},      {"logits_scaling", 1},
    {"attention_multiplier", -1}, {"attn_logit_softcapping", -1}, {"final_logit_softcapping", -1},
    {"router_logit_softcapping", -1}, {"swiglu_limit", -1},       {"partial_rotary_factor", 1},
    {"routed_scaling_factor", 1},
};

// The first of "a|b|c" that is there; the first of all when none is.
std::string present(const Fields& f, const char* keys) {
    std::vector<std::string> all = splitAlternatives(keys);
    for (const std::string& key : all) {
        if (f.has(key.c_str())) return key;
    }
    return all.front();
}

int64_t integerOf(Fields& f, const char* keys, std::optional<int64_t> fallback = {}) {
    return f.integer(present(f, keys).c_str(), 0, kAny, fallback);
}

void unsupported(Fields& f, const std::string& what) { f.fail(what, Code::Unsupported); }

void refuseQuantised(Fields& f) {
    const Json* q = f.find("quantization_config");
    if (!q) return;
    std::string method = "unknown";
    if (q->is_object() && q->contains("quant_method") && (*q)["quant_method"].is_string()) {
        method = (*q)["quant_method"].get<std::string>();
    }
    unsupported(f, "quantization_config with quant_method \"" + method +
                       "\" is not supported; use the unquantised checkpoint");
}

void refuseOptions(Fields& f) {
    std::string act = f.text(present(f, "hidden_act|hidden_activation").c_str(), "silu");
    if (act != "silu" && act != "swish") {
        unsupported(f, "hidden_act \"" + act + "\" is not supported (only silu)");
    }
    for (const NeutralOption& option : kNeutral) {
        const Json* value = f.find(option.key);
        if (!value || (value->is_number() && value->get<double>() == option.neutral)) continue;
        unsupported(f, std::string(option.key) + " " + value->dump() + " is not supported");
    }
    if (const Json* types = f.array("layer_types", true)) {
        for (const Json& type : *types) {
            if (type != types->front()) unsupported(f, "mixed layer_types are not supported");
            if (type != "full_attention" && type != "sliding_attention") {
                unsupported(f, "layer_types " + type.dump() + " is not supported");
            }
        }
    }
}

// Both spellings: rope_theta and rope_scaling at the top level, or all in rope_parameters.
void readRope(Fields& f, const FamilyRow& family, const std::string& where, ModelConfig& c) {
    c.rope.theta = f.number("rope_theta", 1e-6, 1e30, family.defaultTheta);
    c.rope.interleaved = family.interleavedRope;
    c.rope.rotaryDim = int(std::min<int64_t>(c.headDim, 1 << 20));
    for (const char* key : {"rope_scaling", "rope_parameters"}) {
        const Json* json = f.find(key);
        if (!json) continue;
        Fields r(*json, where + ": " + key);
        std::string type = r.text(present(r, "rope_type|type").c_str(), "default");
        if (std::any_of(json->begin(), json->end(), [](const Json& v) { return v.is_object(); })) {
            unsupported(f, std::string(key) + " with one entry per layer type is not supported");
            return;
        }
        if (type != "default" && type != "linear") {
            unsupported(f, "rope_type \"" + type + "\" is not supported (default and linear are)");
            return;
        }
        double partial = r.number("partial_rotary_factor", 0, 1, 1.0);
        if (partial != 1) {
            unsupported(f, "partial_rotary_factor " + formatSig(partial) + " is not supported");
        }
        c.rope.type = type;
        c.rope.theta = r.number("rope_theta", 1e-6, 1e30, c.rope.theta);
        if (type == "linear") c.rope.factor = r.number("factor", 1e-6, 1e9);
        if (!r.status().ok()) f.fail(r.status().message());
    }
}

void readMoeLayers(Fields& f, const FamilyRow& family, ModelConfig& c) {
    if (c.numLayers < 1 || c.numLayers > 1 << 12) {
        f.fail("\"num_hidden_layers\" is " + std::to_string(c.numLayers) +
               ", expected a value between 1 and 4096");
        return;
    }
    c.moeLayer.assign(size_t(c.numLayers), c.numExperts > 0);
    if (!family.sparseSteps) return;
    int64_t step = f.integer("decoder_sparse_step", 1, 1 << 20, 1);
    for (int64_t i = 0; i < c.numLayers; ++i) {
        if ((i + 1) % step != 0) c.moeLayer[size_t(i)] = false;
    }
    if (const Json* dense = f.array("mlp_only_layers", true)) {
        for (const Json& entry : *dense) {
            std::optional<int64_t> layer = wholeNumber(entry);
            if (!layer || *layer < 0) {
                f.fail("\"mlp_only_layers\" holds something that is not a layer");
                return;
            }
            if (*layer < c.numLayers) c.moeLayer[size_t(*layer)] = false;
        }
    }
}

void readWindow(Fields& f, const FamilyRow& family, ModelConfig& c) {
    if (family.window == WindowRule::None) return;
    if (family.window == WindowRule::Gated && !f.flag("use_sliding_window", false)) return;
    c.slidingWindow = f.integer("sliding_window", 1, kAny, 0);
}

void readRouting(Fields& f, const FamilyRow& family, ModelConfig& c) {
    RoutingSpec& r = c.routing;
    r.renorm = family.renorm == RenormRule::Always ||
               (family.renorm == RenormRule::ByConfig && f.flag("norm_topk_prob", false));
}

// One id or a list.
void readIds(Fields& f, const char* key, std::vector<int32_t>& out) {
    const Json* value = f.find(key);
    if (!value) return;
    out.clear();
    Json list = value->is_array() ? *value : Json::array({*value});
    for (const Json& entry : list) {
        std::optional<int64_t> id = wholeNumber(entry);
        if (!id || *id < -1 || *id > INT32_MAX) {
            f.fail(std::string("\"") + key + "\" is not a token id");
            return;
        }
        if (*id >= 0) out.push_back(int32_t(*id));
    }
}

void readTokens(Fields& f, ModelConfig& c) {
    readIds(f, "eos_token_id", c.eosIds);
    std::vector<int32_t> bos;
    readIds(f, "bos_token_id", bos);
    if (!bos.empty()) c.bosId = bos.front();
}

void readGeneration(Fields& g, ModelConfig& c) {
    readTokens(g, c);                    // over config.json's
    c.temperature = float(g.number("temperature", 0, 1e6, -1.0));
    c.topP = float(g.number("top_p", 0, 1, -1.0));
    c.topKSampling = int(g.integer("top_k", 0, INT32_MAX, -1));
}

void readSizes(Fields& f, const FamilyRow& family, ModelConfig& c) {
    c.vocabSize = integerOf(f, "vocab_size");
    c.hiddenSize = integerOf(f, "hidden_size");
    c.numLayers = integerOf(f, "num_hidden_layers");
    c.numHeads = integerOf(f, "num_attention_heads");
    c.numKvHeads = integerOf(f, "num_key_value_heads", c.numHeads);
    c.headDim = integerOf(f, "head_dim", c.numHeads > 0 ? c.hiddenSize / c.numHeads : 0);
    c.numExperts = integerOf(
        f, "num_experts|num_local_experts|n_routed_experts|moe_num_experts");
    c.topK = integerOf(f, "num_experts_per_tok|moe_k|moe_topk");
    c.expertSize = integerOf(f, family.expertSizeKeys);
    if (family.sparseSteps) c.denseSize = integerOf(f, "intermediate_size", 0);
    c.maxPositions = integerOf(f, "max_position_embeddings", family.defaultPositions);
    c.rmsEps = float(f.number("rms_norm_eps", 0, 1, family.defaultEps));
    c.qkNorm = family.qkNorm;
    c.attentionBias = family.biasKey && f.flag(present(f, "attention_bias|qkv_bias").c_str(), false);
    if (family.clipQkv) c.clipQkv = float(f.number("clip_qkv", 0, 1e30, 0.0));
}

}  // namespace

Result<HfConfig> readHfConfig(const Json& config, const Json& generation,
                              const std::string& where) {
    Fields f(config, where);
    std::string type = f.text("model_type");
    if (!f.status().ok()) return f.status();
    HfConfig out;
    out.family = familyByModelType(type);
    if (!out.family) {
        return Status(Code::Unsupported,
                      where + ": model_type \"" + type + "\" is not supported",
                      "Supported: " + supportedModelTypes());
    }
    ModelConfig& c = out.config;
    c.family = type;
    refuseQuantised(f);
    refuseOptions(f);
    readSizes(f, *out.family, c);
    readRope(f, *out.family, where, c);
    readMoeLayers(f, *out.family, c);
    if (c.moeLayerCount() == c.numLayers) c.denseSize = 0;
    readWindow(f, *out.family, c);
    readRouting(f, *out.family, c);
    readTokens(f, c);
    out.tiedKnown = f.has("tie_word_embeddings");
    c.tiedEmbeddings = f.flag("tie_word_embeddings", false);
    out.extraLayers = integerOf(f, "num_nextn_predict_layers|num_mtp_layers", 0);
    if (out.family->finish) out.family->finish(f, c);
    if (!f.status().ok()) return f.status();
    if (!generation.is_null()) {
        Fields g(generation, "generation_config.json");
        readGeneration(g, c);
        if (!g.status().ok()) return g.status();
    }
    if (Status s = checkConfig(c); !s.ok()) return s.in(where);
    return out;
}

std::string writeHfConfig(const ModelConfig& c) {
    const FamilyRow& family = *familyByModelType(c.family);
    nlohmann::ordered_json out = {{"model_type", c.family},
                                  {"vocab_size", c.vocabSize},
                                  {"hidden_size", c.hiddenSize},
                                  {"num_hidden_layers", c.numLayers},
                                  {"num_attention_heads", c.numHeads},
                                  {"num_key_value_heads", c.numKvHeads},
                                  {"head_dim", c.headDim},
                                  {"num_experts", c.numExperts},
                                  {"num_experts_per_tok", c.topK},
                                  {"max_position_embeddings", c.maxPositions},
                                  {"rms_norm_eps", c.rmsEps},
                                  {"rope_theta", c.rope.theta},
                                  {"norm_topk_prob", c.routing.renorm},
                                  {"attention_bias", c.attentionBias},
                                  {"tie_word_embeddings", c.tiedEmbeddings},
                                  {"eos_token_id", c.eosIds}};
    out[splitAlternatives(family.expertSizeKeys).front()] = c.expertSize;
    if (family.sparseSteps) {
        out["intermediate_size"] = c.denseSize;
        auto& dense = out["mlp_only_layers"] = nlohmann::ordered_json::array();
        for (int64_t layer = 0; layer < c.numLayers; ++layer) {
            if (!c.moeLayer[size_t(layer)]) dense.push_back(layer);
        }
    }
    if (c.bosId >= 0) out["bos_token_id"] = c.bosId;
    if (c.clipQkv > 0) out["clip_qkv"] = c.clipQkv;
    if (c.rope.type == "linear") {
        out["rope_scaling"] = {{"rope_type", "linear"}, {"factor", c.rope.factor}};
    }
    if (c.slidingWindow > 0) {
        out["sliding_window"] = c.slidingWindow;
        out["use_sliding_window"] = true;
    }
    return out.dump(2) + "\n";
}

}  // namespace colibri
