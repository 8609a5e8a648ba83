// SPDX-License-Identifier: Apache-2.0
#include "engine/model/layout.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <utility>

#include "kernels/packed.h"

namespace colibri {

namespace {

struct Range {
    const char* key;
    int64_t value, low, high;
};

Status outOfRange(const char* key, const std::string& value, const std::string& expected) {
    return Status(Code::BadInput, std::string(key) + " is " + value + ", expected " + expected);
}

Status checkRanges(const ModelConfig& c) {
    // Limits far above all models, but low enough that a matrix stays below 2^47 bytes.
    const Range ranges[] = {
        {"vocab_size", c.vocabSize, 1, 1 << 24},
        {"hidden_size", c.hiddenSize, 1, 1 << 20},
        {"num_hidden_layers", c.numLayers, 1, 1 << 12},
        {"num_attention_heads", c.numHeads, 1, 1 << 14},
        {"num_key_value_heads", c.numKvHeads, 1, c.numHeads},
        {"head_dim", c.headDim, 2, 1 << 13},
        {"num_experts", c.numExperts, c.moeLayerCount() > 0 ? 1 : 0, 65535},
        {"num_experts_per_tok", c.topK, c.moeLayerCount() > 0 ? 1 : 0, c.numExperts},
        {"moe_intermediate_size", c.expertSize, c.moeLayerCount() > 0 ? 1 : 0, 1 << 22},
        {"intermediate_size", c.denseSize, c.moeLayerCount() < c.numLayers ? 1 : 0, 1 << 24},
        {"max_position_embeddings", c.maxPositions, 1, int64_t(1) << 31},
        {"sliding_window", c.slidingWindow, 0, int64_t(1) << 31},
        {"shared_expert_intermediate_size", c.sharedSize, 0, 1 << 24},
        {"rotary_dim", c.rope.rotaryDim, 2, c.headDim},
        {"original_max_position_embeddings", c.rope.originalPositions, 0, int64_t(1) << 31},
        {"kv_lora_rank", c.mla.kvRank, 0, 1 << 14},
        {"q_lora_rank", c.mla.qRank, 0, 1 << 16},
        {"v_head_dim", c.mla.valueDim, c.mla.kvRank ? 1 : 0, 1 << 13},
        {"n_group", c.routing.groups, 1, 65535},
        {"topk_group", c.routing.groupTopK, 1, c.routing.groups},
        {"bos_token_id", c.bosId, -1, INT32_MAX},
    };
    for (const Range& r : ranges) {
        if (r.value < r.low || r.value > r.high) {
            return outOfRange(
                r.key, std::to_string(r.value),
                "a value between " + std::to_string(r.low) + " and " + std::to_string(r.high));
        }
    }
    return {};
}

bool positive(double v) {
    return std::isfinite(v) && v > 0;
}

Status checkRope(const ModelConfig& c) {
    const RopeSpec& rope = c.rope;
    if (rope.rotaryDim % 2 != 0) {
        return outOfRange("rotary_dim", std::to_string(rope.rotaryDim), "an even number");
    }
    const bool stretched = rope.type == "yarn" || rope.type == "llama3";
    if (!stretched && rope.type != "default" && rope.type != "linear") {
        return Status(Code::Unsupported, "rope_type \"" + rope.type + "\" is not supported");
    }
    if (!positive(rope.theta)) return Status(Code::BadInput, "rope_theta is not positive");
    if (!positive(rope.factor)) return Status(Code::BadInput, "rope factor is not positive");
    if (stretched && (rope.originalPositions < 1 || rope.theta <= 1)) {
        return Status(Code::BadInput, "rope_type \"" + rope.type +
                                          "\" needs original_max_position_embeddings and a "
                                          "rope_theta above 1");
    }
    if (!positive(rope.betaFast) || !positive(rope.betaSlow)) {
        return Status(Code::BadInput, "beta_fast or beta_slow is not positive");
    }
    if (!positive(rope.lowFreqFactor) || !(rope.highFreqFactor > rope.lowFreqFactor)) {
        return Status(Code::BadInput, "low_freq_factor is not below high_freq_factor");
    }
    if (!positive(rope.attentionFactor) || !(rope.longAttentionFactor >= 0)) {
        return Status(Code::BadInput, "the attention factor of the rotation is not positive");
    }
    if (!rope.divisors.empty() && int64_t(rope.divisors.size()) != rope.rotaryDim / 2) {
        return outOfRange("rope_divisors", std::to_string(rope.divisors.size()) + " values",
                          std::to_string(rope.rotaryDim / 2));
    }
    for (const float d : rope.divisors) {
        if (!positive(double(d))) return Status(Code::BadInput, "a rope divisor is not positive");
    }
    return {};
}

Status checkAttention(const ModelConfig& c) {
    if (c.numHeads % c.numKvHeads != 0) {
        return outOfRange(
            "num_attention_heads", std::to_string(c.numHeads),
            "a multiple of num_key_value_heads (" + std::to_string(c.numKvHeads) + ")");
    }
    if (c.numHeads * std::max(c.headDim, c.mla.kvRank) > int64_t(1) << 24) {
        return Status(Code::BadInput, "num_attention_heads x head_dim is larger than 16777216");
    }
    for (const auto* layers : {&c.windowLayer, &c.ropeLayer}) {
        if (!layers->empty() && int64_t(layers->size()) != c.numLayers) {
            return Status(Code::BadInput, "layer_types does not have one entry per layer");
        }
    }
    if (!(c.attentionScale >= 0 && c.attentionScale < 1e6)) {
        return Status(Code::BadInput, "the attention scale is negative or not finite");
    }
    if (!(c.queryScale >= 0 && c.queryScale < 1e6) ||
        (c.queryScale > 0 && !positive(c.queryScalePositions))) {
        return Status(Code::BadInput, "attn_scale or floor_scale is out of range");
    }
    if (c.mla.kvRank == 0) return {};
    if (c.mla.nopeDim < 1 || c.mla.nopeDim + c.rope.rotaryDim != c.headDim) {
        return outOfRange("qk_nope_head_dim", std::to_string(c.mla.nopeDim),
                          "head_dim less the rotated part");
    }
    // The matrices from and to the latent are split by head at panel boundaries.
    if (c.mla.kvRank % kPanel != 0 || c.mla.valueDim % kPanel != 0) {
        return Status(Code::Unsupported, "kv_lora_rank " + std::to_string(c.mla.kvRank) +
                                             " and v_head_dim " + std::to_string(c.mla.valueDim) +
                                             " must be multiples of " + std::to_string(kPanel));
    }
    return {};
}

Status checkRouting(const ModelConfig& c) {
    const RoutingSpec& r = c.routing;
    if (!positive(r.scale)) {
        return Status(Code::BadInput, "the scale of the routing weights is not positive");
    }
    if (!(r.renormEps >= 0 && r.renormEps < 1)) {
        return Status(Code::BadInput, "renorm_eps is not between 0 and 1");
    }
    if (!(r.sparseJitter >= 0 && r.sparseJitter < 1e3)) {
        return Status(Code::BadInput, "router_jitter_noise is negative or not finite");
    }
    if (c.moeLayerCount() == 0 || r.groups == 1) return {};
    if (c.numExperts % r.groups != 0) {
        return outOfRange("n_group", std::to_string(r.groups), "a divisor of the experts");
    }
    if (c.numExperts / r.groups * r.groupTopK < c.topK) {
        return outOfRange("topk_group", std::to_string(r.groupTopK),
                          "groups with at least " + std::to_string(c.topK) + " experts together");
    }
    return {};
}

}  // namespace

Status checkConfig(const ModelConfig& c) {
    if (int64_t(c.moeLayer.size()) != c.numLayers) {
        return outOfRange("num_hidden_layers", std::to_string(c.numLayers),
                          std::to_string(c.moeLayer.size()));
    }
    COLIBRI_TRY(checkRanges(c));
    COLIBRI_TRY(checkAttention(c));
    COLIBRI_TRY(checkRope(c));
    COLIBRI_TRY(checkRouting(c));
    if (!positive(double(c.rmsEps)) || c.rmsEps > 1) {
        return Status(Code::BadInput, "rms_norm_eps is not between 0 and 1");
    }
    if (!(c.clipQkv >= 0) || !std::isfinite(c.clipQkv)) {
        return Status(Code::BadInput, "clip_qkv is negative or not finite");
    }
    for (const auto& [key, value] : {std::pair{"embedding_multiplier", c.embeddingScale},
                                     std::pair{"residual_multiplier", c.residualScale},
                                     std::pair{"logits_scaling", c.logitScale}}) {
        if (!positive(value)) return Status(Code::BadInput, std::string(key) + " is not positive");
    }
    if (!(c.activationLimit >= 0) || !std::isfinite(c.activationLimit)) {
        return Status(Code::BadInput, "swiglu_limit is negative or not finite");
    }
    for (int32_t id : c.eosIds) {
        if (id < 0) return outOfRange("eos_token_id", std::to_string(id), "no negative id");
    }
    // Keeps all sums of sizes below 2^63: at most 2^50 weights of 4 bytes, plus padding.
    double weights = 2.0 * double(c.vocabSize) * double(c.hiddenSize);
    weights += double(c.numLayers) * double(c.hiddenSize) *
               (4.0 * double(c.numHeads * std::max(c.headDim, c.mla.kvRank)) +
                3.0 * double(c.denseSize) + 3.0 * double(c.sharedSize));
    weights += double(c.numLayers) * double(c.numHeads) * double(c.mla.kvRank) *
               double(c.mla.nopeDim + c.mla.valueDim);
    double perExpert =
        3.0 * double(paddedCols(c.hiddenSize)) * double(alignUp(c.expertSize, kBlock));
    weights += double(c.moeLayerCount()) * double(c.numExperts) * (perExpert + 4096);
    if (weights > std::ldexp(1.0, 50)) {
        return Status(Code::BadInput, "the sizes give more than 10^15 weights");
    }
    return {};
}

std::string tensorName(int64_t layer, const char* part) {
    return std::to_string(layer) + "." + part;
}

namespace {

// Builds the list of a model's dense tensors.
class TensorList {
public:
    explicit TensorList(const ModelConfig& config) : m_c(config) {}

