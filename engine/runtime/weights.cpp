// SPDX-License-Identifier: Apache-2.0
#include "engine/runtime/weights.h"

#include <cstring>

namespace colibri {

namespace {

Status misshaped(const std::string& name, int64_t rows, int64_t cols, const TensorInfo* found) {
    const std::string want = std::to_string(rows) + " x " + std::to_string(cols);
    if (!found) {
        return {Code::BadInput, "model.json: tensor " + name + " (" + want + ") is missing",
                "Convert the model again"};
    }
    return {Code::BadInput,
            "model.json: tensor " + name + " is " + std::to_string(found->rows) + " x " +
                std::to_string(found->cols) + (found->packed ? " packed" : " plain") +
                ", expected " + want,
            "Convert the model again"};
}

class Binder {
public:
    Binder(const ContainerInfo& info, const DenseWeights& dense) : m_info(info), m_dense(dense) {}

    void matrix(const std::string& name, int64_t rows, int64_t cols, Matrix* out) {
        const TensorInfo* t = m_info.find(name);
        if (!t || !t->packed || t->rows != rows || t->cols != cols || !m_dense.data(name)) {
            fail(misshaped(name, rows, cols, t));
            return;
        }
        *out = {t->dtype, m_dense.data(name), rows, cols};
    }
    void vector(const std::string& name, int64_t n, bool required, const float** out) {
        const TensorInfo* t = m_info.find(name);
        if (!t && !required) return;
        if (!t || t->packed || t->rows * t->cols != n || !m_dense.floats(name)) {
            fail(misshaped(name, 1, n, t));
            return;
        }
        *out = m_dense.floats(name);
    }
    void norm(const std::string& name, const ModelConfig& c, Norm* out) {
        vector(name, c.hiddenSize, true, &out->weight);
        if (c.norm == NormKind::Layer) vector(name + "_bias", c.hiddenSize, true, &out->bias);
    }
    void ffn(const std::string& prefix, int64_t size, const ModelConfig& c, FfnWeights* out) {
        const int64_t hidden = c.hiddenSize;
        matrix(prefix + "gate", size, hidden, &out->gate);
        matrix(prefix + "up", size, hidden, &out->up);
        matrix(prefix + "down", hidden, size, &out->down);
        if (c.ffnBias) {
            vector(prefix + "gate_bias", size, true, &out->gateBias);
            vector(prefix + "up_bias", size, true, &out->upBias);
            vector(prefix + "down_bias", hidden, true, &out->downBias);
        }
        if (isQuantised(out->gate.type) != isQuantised(out->up.type)) {
            fail({Code::BadInput,
                  "model.json: only one of " + prefix + "gate and " + prefix + "up is quantised",
                  "Convert the model again"});
        }
    }
    Status status() const { return m_status; }

private:
    void fail(Status status) {
        if (m_status.ok()) m_status = std::move(status);
    }
    const ContainerInfo& m_info;
    const DenseWeights& m_dense;
    Status m_status;
};

int64_t matrixBytes(const Matrix& m) {
    return m ? packedBytes(m.type, m.rows, m.cols) : 0;
}

void bindAttention(Binder& bind, const ModelConfig& c, const std::string& p, LayerWeights& w) {
    const int64_t qWidth = c.numHeads * c.headDim, kvWidth = c.numKvHeads * c.headDim;
    bind.matrix(p + "q", qWidth, c.hiddenSize, &w.q);
    bind.matrix(p + "k", kvWidth, c.hiddenSize, &w.k);
    bind.matrix(p + "v", kvWidth, c.hiddenSize, &w.v);
    bind.matrix(p + "o", c.hiddenSize, qWidth, &w.o);
    if (c.qkNorm == QkNorm::PerHead || c.qkNorm == QkNorm::FullWidth) {
        const bool full = c.qkNorm == QkNorm::FullWidth;
        bind.vector(p + "q_norm", full ? qWidth : c.headDim, true, &w.qNorm);
        bind.vector(p + "k_norm", full ? kvWidth : c.headDim, true, &w.kNorm);
    }
    if (c.attentionBias) {
        bind.vector(p + "q_bias", qWidth, true, &w.qBias);
        bind.vector(p + "k_bias", kvWidth, true, &w.kBias);
        bind.vector(p + "v_bias", kvWidth, true, &w.vBias);
        bind.vector(p + "o_bias", c.hiddenSize, false, &w.oBias);
    }
}

void bindLatentAttention(Binder& bind, const ModelConfig& c, const std::string& p,
                         LayerWeights& w) {
    const MlaSpec& mla = c.mla;
    const int64_t qWidth = c.numHeads * c.headDim;
    if (mla.qRank > 0) {
        bind.matrix(p + "q_a", mla.qRank, c.hiddenSize, &w.qA);
        bind.vector(p + "q_a_norm", mla.qRank, true, &w.qANorm);
        bind.matrix(p + "q_b", qWidth, mla.qRank, &w.qB);
    } else {
        bind.matrix(p + "q", qWidth, c.hiddenSize, &w.q);
    }
    bind.matrix(p + "kv_a", mla.kvRank + c.rope.rotaryDim, c.hiddenSize, &w.kvA);
    bind.vector(p + "kv_a_norm", mla.kvRank, true, &w.kvANorm);
    bind.matrix(p + "k_up", c.numHeads * mla.kvRank, mla.nopeDim, &w.kUp);
    bind.matrix(p + "v_up", c.numHeads * mla.valueDim, mla.kvRank, &w.vUp);
    bind.matrix(p + "o", c.hiddenSize, c.mixedWidth(), &w.o);
}

// All but the router itself, which is packed by the caller.
void bindExperts(Binder& bind, const ModelConfig& c, const std::string& p, LayerWeights& w) {
    const int64_t E = c.numExperts;
    if (c.routing.logitBias) bind.vector(p + "router_logit_bias", E, true, &w.logitBias);
    if (c.routing.selectBias) bind.vector(p + "router_bias", E, true, &w.selectBias);
    if (c.expertBias) {
        bind.vector(p + "expert_gate_bias", E * c.expertSize, true, &w.expertGateBias);
        bind.vector(p + "expert_up_bias", E * c.expertSize, true, &w.expertUpBias);
        bind.vector(p + "expert_down_bias", E * c.hiddenSize, true, &w.expertDownBias);
    }
    if (c.sharedSize == 0) return;
    bind.ffn(p + "shared_", c.sharedSize, c, &w.shared);
    if (c.sharedGate) bind.vector(p + "shared_router", c.hiddenSize, true, &w.sharedGate);
}

}  // namespace

Status ModelWeights::bindLayer(const ContainerInfo& info, const DenseWeights& dense, int64_t layer,
                               std::byte* routers) {
    const ModelConfig& c = info.config;
    const std::string p = std::to_string(layer) + ".";
    LayerWeights w;
    Binder bind(info, dense);
    bind.norm(p + "attn_norm", c, &w.attnNorm);
    bind.norm(p + "ffn_norm", c, &w.ffnNorm);
    c.mla.kvRank ? bindLatentAttention(bind, c, p, w) : bindAttention(bind, c, p, w);
    if (c.sinks) bind.vector(p + "sinks", c.numHeads, true, &w.sinks);
    w.moeIndex = c.moeIndex(layer);
    if (w.moeIndex >= 0) {
        const float* router = nullptr;
        bind.vector(p + "router", c.numExperts * c.hiddenSize, true, &router);
        bindExperts(bind, c, p, w);
        COLIBRI_TRY(bind.status());
        if (w.moeIndex >= int64_t(info.expertLayers.size())) {
            return {Code::BadInput,
                    "model.json: no expert file for layer " + std::to_string(layer)};
        }
        w.experts = &info.expertLayers[size_t(w.moeIndex)];
        std::byte* packed =
            routers + w.moeIndex * packedBytes(DType::F32, c.numExperts, c.hiddenSize);
        packRows(DType::F32, router, c.numExperts, c.hiddenSize, packed);
        w.router = {DType::F32, packed, c.numExperts, c.hiddenSize};
        m_moeLayers.push_back(layer);
    } else {
        bind.ffn(p, c.denseSize, c, &w.dense);
        COLIBRI_TRY(bind.status());
    }
    count(c, w);
    m_layers.push_back(w);
    return {};
}

void ModelWeights::count(const ModelConfig& c, const LayerWeights& w) {
    for (const Matrix* m :
         {&w.q, &w.k, &w.v, &w.o, &w.qA, &w.qB, &w.kvA, &w.kUp, &w.vUp, &w.dense.gate, &w.dense.up,
          &w.dense.down, &w.shared.gate, &w.shared.up, &w.shared.down, &w.router}) {
        m_bytesPerToken += matrixBytes(*m);
    }
    if (!w.experts) return;
    const ExpertTypes& t = w.experts->types;
    m_bytesPerToken += c.topK * (packedBytes(t.w1, c.expertSize, c.hiddenSize) +
                                 packedBytes(t.w3, c.expertSize, c.hiddenSize) +
                                 packedBytes(t.w2, c.hiddenSize, c.expertSize));
}

Status ModelWeights::bind(const ContainerInfo& info, const DenseWeights& dense) {
    const ModelConfig& c = info.config;
    m_layers.reserve(size_t(c.numLayers));
    auto* routers = m_routers.as<std::byte>(c.moeLayerCount() *
                                            packedBytes(DType::F32, c.numExperts, c.hiddenSize));
    for (int64_t l = 0; l < c.numLayers; ++l) COLIBRI_TRY(bindLayer(info, dense, l, routers));
    Binder bind(info, dense);
    bind.norm("norm", c, &m_norm);
    if (c.headBias) bind.vector("head_bias", c.vocabSize, true, &m_headBias);
    const TensorInfo* embed = info.find("embed");
    if (embed && !embed->packed && !c.tiedEmbeddings) {
        bind.vector("embed", c.vocabSize * c.hiddenSize, true, &m_plainEmbed);
    } else {
        bind.matrix("embed", c.vocabSize, c.hiddenSize, &m_embed);
    }
    if (c.tiedEmbeddings && !info.find("head")) {
        m_head = m_embed;
    } else {
        bind.matrix("head", c.vocabSize, c.hiddenSize, &m_head);
    }
    COLIBRI_TRY(bind.status());
    m_bytesPerToken += matrixBytes(m_head);
    return {};
}

void ModelWeights::embed(int32_t token, float* out) const {
    if (m_plainEmbed) {
        std::memcpy(out, m_plainEmbed + int64_t(token) * m_head.cols, size_t(m_head.cols) * 4);
    } else {
        unpackRow(m_embed.type, m_embed.data, m_embed.cols, token, out);
    }
}

}  // namespace colibri
