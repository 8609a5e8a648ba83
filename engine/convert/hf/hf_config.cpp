// SPDX-License-Identifier: Apache-2.0
#include "engine/convert/hf/hf_config.h"

#include <algorithm>
#include <cmath>

#include "engine/base/format.h"
#include "engine/base/printable.h"
#include "engine/model/layout.h"

namespace colibri {

namespace {

using Json = nlohmann::json;

constexpr int64_t kAny = int64_t(1) << 40;  // checkConfig checks the actual ranges

// Options that change the mathematics, each with its neutral value. null is always neutral.
struct NeutralOption {
    const char* key;
    double neutral;
};
constexpr NeutralOption kNeutral[] = {
    {"embedding_multiplier", 1},
    {"residual_multiplier", 1},
    {"logits_scaling", 1},
    {"attention_multiplier", -1},
    {"attn_logit_softcapping", -1},
    {"final_logit_softcapping", -1},
    {"router_logit_softcapping", -1},
    {"swiglu_limit", -1},
    {"partial_rotary_factor", 1},
    {"routed_scaling_factor", 1},
    {"use_bias", 0},
};

// The first key of "a|b|c" that is present; the first of all if none is.
std::string present(const Fields& f, const char* keys) {
    std::vector<std::string> all = splitAlternatives(keys);
    for (const std::string& key : all) {
        if (f.has(key.c_str())) return key;
    }
    return all.front();
}

int64_t integerOf(Fields& f, const char* keys, std::optional<int64_t> fallback = {}) {
    const std::string key = present(f, keys);
    const Json* value = f.find(key.c_str());
    if (!value || !value->is_array()) return f.integer(key.c_str(), 0, kAny, fallback);
    // One value per layer is accepted if all are equal.
    for (const Json& v : *value) {
        if (!wholeNumber(v) || v != value->front()) {
            f.fail("\"" + key + "\" differs between layers", Code::Unsupported);
            return 0;
        }
    }
    return value->empty() ? 0 : wholeNumber(value->front()).value_or(0);
}

// Whether the family's own code reads the key.
bool reads(const FamilyRow& family, std::string_view key) {
    const std::string_view all = family.reads;
    for (size_t at = 0; (at = all.find(key, at)) != all.npos; at += key.size()) {
        const bool begins = at == 0 || all[at - 1] == ' ';
        const size_t end = at + key.size();
        if (begins && (end == all.size() || all[end] == ' ')) return true;
    }
    return false;
}

void unsupported(Fields& f, const std::string& what) {
    f.fail(what, Code::Unsupported);
}

// Reads block-scaled FP8 and gpt-oss's MXFP4. Other methods are errors.
void readQuantisation(Fields& f, HfConfig& out) {
    const Json* q = f.find("quantization_config");
    if (!q || q->empty()) return;
    std::string method = "unknown";
    if (q->is_object() && q->contains("quant_method") && (*q)["quant_method"].is_string()) {
        method = (*q)["quant_method"].get<std::string>();
    }
    if (method == "mxfp4") return;
    if (method == "fp8" && q->contains("weight_block_size")) {
        const Json& block = (*q)["weight_block_size"];
        if (block.is_array() && block.size() == 2) {
            out.fp8Block = {wholeNumber(block[0]).value_or(0), wholeNumber(block[1]).value_or(0)};
        }
        if (out.fp8Block[0] < 1 || out.fp8Block[1] < 1) {
            f.fail("\"weight_block_size\" is not two positive numbers");
        }
        return;
    }
    unsupported(f, "quantization_config with quant_method \"" + method +
                       "\" is not supported (fp8 in blocks and mxfp4 are); use the unquantised "
                       "checkpoint");
}

void refuseOptions(Fields& f, const FamilyRow& family) {
    std::string act = f.text(present(f, "hidden_act|hidden_activation").c_str(), "silu");
    if (act != "silu" && act != "swish") {
        unsupported(f, "hidden_act \"" + act + "\" is not supported (only silu)");
    }
    for (const NeutralOption& option : kNeutral) {
        const Json* value = f.find(option.key);
        if (!value || reads(family, option.key)) continue;
        const bool neutral = value->is_boolean()
                                 ? *value == (option.neutral != 0)
                                 : value->is_number() && value->get<double>() == option.neutral;
        if (!neutral) {
            unsupported(f, std::string(option.key) + " " + value->dump() + " is not supported");
        }
    }
}

// Reads the keys of all types of rope_scaling or rope_parameters.
void readRopeScaling(Fields& f, Fields& r, ModelConfig& c) {
    RopeSpec& rope = c.rope;
    std::string type = r.text(present(r, "rope_type|type").c_str(), "default");
    rope.theta = r.number("rope_theta", 1e-6, 1e30, rope.theta);
    rope.originalPositions = r.integer("original_max_position_embeddings", 0, kAny,
                                       f.integer("original_max_position_embeddings", 0, kAny, 0));
    if (type == "dynamic") {
        // With alpha the base is scaled once. Without it, only contexts longer than the trained one
        // are scaled, which the engine does not allow.
        if (const double alpha = r.number("alpha", 0, 1e9, 0.0); alpha > 0) {
            const double d = rope.rotaryDim;
            rope.theta *= std::pow(alpha, d / (d - 2));
        }
        type = "default";
    }
    if (type == "longrope" || type == "su") {
        const double d =
            double(c.maxPositions) / double(std::max<int64_t>(1, rope.originalPositions));
        rope.attentionFactor =
            r.number("short_mscale", 0, 1e9,
                     d <= 1 || rope.originalPositions < 2
                         ? 1.0
                         : std::sqrt(1 + std::log(d) / std::log(double(rope.originalPositions))));
        rope.longAttentionFactor = r.number("long_mscale", 0, 1e9, 0.0);
        rope.divisors.clear();  // may be set from the other spelling
        if (const Json* factors = r.array("short_factor")) {
            for (const Json& v : *factors) {
                rope.divisors.push_back(v.is_number() ? v.get<float>() : 0.0f);
            }
        }
        type = "default";
    }
    rope.type = type;
    if (type == "default") return;
    if (type != "linear" && type != "yarn" && type != "llama3") {
        unsupported(f, "rope_type \"" + type + "\" is not supported");
        return;
    }
    rope.factor = r.number("factor", 1e-6, 1e9);
    if (type == "llama3") {
        rope.lowFreqFactor = r.number("low_freq_factor", 0, 1e9);
        rope.highFreqFactor = r.number("high_freq_factor", 0, 1e9);
    }
    if (type != "yarn") return;
    if (rope.originalPositions == 0) rope.originalPositions = c.maxPositions;
    rope.betaFast = r.number("beta_fast", 0, 1e9, 32.0);
    rope.betaSlow = r.number("beta_slow", 0, 1e9, 1.0);
    rope.truncate = r.flag("truncate", true);
    const double mscale = r.number("mscale", 0, 1e9, 0.0);
    const double all = r.number("mscale_all_dim", 0, 1e9, 0.0);
    const double usual = mscale > 0 && all > 0
                             ? yarnScale(rope.factor, mscale) / yarnScale(rope.factor, all)
                             : yarnScale(rope.factor, 1);
    rope.attentionFactor = r.number("attention_factor", 0, 1e9, usual);
}

// Reads both spellings: rope_theta and rope_scaling at the top level, or rope_parameters.
void readRope(Fields& f, const FamilyRow& family, const std::string& where, ModelConfig& c) {
    c.rope.theta = f.number("rope_theta", 1e-6, 1e30, family.defaultTheta);
    c.rope.interleaved = family.interleavedRope;
    c.rope.rotaryDim = int(std::min<int64_t>(c.headDim, 1 << 20));
    if (family.latent) {
        c.rope.rotaryDim = int(f.integer("qk_rope_head_dim", 0, 1 << 20));
        c.rope.interleaved = f.flag("rope_interleave", true);
    }
    double partial = f.number("partial_rotary_factor", 0, 1, 1.0);
    for (const char* key : {"rope_scaling", "rope_parameters"}) {
        const Json* json = f.find(key);
        if (!json) continue;
        Fields r(*json, where + ": " + key);
        if (std::any_of(json->begin(), json->end(), [](const Json& v) { return v.is_object(); })) {
            unsupported(f, std::string(key) + " with one entry per layer type is not supported");
            return;
        }
        partial = r.number("partial_rotary_factor", 0, 1, partial);
        readRopeScaling(f, r, c);
        if (!r.status().ok()) f.fail(r.status().message(), r.status().code());
    }
    if (family.partialRotary && f.has("rotary_dim")) {
        c.rope.rotaryDim = int(f.integer("rotary_dim", 2, std::max<int64_t>(2, c.headDim)));
        return;
    }
    if (family.latent || partial == 1) return;
    if (!family.partialRotary) {
        unsupported(f, "partial_rotary_factor " + formatSig(partial) + " is not supported");
    }
    c.rope.rotaryDim = int(double(c.headDim) * partial);
}

// Whether a layer has experts, if the rule is a list or a pattern.
bool hasExperts(Fields& f, LayerRule rule, int64_t layer, int64_t layers) {
    switch (rule) {
        case LayerRule::All:
            return true;
        case LayerRule::None:
            return false;
        case LayerRule::Steps:
            return (layer + 1) % f.integer("decoder_sparse_step", 1, 1 << 20, 1) == 0;
        case LayerRule::FirstDense:
            return layer >= f.integer("first_k_dense_replace", 0, kAny, 0) &&
                   layer % f.integer("moe_layer_freq", 1, 1 << 20, 1) == 0;
        case LayerRule::Span: {
            int64_t last = f.integer("moe_layer_end_index", -1, kAny, -1);
            if (last < 0) last = layers - 1;
            return (layer + 1) % f.integer("moe_layer_interval", 1, 1 << 20, 1) == 0 &&
                   layer >= f.integer("moe_layer_start_index", 0, kAny, 1) && layer <= last;
        }
        case LayerRule::Listed:
            return (layer + 1) % f.integer("interleave_moe_layer_step", 1, 1 << 20, 1) == 0;
    }
    return true;
}

// Sets the elements of the layers that an array lists.
void setLayers(Fields& f, const char* key, bool value, std::vector<bool>& out) {
    const Json* list = f.array(key, true);
    if (!list) return;
    for (const Json& entry : *list) {
        std::optional<int64_t> layer = wholeNumber(entry);
        if (!layer || *layer < 0) {
            f.fail(std::string("\"") + key + "\" contains a value that is not a layer");
            return;
        }
        if (*layer < int64_t(out.size())) out[size_t(*layer)] = value;
    }
}

void readMoeLayers(Fields& f, const FamilyRow& family, ModelConfig& c) {
    if (c.numLayers < 1 || c.numLayers > 1 << 12) {
        f.fail("\"num_hidden_layers\" is " + std::to_string(c.numLayers) +
               ", expected a value between 1 and 4096");
        return;
    }
    c.moeLayer.assign(size_t(c.numLayers), false);
    for (int64_t i = 0; i < c.numLayers && c.numExperts > 0; ++i) {
        c.moeLayer[size_t(i)] = hasExperts(f, family.layers, i, c.numLayers);
    }
    if (family.layers == LayerRule::Steps) setLayers(f, "mlp_only_layers", false, c.moeLayer);
    if (family.layers == LayerRule::Listed && f.array("moe_layers", true)) {
        c.moeLayer.assign(size_t(c.numLayers), false);
        setLayers(f, "moe_layers", true, c.moeLayer);
    }
}

// Reads layer_types if present: which layers have a sliding window.
void readLayerTypes(Fields& f, ModelConfig& c) {
    const Json* types = f.array("layer_types", true);
    if (!types || int64_t(types->size()) < c.numLayers) return;
    c.windowLayer.assign(size_t(c.numLayers), false);
    for (int64_t i = 0; i < c.numLayers; ++i) {
        const Json& type = (*types)[size_t(i)];
        c.windowLayer[size_t(i)] = type == "sliding_attention" || type == "chunked_attention";
        if (!c.windowLayer[size_t(i)] && type != "full_attention") {
            unsupported(f, "layer_types " + type.dump() + " is not supported");
        }
    }
}

void readWindow(Fields& f, const FamilyRow& family, ModelConfig& c) {
    readLayerTypes(f, c);
    const bool anywhere =
        std::find(c.windowLayer.begin(), c.windowLayer.end(), true) != c.windowLayer.end();
    if (family.window == WindowRule::None) {
        if (anywhere && !reads(family, "layer_types")) {
            unsupported(f, "layer_types with a window are not supported in this family");
        }
        return;
    }
    const bool off =
        family.window != WindowRule::Plain && !f.flag("use_sliding_window", family.windowDefault);
    if (!off) c.slidingWindow = f.integer("sliding_window", 0, kAny, 0);
    if (c.slidingWindow == 0 || (!c.windowLayer.empty() && !anywhere)) {
        c.slidingWindow = 0;
        c.windowLayer.clear();
        return;
    }
    const bool alternating = family.window == WindowRule::Alternating;
    if ((family.window != WindowRule::Layered && !alternating) || !c.windowLayer.empty()) return;
    const int64_t limit = f.integer("max_window_layers", 0, kAny, 28);
    for (int64_t i = 0; i < c.numLayers; ++i) {
        c.windowLayer.push_back(alternating ? i < limit && i % 2 == 0 : i >= limit);
    }
}

void readRouting(Fields& f, const FamilyRow& family, ModelConfig& c) {
    RoutingSpec& r = c.routing;
    r = family.routing;
    r.renorm =
        family.renorm == RenormRule::Always ||
        (family.renorm == RenormRule::ByConfig && f.flag("norm_topk_prob", family.renormDefault));
    if (family.grouped) {
        r.groups = f.integer("n_group", 1, kAny, 1);
        r.groupTopK = f.integer("topk_group", 1, kAny, 1);
    }
    if (family.scaled) r.scale = f.number("routed_scaling_factor", 0, 1e9, 1.0);
    for (const char* key : {"scoring_func", "score_function"}) {
        // "noaux_tc" denotes load balancing without an auxiliary loss, which uses the sigmoid.
        const bool sigmoid = r.scoreFn == ScoreFn::Sigmoid;
        const std::string given = f.text(key, sigmoid ? "sigmoid" : "softmax");
        if (sigmoid ? given != "sigmoid" && given != "noaux_tc" : given != "softmax") {
            unsupported(f, std::string(key) + " \"" + given + "\" is not supported in this family");
        }
    }
}

void readLatent(Fields& f, ModelConfig& c) {
    c.mla.kvRank = f.integer("kv_lora_rank", 1, kAny);
    c.mla.qRank = f.integer("q_lora_rank", 0, kAny, 0);
    c.mla.nopeDim = f.integer("qk_nope_head_dim", 1, kAny);
    c.mla.valueDim = f.integer("v_head_dim", 1, kAny);
    c.headDim = c.mla.nopeDim + f.integer("qk_rope_head_dim", 1, kAny);
    c.numKvHeads = c.numHeads;
}

// Reads one id or a list.
void readIds(Fields& f, const char* key, std::vector<int32_t>& out) {
    const Json* value = f.find(key);
    if (!value) return;
    out.clear();
    Json list = value->is_array() ? *value : Json::array({*value});
    for (const Json& entry : list) {
        if (entry.is_null()) continue;
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

// Reads a sampling default, which does not affect the model. Negative: absent or invalid. `off`:
// the number that savers write to turn the option off.
double samplingDefault(const Fields& g, const char* key, double high, double off) {
    const Json* value = g.find(key);
    if (!value || !value->is_number()) return -1;
    const double v = value->get<double>();
    return v < 0 ? off : v <= high ? v : -1;
}

void readGeneration(Fields& g, ModelConfig& c) {
    readTokens(g, c);  // overrides config.json
    c.temperature = float(samplingDefault(g, "temperature", 1e6, -1));
    c.topP = float(samplingDefault(g, "top_p", 1, 1));
    if (c.topP == 0) c.topP = -1;
    c.topKSampling = int(samplingDefault(g, "top_k", INT32_MAX, 0));
}

void readSizes(Fields& f, const FamilyRow& family, ModelConfig& c) {
    c.vocabSize = integerOf(f, "vocab_size");
    c.hiddenSize = integerOf(f, "hidden_size");
    c.numLayers = integerOf(f, "num_hidden_layers");
    c.numHeads = integerOf(f, "num_attention_heads");
    c.numKvHeads = integerOf(f, "num_key_value_heads", c.numHeads);
    c.headDim = integerOf(f, "head_dim", c.numHeads > 0 ? c.hiddenSize / c.numHeads : 0);
    if (family.latent) readLatent(f, c);
    if (family.layers != LayerRule::None) {
        c.numExperts =
            integerOf(f, "num_experts|num_local_experts|n_routed_experts|moe_num_experts");
        c.topK = integerOf(f, "num_experts_per_tok|moe_k|moe_topk|experts_per_token");
        c.expertSize = integerOf(f, family.expertSizeKeys);
    }
    if (family.sharedSizeKeys) c.sharedSize = integerOf(f, family.sharedSizeKeys, 0);
    if (family.sharedCountKeys) {
        // Both are at most kAny; checkConfig rejects values that are too large.
        const int64_t count = integerOf(f, family.sharedCountKeys, 0);
        c.sharedSize = count > 1 << 20 ? kAny : count * std::min(c.expertSize, kAny >> 20);
    }
    c.sharedGate = family.sharedGate && c.sharedSize > 0;
    if (family.layers != LayerRule::All) c.denseSize = integerOf(f, family.denseSizeKeys, 0);
    c.maxPositions = integerOf(f, "max_position_embeddings", family.defaultPositions);
    c.norm = family.norm;
    c.rmsEps = float(f.number("rms_norm_eps", 0, 1, family.defaultEps));
    if (!family.qkNormKey || f.flag(family.qkNormKey, family.qkNorm == QkNorm::L2)) {
        c.qkNorm = family.qkNorm;
    }
    c.qkNormAfterRope = family.qkNormAfterRope;
    c.attentionBias = family.bias == BiasRule::Always ||
                      (family.bias == BiasRule::ByConfig &&
                       f.flag(present(f, "attention_bias|qkv_bias").c_str(), family.biasDefault));
    c.ffnBias = f.flag("mlp_bias", false);
    c.sinks = family.sinks;
    c.expertBias = family.expertBias;
    if (family.clipQkv) c.clipQkv = float(f.number("clip_qkv", 0, 1e30, 0.0));
}

}  // namespace

Json languageConfig(const Json& config) {
    if (!config.is_object() || !config.contains("text_config") ||
        !config["text_config"].is_object()) {
        return config;
    }
    Json inner = config["text_config"];
    for (const char* key : {"eos_token_id", "bos_token_id", "tie_word_embeddings", "dtype",
                            "torch_dtype", "quantization_config"}) {
        if (!inner.contains(key) && config.contains(key)) inner[key] = config[key];
    }
    return inner;
}

Result<HfConfig> readHfConfig(const Json& whole, const Json& generation, const std::string& where) {
    const Json config = languageConfig(whole);
    Fields f(config, where);
    std::string type = f.text("model_type");
    if (!f.status().ok()) return f.status();
    HfConfig out;
    out.nested = whole.contains("text_config");
    out.family = familyByModelType(type);
    if (!out.family) {
        return Status(Code::Unsupported,
                      where + ": model_type \"" + printable(type) + "\" is not supported",
                      "Supported: " + supportedModelTypes());
    }
    ModelConfig& c = out.config;
    c.family = type;
    readQuantisation(f, out);
    refuseOptions(f, *out.family);
    readSizes(f, *out.family, c);
    readRope(f, *out.family, where, c);
    readMoeLayers(f, *out.family, c);
    if (!f.status().ok()) return f.status();
    if (c.moeLayerCount() == c.numLayers) c.denseSize = 0;
    if (c.moeLayerCount() == 0) c.sharedSize = 0;
    readWindow(f, *out.family, c);
    readRouting(f, *out.family, c);
    readTokens(f, c);
    out.tiedKnown = f.has("tie_word_embeddings");
    c.tiedEmbeddings = f.flag("tie_word_embeddings", out.family->tied);
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
    if (family.layers == LayerRule::Steps) {
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