    std::vector<TensorSpec> make() {
        const int64_t H = m_c.hiddenSize;
        matrix("embed", m_c.vocabSize, H);
        for (m_layer = 0; m_layer < m_c.numLayers; ++m_layer) {
            norm("attn_norm");
            m_c.mla.kvRank ? latentAttention() : attention();
            if (m_c.sinks) plain("sinks", 1, m_c.numHeads);
            norm("ffn_norm");
            if (m_c.moeLayer[size_t(m_layer)]) {
                experts();
            } else {
                ffn("", m_c.denseSize);
            }
        }
        m_layer = -1;
        norm("norm");
        if (!m_c.tiedEmbeddings) matrix("head", m_c.vocabSize, H);
        if (m_c.headBias) plain("head_bias", 1, m_c.vocabSize);
        return std::move(m_out);
    }

private:
    std::string name(const std::string& part) const {
        return m_layer < 0 ? part : tensorName(m_layer, part.c_str());
    }
    void matrix(const std::string& part, int64_t rows, int64_t cols) {
        m_out.push_back({name(part), rows, cols, true, false});
    }
    void plain(const std::string& part, int64_t rows, int64_t cols, bool optional = false) {
        m_out.push_back({name(part), rows, cols, false, optional});
    }
    void norm(const char* part) {
        plain(part, 1, m_c.hiddenSize);
        if (m_c.norm == NormKind::Layer) {
            plain(std::string(part) + "_bias", 1, m_c.hiddenSize);
        }
    }

