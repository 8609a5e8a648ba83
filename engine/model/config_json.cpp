// SPDX-License-Identifier: Apache-2.0
#include "engine/model/config_json.h"

#include <charconv>
#include <utility>

#include "engine/base/printable.h"

namespace colibri {

namespace {

using Json = nlohmann::json;
using OrderedJson = nlohmann::ordered_json;

constexpr int64_t kAny = int64_t(1) << 40;  // checkConfig checks the actual ranges

template <typename T>
using Names = std::vector<std::pair<T, const char*>>;

const Names<QkNorm> kQkNorms = {{QkNorm::None, "none"},
                                {QkNorm::PerHead, "per_head"},
                                {QkNorm::FullWidth, "full_width"},
                                {QkNorm::L2, "l2"}};
const Names<NormKind> kNorms = {{NormKind::Rms, "rms"}, {NormKind::Layer, "layer"}};
const Names<Activation> kActivations = {{Activation::Silu, "silu"},
                                        {Activation::ClampedSwiglu, "clamped_swiglu"}};
const Names<ScoreFn> kScoreFns = {
    {ScoreFn::Softmax, "softmax"}, {ScoreFn::Sigmoid, "sigmoid"}, {ScoreFn::Logit, "logit"}};
const Names<GroupScore> kGroupScores = {{GroupScore::Max, "max"}, {GroupScore::Top2Sum, "top2sum"}};
const Names<bool> kScaleOn = {{false, "output"}, {true, "input"}};  // scaleInput
const Names<WeightSource> kWeightSources = {{WeightSource::Score, "score"},
                                            {WeightSource::LogitSoftmax, "logit_softmax"},
                                            {WeightSource::SigmoidLogit, "sigmoid_logit"},
                                            {WeightSource::SparseMixer, "sparsemixer"}};

template <typename T>
const char* nameOf(const Names<T>& names, T value) {
    for (auto& [v, name] : names) {
        if (v == value) return name;
    }
    return "";
}

// Keys with a fallback are absent from containers of the first schema.
template <typename T>
T choice(Fields& fields, const char* key, const Names<T>& names,
         std::optional<std::string> fallback = {}) {
    std::string text = fields.text(key, fallback);
    for (auto& [v, name] : names) {
        if (text == name) return v;
    }
    fields.fail(
        std::string("\"") + key + "\" is \"" + text + "\", which this version does not support",
        Code::Unsupported);
    return names.front().first;
}

void readRouting(Fields& f, RoutingSpec& r) {
    r.scoreFn = choice(f, "score_fn", kScoreFns);
    r.selectBias = f.flag("select_bias");
    r.weightSource = choice(f, "weight_source", kWeightSources);
    r.renorm = f.flag("renorm");
    r.renormEps = f.number("renorm_eps", 0, 1);
    r.scale = f.number("scale", 0, 1e9);
    r.logitBias = f.flag("logit_bias", false);
    r.groups = f.integer("n_group", 0, kAny, 1);
    r.groupTopK = f.integer("topk_group", 0, kAny, 1);
    r.groupScore = choice(f, "group_score", kGroupScores, "max");
    r.scaleInput = choice(f, "scale_on", kScaleOn, "output");
    r.sparseJitter = f.number("router_jitter_noise", 0, 1e9, 0.0);
}

void readRope(Fields& f, RopeSpec& r) {
    r.theta = f.number("rope_theta", 0, 1e30);
    r.type = f.text("rope_type");
    r.factor = f.number("rope_factor", 0, 1e9);
    r.rotaryDim = int(f.integer("rotary_dim", 0, 1 << 20));
    r.interleaved = f.flag("rope_interleaved");
    r.originalPositions = f.integer("original_max_position_embeddings", 0, kAny, 0);
    r.betaFast = f.number("beta_fast", 0, 1e9, 32.0);
    r.betaSlow = f.number("beta_slow", 0, 1e9, 1.0);
    r.truncate = f.flag("rope_truncate", true);
    r.lowFreqFactor = f.number("low_freq_factor", 0, 1e9, 1.0);
    r.highFreqFactor = f.number("high_freq_factor", 0, 1e9, 4.0);
    r.attentionFactor = f.number("rope_attention_factor", 0, 1e9, 1.0);
    r.longAttentionFactor = f.number("rope_long_attention_factor", 0, 1e9, 0.0);
    if (const Json* list = f.array("rope_divisors", true)) {
        for (const Json& v : *list) r.divisors.push_back(v.is_number() ? v.get<float>() : 0.0f);
    }
}

// Reads a list of layer numbers. A missing key or null means all layers.
void readLayerSet(Fields& f, const char* key, int64_t layers, std::vector<bool>& out) {
    const Json* list = f.array(key, true);
    if (!list) return;
    out.assign(size_t(layers), false);
    for (const Json& entry : *list) {
        std::optional<int64_t> layer = wholeNumber(entry);
        if (!layer || *layer < 0 || *layer >= layers) {
            f.fail(std::string("\"") + key + "\" contains a layer that the model does not have");
            return;
        }
        out[size_t(*layer)] = true;
    }
}

void readAttention(Fields& f, ModelConfig& c) {
    c.qkNorm = choice(f, "qk_norm", kQkNorms);
    c.qkNormAfterRope = f.flag("qk_norm_after_rope", false);
    c.attentionBias = f.flag("attention_bias");
    c.clipQkv = float(f.number("clip_qkv", 0, 1e30, 0.0));
    c.slidingWindow = f.integer("sliding_window", 0, kAny, 0);
    c.chunkedWindow = f.flag("chunked_window", false);
    readLayerSet(f, "window_layers", c.numLayers, c.windowLayer);
    readLayerSet(f, "rope_layers", c.numLayers, c.ropeLayer);
    c.sinks = f.flag("attention_sinks", false);
    c.attentionScale = f.number("attention_scale", 0, 1e9, 0.0);
    c.queryScale = f.number("query_scale", 0, 1e9, 0.0);
    c.queryScalePositions = f.number("query_scale_positions", 0, 1e18, 0.0);
    c.mla.kvRank = f.integer("kv_lora_rank", 0, kAny, 0);
    c.mla.qRank = f.integer("q_lora_rank", 0, kAny, 0);
    c.mla.nopeDim = f.integer("qk_nope_head_dim", 0, kAny, 0);
    c.mla.valueDim = f.integer("v_head_dim", 0, kAny, 0);
}

void readLayers(Fields& f, ModelConfig& c) {
    if (c.numLayers < 1 || c.numLayers > 1 << 12) {
        f.fail("\"num_hidden_layers\" is " + std::to_string(c.numLayers) +
               ", expected a value between 1 and 4096");
        return;
    }
    c.moeLayer.assign(size_t(c.numLayers), false);
    const Json* layers = f.array("moe_layers");
    if (!layers) return;
    for (const Json& entry : *layers) {
        std::optional<int64_t> layer = wholeNumber(entry);
        if (!layer || *layer < 0 || *layer >= c.numLayers || c.moeLayer[size_t(*layer)]) {
            f.fail(
                "\"moe_layers\" contains a duplicate layer, or one that the model does not have");
            return;
        }
        c.moeLayer[size_t(*layer)] = true;
    }
}

// The shortest decimal that reads back as this float: 0.8, not 0.800000011920929.
double shortest(float value) {
    char text[32];
    auto end = std::to_chars(text, text + sizeof text, value).ptr;
    double out = 0;
    std::from_chars(text, end, out);
    return out;
}

OrderedJson layerSet(const std::vector<bool>& layers) {
    if (layers.empty()) return {};
    OrderedJson out = OrderedJson::array();
    for (size_t i = 0; i < layers.size(); ++i) {
        if (layers[i]) out.push_back(i);
    }
    return out;
}

void writeAttention(OrderedJson& j, const ModelConfig& c) {
    j["qk_norm"] = nameOf(kQkNorms, c.qkNorm);
    j["qk_norm_after_rope"] = c.qkNormAfterRope;
    j["attention_bias"] = c.attentionBias;
    j["clip_qkv"] = c.clipQkv > 0 ? OrderedJson(shortest(c.clipQkv)) : OrderedJson();
    j["sliding_window"] = c.slidingWindow > 0 ? OrderedJson(c.slidingWindow) : OrderedJson();
    j["chunked_window"] = c.chunkedWindow;
    j["window_layers"] = layerSet(c.windowLayer);
    j["rope_layers"] = layerSet(c.ropeLayer);
    j["attention_sinks"] = c.sinks;
    j["attention_scale"] = c.attentionScale;
    j["query_scale"] = c.queryScale;
    j["query_scale_positions"] = c.queryScalePositions;
    j["kv_lora_rank"] = c.mla.kvRank;
    j["q_lora_rank"] = c.mla.qRank;
    j["qk_nope_head_dim"] = c.mla.nopeDim;
    j["v_head_dim"] = c.mla.valueDim;
}

void writeRope(OrderedJson& j, const RopeSpec& rope) {
    j["rope_theta"] = rope.theta;
    j["rope_type"] = rope.type;
    j["rope_factor"] = rope.factor;
    j["rotary_dim"] = rope.rotaryDim;
    j["rope_interleaved"] = rope.interleaved;
    j["original_max_position_embeddings"] = rope.originalPositions;
    j["beta_fast"] = rope.betaFast;
    j["beta_slow"] = rope.betaSlow;
    j["rope_truncate"] = rope.truncate;
    j["low_freq_factor"] = rope.lowFreqFactor;
    j["high_freq_factor"] = rope.highFreqFactor;
    j["rope_attention_factor"] = rope.attentionFactor;
    j["rope_long_attention_factor"] = rope.longAttentionFactor;
    OrderedJson divisors = OrderedJson::array();
    for (const float d : rope.divisors) divisors.push_back(shortest(d));
    j["rope_divisors"] = divisors;
}

void writeRouting(OrderedJson& j, const RoutingSpec& r) {
    j["score_fn"] = nameOf(kScoreFns, r.scoreFn);
    j["logit_bias"] = r.logitBias;
    j["select_bias"] = r.selectBias;
    j["n_group"] = r.groups;
    j["topk_group"] = r.groupTopK;
    j["group_score"] = nameOf(kGroupScores, r.groupScore);
    j["weight_source"] = nameOf(kWeightSources, r.weightSource);
    j["renorm"] = r.renorm;
    j["renorm_eps"] = r.renormEps;
    j["scale"] = r.scale;
    j["scale_on"] = nameOf(kScaleOn, r.scaleInput);
    j["router_jitter_noise"] = r.sparseJitter;
}

}  // namespace

void readConfig(Fields& f, ModelConfig& c) {
    c.family = f.text("model_type");
    c.name = printable(f.text("name"));
    c.vocabSize = f.integer("vocab_size", 1, kAny);
    c.hiddenSize = f.integer("hidden_size", 1, kAny);
    c.numLayers = f.integer("num_hidden_layers", 1, kAny);
    c.numHeads = f.integer("num_attention_heads", 1, kAny);
    c.numKvHeads = f.integer("num_key_value_heads", 1, kAny);
    c.headDim = f.integer("head_dim", 1, kAny);
    c.numExperts = f.integer("num_experts", 0, kAny);
    c.topK = f.integer("num_experts_per_tok", 0, kAny);
    c.expertSize = f.integer("moe_intermediate_size", 0, kAny);
    c.denseSize = f.integer("intermediate_size", 0, kAny, 0);
    c.maxPositions = f.integer("max_position_embeddings", 1, kAny);
    c.rmsEps = float(f.number("rms_norm_eps", 0, 1));
    c.norm = choice(f, "norm", kNorms, "rms");
    c.sharedSize = f.integer("shared_expert_intermediate_size", 0, kAny, 0);
    c.sharedGate = f.flag("shared_expert_gate", false);
    c.activation = choice(f, "activation", kActivations, "silu");
    c.activationLimit = f.number("activation_limit", 0, 1e30, 0.0);
    c.activationAlpha = f.number("activation_alpha", 0, 1e30, 0.0);
    c.ffnBias = f.flag("mlp_bias", false);
    c.expertBias = f.flag("expert_bias", false);
    c.embeddingScale = f.number("embedding_multiplier", 0, 1e9, 1.0);
    c.residualScale = f.number("residual_multiplier", 0, 1e9, 1.0);
    c.logitScale = f.number("logits_scaling", 0, 1e9, 1.0);
    c.tiedEmbeddings = f.flag("tie_word_embeddings");
    c.headBias = f.flag("lm_head_bias", false);
    readLayers(f, c);
    if (!f.status().ok()) return;
    readAttention(f, c);
    readRope(f, c.rope);
    readRouting(f, c.routing);
    if (const Json* ids = f.array("eos_token_id", true)) {
        for (const Json& id : *ids) {
            std::optional<int64_t> whole = wholeNumber(id);
            if (!whole || *whole < 0 || *whole > INT32_MAX) {
                f.fail("\"eos_token_id\" contains a value that is not a token id");
                break;
            }
            c.eosIds.push_back(int32_t(*whole));
        }
    }
    c.bosId = int32_t(f.integer("bos_token_id", -1, INT32_MAX, -1));
    c.bosSource = printable(f.text("bos_token_source", ""));
    if (const Json* sources = f.array("eos_token_sources", true)) {
        for (const Json& source : *sources) {
            c.eosSources.push_back(source.is_string() ? printable(source.get<std::string>()) : "");
        }
        c.eosSources.resize(c.eosIds.size());
    }
    if (const Json* g = f.find("generation")) {
        Fields gen(*g, "generation");
        c.temperature = float(gen.number("temperature", 0, 1e6, -1.0));
        c.topP = float(gen.number("top_p", 0, 1, -1.0));
        c.topKSampling = int(gen.integer("top_k", 0, INT32_MAX, -1));
        if (!gen.status().ok()) f.fail(gen.status().message());
    }
}

void writeConfig(OrderedJson& j, const ModelConfig& c) {
    j["name"] = c.name;
    j["model_type"] = c.family;
    j["vocab_size"] = c.vocabSize;
    j["hidden_size"] = c.hiddenSize;
    j["num_hidden_layers"] = c.numLayers;
    j["num_attention_heads"] = c.numHeads;
    j["num_key_value_heads"] = c.numKvHeads;
    j["head_dim"] = c.headDim;
    j["num_experts"] = c.numExperts;
    j["num_experts_per_tok"] = c.topK;
    j["moe_intermediate_size"] = c.expertSize;
    j["intermediate_size"] = c.denseSize;
    j["max_position_embeddings"] = c.maxPositions;
    j["rms_norm_eps"] = shortest(c.rmsEps);
    j["norm"] = nameOf(kNorms, c.norm);
    j["shared_expert_intermediate_size"] = c.sharedSize;
    j["shared_expert_gate"] = c.sharedGate;
    j["activation"] = nameOf(kActivations, c.activation);
    j["activation_limit"] = c.activationLimit;
    j["activation_alpha"] = c.activationAlpha;
    j["mlp_bias"] = c.ffnBias;
    j["expert_bias"] = c.expertBias;
    j["embedding_multiplier"] = c.embeddingScale;
    j["residual_multiplier"] = c.residualScale;
    j["logits_scaling"] = c.logitScale;
    j["tie_word_embeddings"] = c.tiedEmbeddings;
    j["lm_head_bias"] = c.headBias;
    writeAttention(j, c);
    writeRope(j, c.rope);
    writeRouting(j, c.routing);
    OrderedJson layers = OrderedJson::array();
    for (int64_t i = 0; i < c.numLayers; ++i) {
        if (c.moeLayer[size_t(i)]) layers.push_back(i);
    }
    j["moe_layers"] = layers;
    j["eos_token_id"] = c.eosIds;
    if (!c.eosSources.empty()) j["eos_token_sources"] = c.eosSources;
    j["bos_token_id"] = c.bosId >= 0 ? OrderedJson(c.bosId) : OrderedJson();
    if (!c.bosSource.empty()) j["bos_token_source"] = c.bosSource;
    OrderedJson generation = OrderedJson::object();
    if (c.temperature >= 0) generation["temperature"] = shortest(c.temperature);
    if (c.topP >= 0) generation["top_p"] = shortest(c.topP);
    if (c.topKSampling >= 0) generation["top_k"] = c.topKSampling;
    j["generation"] = generation;
}

}  // namespace colibri
