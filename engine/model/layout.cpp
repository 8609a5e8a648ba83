// SPDX-License-Identifier: Apache-2.0
#include "engine/model/layout.h"

#include <cmath>
#include <cstdio>

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
    // Caps far above any model, low enough that a matrix stays below 2^47 bytes.
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
        {"rotary_dim", c.rope.rotaryDim, 2, c.headDim},
        {"bos_token_id", c.bosId, -1, INT32_MAX},
    };
    for (const Range& r : ranges) {
        if (r.value < r.low || r.value > r.high) {
            return outOfRange(r.key, std::to_string(r.value),
                              "a value between " + std::to_string(r.low) + " and " +
                                  std::to_string(r.high));
        }
    }
    return {};
}

bool positive(double v) { return std::isfinite(v) && v > 0; }

}  // namespace

Status checkConfig(const ModelConfig& c) {
    if (int64_t(c.moeLayer.size()) != c.numLayers) {
        return outOfRange("num_hidden_layers", std::to_string(c.numLayers),
                          std::to_string(c.moeLayer.size()));
    }
    COLIBRI_TRY(checkRanges(c));
    if (c.numHeads % c.numKvHeads != 0) {
        return outOfRange("num_attention_heads", std::to_string(c.numHeads),
                          "a multiple of num_key_value_heads (" + std::to_string(c.numKvHeads) +
                              ")");
    }
    if (c.numHeads * c.headDim > int64_t(1) << 22) {
        return Status(Code::BadInput, "num_attention_heads x head_dim is larger than 4194304");
    }
    if (c.rope.rotaryDim % 2 != 0) {
        return outOfRange("rotary_dim", std::to_string(c.rope.rotaryDim), "an even number");
    }
    if (c.rope.type != "default" && c.rope.type != "linear") {
        return Status(Code::Unsupported, "rope_type \"" + c.rope.type + "\" is not supported");
    }
    if (!positive(c.rope.theta)) return Status(Code::BadInput, "rope_theta is not positive");
    if (!positive(c.rope.factor)) return Status(Code::BadInput, "rope factor is not positive");
    if (!positive(double(c.rmsEps)) || c.rmsEps > 1) {
        return Status(Code::BadInput, "rms_norm_eps is not between 0 and 1");
    }
    if (!(c.clipQkv >= 0) || !std::isfinite(c.clipQkv)) {
        return Status(Code::BadInput, "clip_qkv is negative or not finite");
    }
    if (!positive(c.routing.scale)) {
        return Status(Code::BadInput, "the scale of the routing weights is not positive");
    }
    if (!(c.routing.renormEps >= 0 && c.routing.renormEps < 1)) {
        return Status(Code::BadInput, "renorm_eps is not between 0 and 1");
    }
    for (int32_t id : c.eosIds) {
        if (id < 0) return outOfRange("eos_token_id", std::to_string(id), "no negative id");
    }
    // All sums of sizes stay in 63 bits: at most 2^50 weights of 4 bytes, plus padding.
    double weights = 2.0 * double(c.vocabSize) * double(c.hiddenSize);
    weights += double(c.numLayers) * double(c.hiddenSize) *
               (4.0 * double(c.numHeads * c.headDim) + 3.0 * double(c.denseSize));
    double perExpert = 3.0 * double(paddedCols(c.hiddenSize)) *
                       double(alignUp(c.expertSize, kBlock));
    weights += double(c.moeLayerCount()) * double(c.numExperts) * (perExpert + 4096);
    if (weights > std::ldexp(1.0, 50)) {
        return Status(Code::BadInput, "the sizes give more than 10^15 weights");
    }
    return {};
}

std::string tensorName(int64_t layer, const char* part) {
    return std::to_string(layer) + "." + part;
}

std::vector<TensorSpec> denseTensors(const ModelConfig& c) {
    const int64_t H = c.hiddenSize;
    const int64_t qWidth = c.numHeads * c.headDim, kvWidth = c.numKvHeads * c.headDim;
    std::vector<TensorSpec> out;
    auto matrix = [&](std::string name, int64_t rows, int64_t cols) {
        out.push_back({std::move(name), rows, cols, true, false});
    };
    auto plain = [&](std::string name, int64_t rows, int64_t cols, bool optional = false) {
        out.push_back({std::move(name), rows, cols, false, optional});
    };
    matrix("embed", c.vocabSize, H);
    for (int64_t layer = 0; layer < c.numLayers; ++layer) {
        auto in = [&](const char* part) { return tensorName(layer, part); };
        plain(in("attn_norm"), 1, H);
        matrix(in("q"), qWidth, H);
        matrix(in("k"), kvWidth, H);
        matrix(in("v"), kvWidth, H);
        matrix(in("o"), H, qWidth);
        if (c.qkNorm != QkNorm::None) {
            bool full = c.qkNorm == QkNorm::FullWidth;
            plain(in("q_norm"), 1, full ? qWidth : c.headDim);
            plain(in("k_norm"), 1, full ? kvWidth : c.headDim);
        }
        if (c.attentionBias) {
            plain(in("q_bias"), 1, qWidth);
            plain(in("k_bias"), 1, kvWidth);
            plain(in("v_bias"), 1, kvWidth);
            plain(in("o_bias"), 1, H, true);
        }
        plain(in("ffn_norm"), 1, H);
        if (c.moeLayer[size_t(layer)]) {
            plain(in("router"), c.numExperts, H);
            if (c.routing.selectBias) plain(in("router_bias"), 1, c.numExperts);
        } else {
            matrix(in("gate"), c.denseSize, H);
            matrix(in("up"), c.denseSize, H);
            matrix(in("down"), H, c.denseSize);
        }
    }
    plain("norm", 1, H);
    if (!c.tiedEmbeddings) matrix("head", c.vocabSize, H);
    return out;
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

int64_t placeDense(std::vector<TensorInfo>& tensors) {
    int64_t end = 0;
    for (TensorInfo& t : tensors) {
        t.file = kDenseFile;
        t.offset = alignUp(end, kTensorAlign);
        t.bytes = tensorBytes({t.name, t.rows, t.cols, t.packed, false}, t.dtype);
        end = t.offset + t.bytes;
    }
    return alignUp(end, kRecordAlign);   // whole pages, so that the file can be read directly
}

}  // namespace colibri
