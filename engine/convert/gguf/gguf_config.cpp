// SPDX-License-Identifier: Apache-2.0
#include "engine/convert/gguf/gguf_config.h"

#include <algorithm>
#include <cmath>
#include <set>

#include "engine/base/format.h"
#include "engine/base/printable.h"

namespace colibri {

namespace {

// Metadata of one architecture: "<arch>.<key>".
class ArchFields {
public:
    ArchFields(const GgufHeader& header, std::string arch)
        : m_header(header), m_arch(std::move(arch)) {}

    int64_t integer(const char* key, std::optional<int64_t> fallback = {}) {
        std::string full = m_arch + "." + key;
        // Far above all real values, and small enough that sums of several do not overflow.
        constexpr int64_t kAny = int64_t(1) << 40;
        if (std::optional<int64_t> v = m_header.integer(full)) return std::clamp(*v, -kAny, kAny);
        // One value per layer is accepted if all are equal.
        if (const auto* list = m_header.numbers(full); list && !list->empty()) {
            bool same = std::all_of(list->begin(), list->end(),
                                    [&](double v) { return v == list->front(); });
            if (!same) fail(Code::Unsupported, full + " differs between layers");
            if (std::abs(list->front()) < double(kAny)) return int64_t(list->front());
        }
        if (!fallback) fail(Code::BadInput, "\"" + full + "\" is missing");
        return fallback.value_or(0);
    }
    double number(const char* key, double fallback) {
        return m_header.number(m_arch + "." + key).value_or(fallback);
    }
    const std::string* text(const char* key) { return m_header.text(m_arch + "." + key); }
    std::optional<bool> flag(const char* key) { return m_header.flag(m_arch + "." + key); }