    void ffn(const std::string& prefix, int64_t size) {
        matrix(prefix + "gate", size, m_c.hiddenSize);
        matrix(prefix + "up", size, m_c.hiddenSize);
        matrix(prefix + "down", m_c.hiddenSize, size);
        if (!m_c.ffnBias) return;
        plain(prefix + "gate_bias", 1, size);
        plain(prefix + "up_bias", 1, size);
        plain(prefix + "down_bias", 1, m_c.hiddenSize);
    }

    void attention() {
        const int64_t H = m_c.hiddenSize;
        const int64_t qWidth = m_c.numHeads * m_c.headDim, kvWidth = m_c.numKvHeads * m_c.headDim;
        matrix("q", qWidth, H);
        matrix("k", kvWidth, H);
        matrix("v", kvWidth, H);
        matrix("o", H, qWidth);
        if (m_c.qkNorm == QkNorm::PerHead || m_c.qkNorm == QkNorm::FullWidth) {
            const bool full = m_c.qkNorm == QkNorm::FullWidth;
            plain("q_norm", 1, full ? qWidth : m_c.headDim);
            plain("k_norm", 1, full ? kvWidth : m_c.headDim);
        }
        if (m_c.attentionBias) {
            plain("q_bias", 1, qWidth);
            plain("k_bias", 1, kvWidth);
            plain("v_bias", 1, kvWidth);
            plain("o_bias", 1, H, true);
        }
    }