    void fail(Code code, const std::string& what) {
        if (m_status.ok()) m_status = Status(code, what);
    }
    const Status& status() const { return m_status; }

private:
    const GgufHeader& m_header;
    std::string m_arch;
    Status m_status;
};

const SourceTensor* findTensor(const GgufHeader& header, const std::string& name) {
    for (const SourceTensor& t : header.tensors) {
        if (t.name == name) return &t;
    }
    return nullptr;
}

// The number in "blk.12.rest" if the name has this form, else -1.
int64_t blockWith(const std::string& name, std::string_view rest) {
    if (!name.starts_with("blk.") || !name.ends_with(rest)) return -1;
    const std::string number = name.substr(4, name.find('.', 4) - 4);
    if (number.empty() || number.size() > 4 || number.size() + 4 + rest.size() != name.size() ||
        !std::all_of(number.begin(), number.end(), [](char d) { return d >= '0' && d <= '9'; })) {
        return -1;
    }
    return std::stoll(number);
}

// Rows of the first tensor of this name in any block. Sizes in the metadata are not always correct.
int64_t rowsIn(const GgufHeader& header, std::string_view rest, int64_t fallback) {
    for (const SourceTensor& t : header.tensors) {
        if (blockWith(t.name, rest) >= 0 && t.shape.size() >= 2) {
            return t.shape[t.shape.size() - 2];
        }
    }
    return fallback;
}

bool anyBlockHas(const GgufHeader& header, std::string_view rest) {
    return std::any_of(header.tensors.begin(), header.tensors.end(),
                       [&](const SourceTensor& t) { return blockWith(t.name, rest) >= 0; });
}

void readSizes(ArchFields& f, const GgufHeader& header, const FamilyRow& family, ModelConfig& c) {
    c.hiddenSize = f.integer("embedding_length");
    c.numHeads = f.integer("attention.head_count");
    c.numKvHeads = f.integer("attention.head_count_kv", c.numHeads);
    c.headDim = f.integer("attention.key_length", c.numHeads > 0 ? c.hiddenSize / c.numHeads : 0);
    if (const int64_t v = f.integer("attention.value_length", c.headDim);
        v != c.headDim && !family.latent) {
        f.fail(Code::Unsupported, "attention.value_length " + std::to_string(v) +
                                      " differs from key_length " + std::to_string(c.headDim));
    }
    c.maxPositions = f.integer("context_length", family.defaultPositions);
    c.norm = family.norm;
    c.rmsEps = float(f.number("attention.layer_norm_rms_epsilon",
                              f.number("attention.layer_norm_epsilon", family.defaultEps)));
    c.vocabSize = f.integer("vocab_size", 0);
    // The tensors define these sizes reliably.
    if (auto* t = findTensor(header, "token_embd.weight")) c.vocabSize = t->shape.front();
    c.tiedEmbeddings = findTensor(header, "output.weight") == nullptr;
    c.headBias = findTensor(header, "output.bias") != nullptr;
    c.ffnBias = anyBlockHas(header, ".ffn_gate.bias");
    c.denseSize = rowsIn(header, ".ffn_gate.weight", 0);
    if (family.layers == LayerRule::None) return;
    c.numExperts = f.integer("expert_count");
    c.topK = f.integer("expert_used_count");
    c.expertSize = f.integer("expert_feed_forward_length", f.integer("feed_forward_length", 0));
    c.expertSize =
        rowsIn(header, ".ffn_gate_exps.weight", rowsIn(header, ".ffn_gate.0.weight", c.expertSize));
    c.expertBias = family.expertBias;
    c.sharedSize = rowsIn(header, ".ffn_gate_shexp.weight", 0);
    c.sharedGate = anyBlockHas(header, ".ffn_gate_inp_shexp.weight");
}

void readAttention(ArchFields& f, const GgufHeader& header, const FamilyRow& family,
                   ModelConfig& c) {
    const bool normed = anyBlockHas(header, ".attn_q_norm.weight");
    c.qkNorm = normed || family.qkNorm == QkNorm::L2 ? family.qkNorm : QkNorm::None;
    c.qkNormAfterRope = family.qkNormAfterRope;
    c.clipQkv = float(f.number("attention.clamp_kqv", 0));
    c.attentionBias = anyBlockHas(header, ".attn_q.bias");
    c.sinks = family.sinks;
    if (family.window == WindowRule::Plain) {
        c.slidingWindow = f.integer("attention.sliding_window", 0);
    }
    if (!family.latent) return;
    c.mla.kvRank = f.integer("attention.kv_lora_rank");
    c.mla.qRank = f.integer("attention.q_lora_rank", 0);
    c.headDim = f.integer("attention.key_length_mla", c.headDim);
    c.mla.valueDim =
        f.integer("attention.value_length_mla", f.integer("attention.value_length", c.headDim));
    c.mla.nopeDim = c.headDim - std::clamp<int64_t>(f.integer("rope.dimension_count"), 0, 1 << 20);
    c.numKvHeads = c.numHeads;
}

void readRope(ArchFields& f, const FamilyRow& family, ModelConfig& c) {
    RopeSpec& rope = c.rope;
    rope.theta = f.number("rope.freq_base", family.defaultTheta);
    rope.interleaved = family.interleavedRope;
    rope.rotaryDim =
        int(std::clamp<int64_t>(f.integer("rope.dimension_count", c.headDim), 0, 1 << 20));
    rope.originalPositions = f.integer("rope.scaling.original_context_length", 0);
    rope.attentionFactor = f.number("rope.scaling.attn_factor", 1);
    const std::string* type = f.text("rope.scaling.type");
    if (!type || *type == "none" || *type == "longrope") return;
    if (*type != "linear" && *type != "yarn") {
        f.fail(Code::Unsupported, "rope.scaling.type \"" + *type + "\"");
        return;
    }
    rope.type = *type;
    rope.factor = f.number("rope.scaling.factor", 1);
    if (*type == "linear") return;
    if (rope.originalPositions == 0) rope.originalPositions = c.maxPositions;
    rope.betaFast = f.number("rope.scaling.yarn_beta_fast", 32);
    rope.betaSlow = f.number("rope.scaling.yarn_beta_slow", 1);
    rope.attentionFactor *= yarnScale(rope.factor, 1);
    if (!family.latent) return;
    // mscale and mscale_all_dim are assumed equal, as in published models: they cancel out in the
    // rotation and affect only the scale.
    const double m = 1 + f.number("rope.scaling.yarn_log_multiplier", 0) * std::log(rope.factor);
    if (m != 1) rope.attentionFactor = 1;
    c.attentionScale = m * m / std::sqrt(double(c.headDim));
}

void readRouting(ArchFields& f, const FamilyRow& family, ModelConfig& c) {
    RoutingSpec& r = c.routing;
    r = family.routing;
    const int64_t gating = f.integer("expert_gating_func", 0);  // 0: absent
    const int64_t own = r.scoreFn == ScoreFn::Softmax ? 1 : r.scoreFn == ScoreFn::Sigmoid ? 2 : 3;
    if (gating != 0 && gating != own) {
        f.fail(Code::Unsupported, "expert_gating_func " + std::to_string(gating) + " of a " +
                                      family.modelType + " model");
    }
    const bool usual = family.renorm == RenormRule::Always ||
                       (family.renorm == RenormRule::ByConfig && family.ggufRenorm);
    r.renorm = f.flag("expert_weights_norm").value_or(usual);
    if (family.renorm == RenormRule::Never) r.renorm = false;
    if (const double scale = f.number("expert_weights_scale", 1); scale > 0) r.scale = scale;
    if (family.grouped) {
        r.groups = std::max<int64_t>(1, f.integer("expert_group_count", 1));
        r.groupTopK = std::max<int64_t>(1, f.integer("expert_group_used_count", 1));
    }
}

// A layer is a MoE layer if the tensors of its experts exist.
void readLayers(ArchFields& f, const GgufHeader& header, GgufConfig& out) {
    ModelConfig& c = out.config;
    out.extraLayers = f.integer("nextn_predict_layers", 0);
    const int64_t blocks = f.integer("block_count");
    if (out.extraLayers < 0 || blocks <= out.extraLayers || blocks > 1 << 12) {
        f.fail(Code::BadInput, "block_count is " + std::to_string(blocks) +
                                   ", expected a value between 1 and 4096, above " +
                                   "nextn_predict_layers");
        return;
    }
    c.numLayers = blocks - out.extraLayers;
    c.moeLayer.assign(size_t(c.numLayers), false);
    for (const SourceTensor& t : header.tensors) {
        for (const char* end :
             {".ffn_gate_exps.weight", ".ffn_gate_up_exps.weight", ".ffn_gate.0.weight"}) {
            const int64_t layer = blockWith(t.name, end);
            if (layer >= 0 && layer < c.numLayers) c.moeLayer[size_t(layer)] = true;
        }
    }
    // For the file of a MoE model without any expert tensors, report the missing tensors.
    if (c.numExperts > 0 && c.moeLayerCount() == 0) c.moeLayer.assign(size_t(c.numLayers), true);
    if (c.moeLayerCount() == c.numLayers) c.denseSize = 0;
}

// Values without a metadata key, which follow from the architecture.
void finishGranite(ArchFields& f, ModelConfig& c) {
    const auto scale = [&](const char* key, double& to) {
        if (const double v = f.number(key, 0); v > 0) to = v;
    };
    scale("embedding_scale", c.embeddingScale);
    scale("residual_scale", c.residualScale);
    scale("attention.scale", c.attentionScale);
    scale("logit_scale", c.logitScale);
}

void finishGptOss(ArchFields&, ModelConfig& c) {
    c.activation = Activation::ClampedSwiglu;
    c.activationLimit = 7;
    c.activationAlpha = 1.702;
    c.rope.truncate = false;
    for (int64_t i = 0; i < c.numLayers; ++i) c.windowLayer.push_back(i % 2 == 0);
}

void finishPhimoe(ArchFields&, ModelConfig& c) {
    c.routing.sparseJitter = 0.01;
}

void finishErnie(ArchFields&, ModelConfig& c) {
    c.routing.renormEps = 1e-12;
}

void finishLlama4(ArchFields& f, ModelConfig& c) {
    constexpr int64_t kChunk = 8192, kNopeEvery = 4;
    c.slidingWindow = kChunk;
    c.chunkedWindow = true;
    for (int64_t i = 0; i < c.numLayers; ++i) c.ropeLayer.push_back((i + 1) % kNopeEvery != 0);
    c.windowLayer = c.ropeLayer;
    c.queryScale = 0.1;
    c.queryScalePositions = double(kChunk);
    // The larger model, which has experts in every second layer, has no norm.
    if (f.integer("interleave_moe_layer_step", 1) > 1) c.qkNorm = QkNorm::None;
}

constexpr struct {
    const char* modelType;
    void (*finish)(ArchFields& f, ModelConfig& c);
} kFinish[] = {{"granitemoe", finishGranite}, {"granitemoeshared", finishGranite},
               {"gpt_oss", finishGptOss},     {"phimoe", finishPhimoe},
               {"ernie4_5_moe", finishErnie}, {"llama4_text", finishLlama4}};

// The row of an architecture. The tensors distinguish the families of an architecture that has
// several.
Result<const FamilyRow*> familyOf(const GgufHeader& header, const std::string& where) {
    const std::string* arch = header.text("general.architecture");
    if (!arch) return Status(Code::BadInput, where + ": no general.architecture");
    const bool experts = header.integer(*arch + ".expert_count").value_or(0) > 0;
    const bool shared = anyBlockHas(header, ".ffn_gate_shexp.weight");
    const bool sigmoid = header.integer(*arch + ".expert_gating_func").value_or(0) == 2 ||
                         anyBlockHas(header, ".exp_probs_b.bias");
    const FamilyRow* best = nullptr;
    int bestFit = -1;
    std::set<std::string> known;
    for (const FamilyRow& row : families()) {
        if (!row.ggufArch) continue;
        known.insert(row.ggufArch);
        if (*arch != row.ggufArch || (row.layers != LayerRule::None) != experts) continue;
        const int fit = ((row.sharedSizeKeys || row.sharedCountKeys) == shared) +
                        2 * (row.routing.selectBias == sigmoid);
        if (fit > bestFit) best = &row;
        bestFit = std::max(bestFit, fit);
    }
    if (best) return best;
    std::string names;
    for (const std::string& name : known) names += (names.empty() ? "" : ", ") + name;
    return Status(Code::Unsupported,
                  where + ": architecture \"" + printable(*arch) + "\"" +
                      (known.count(*arch) ? experts ? " with experts" : " without experts" : "") +
                      " is not supported",
                  "Supported: " + names);
}

}  // namespace

Result<GgufConfig> readGgufConfig(const GgufHeader& header, const std::string& where) {
    Result<const FamilyRow*> family = familyOf(header, where);
    if (!family) return family.status();
    GgufConfig out;
    out.family = *family;
    ModelConfig& c = out.config;
    c.family = out.family->modelType;
    ArchFields fields(header, out.family->ggufArch);
    readSizes(fields, header, *out.family, c);
    readLayers(fields, header, out);
    readAttention(fields, header, *out.family, c);
    readRope(fields, *out.family, c);
    readRouting(fields, *out.family, c);
    for (const auto& [type, finish] : kFinish) {
        if (fields.status().ok() && c.family == type) finish(fields, c);
    }
    if (!fields.status().ok()) return fields.status().in(where);
    return out;
}

}  // namespace colibri