    void latentAttention() {
        const MlaSpec& mla = m_c.mla;
        const int64_t H = m_c.hiddenSize, qWidth = m_c.numHeads * m_c.headDim;
        if (mla.qRank) {
            matrix("q_a", mla.qRank, H);
            plain("q_a_norm", 1, mla.qRank);
            matrix("q_b", qWidth, mla.qRank);
        } else {
            matrix("q", qWidth, H);
        }
        matrix("kv_a", mla.kvRank + m_c.rope.rotaryDim, H);
        plain("kv_a_norm", 1, mla.kvRank);
        matrix("k_up", m_c.numHeads * mla.kvRank, mla.nopeDim);
        matrix("v_up", m_c.numHeads * mla.valueDim, mla.kvRank);
        matrix("o", H, m_c.mixedWidth());
    }

    void experts() {
        const int64_t E = m_c.numExperts, H = m_c.hiddenSize, I = m_c.expertSize;
        plain("router", E, H);
        if (m_c.routing.logitBias) plain("router_logit_bias", 1, E);
        if (m_c.routing.selectBias) plain("router_bias", 1, E);
        if (m_c.expertBias) {
            plain("expert_gate_bias", E, I);
            plain("expert_up_bias", E, I);
            plain("expert_down_bias", E, H);
        }
        if (m_c.sharedSize == 0) return;
        ffn("shared_", m_c.sharedSize);
        if (m_c.sharedGate) plain("shared_router", 1, H);
    }

    const ModelConfig& m_c;
    int64_t m_layer = -1;
    std::vector<TensorSpec> m_out;
};

}  // namespace

std::vector<TensorSpec> denseTensors(const ModelConfig& config) {
    return TensorList(config).make();
}

std::string expertFileName(int64_t layer) {
    char name[48];
    std::snprintf(name, sizeof name, "experts/layer_%03lld.bin", static_cast<long long>(layer));
    return name;
}

bool fitsBlocks(DType type, int64_t cols) {
    return hasEncoder(type) || cols % fileBlock(type).cols == 0;
}

ExpertLayer expertLayout(const ModelConfig& config, int64_t layer, ExpertTypes types) {
    ExpertLayer out;
    out.layer = layer;
    out.file = expertFileName(layer);
    out.types = types;
    const int64_t w1 = packedBytes(types.w1, config.expertSize, config.hiddenSize);
    const int64_t w3 = packedBytes(types.w3, config.expertSize, config.hiddenSize);
    const int64_t w2 = packedBytes(types.w2, config.hiddenSize, config.expertSize);
    out.w1Offset = 0;
    out.w3Offset = alignUp(w1, kTensorAlign);
    out.w2Offset = alignUp(out.w3Offset + w3, kTensorAlign);
    out.recordBytes = alignUp(out.w2Offset + w2, kRecordAlign);
    return out;
}

int64_t tensorBytes(const TensorSpec& spec, DType type) {
    return spec.matrix ? packedBytes(type, spec.rows, spec.cols)
                       : spec.rows * spec.cols * int64_t(sizeof(float));
}

int64_t layOutDense(std::vector<TensorInfo>& tensors) {
    int64_t end = 0;
    for (TensorInfo& t : tensors) {
        t.file = kDenseFile;
        t.offset = alignUp(end, kTensorAlign);
        t.bytes = tensorBytes({t.name, t.rows, t.cols, t.packed, false}, t.dtype);
        end = t.offset + t.bytes;
    }
    return alignUp(end, kRecordAlign);  // whole pages, for direct reads
}

}  // namespace colibri
