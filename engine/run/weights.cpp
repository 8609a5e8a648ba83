// SPDX-License-Identifier: Apache-2.0
#include "engine/run/weights.h"

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

}  // namespace

Status ModelWeights::bindLayer(const ContainerInfo& info, const DenseWeights& dense, int64_t layer,
                               std::byte* routers) {
    const ModelConfig& c = info.config;
    const std::string p = std::to_string(layer) + ".";
    const int64_t qWidth = c.numHeads * c.headDim, kvWidth = c.numKvHeads * c.headDim;
    LayerWeights w;
    Binder bind(info, dense);
    bind.vector(p + "attn_norm", c.hiddenSize, true, &w.attnNorm);
    bind.vector(p + "ffn_norm", c.hiddenSize, true, &w.ffnNorm);
    bind.matrix(p + "q", qWidth, c.hiddenSize, &w.q);
    bind.matrix(p + "k", kvWidth, c.hiddenSize, &w.k);
    bind.matrix(p + "v", kvWidth, c.hiddenSize, &w.v);
    bind.matrix(p + "o", c.hiddenSize, qWidth, &w.o);
    if (c.qkNorm != QkNorm::None) {
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
    w.moeIndex = c.moeIndex(layer);
    if (w.moeIndex >= 0) {
        const float* router = nullptr;
        bind.vector(p + "router", c.numExperts * c.hiddenSize, true, &router);
        bind.vector(p + "router_bias", c.numExperts, c.routing.selectBias, &w.selectBias);
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
        bind.matrix(p + "gate", c.denseSize, c.hiddenSize, &w.gate);
        bind.matrix(p + "up", c.denseSize, c.hiddenSize, &w.up);
        bind.matrix(p + "down", c.hiddenSize, c.denseSize, &w.down);
        COLIBRI_TRY(bind.status());
        if (isQuantised(w.gate.type) != isQuantised(w.up.type)) {
            return {Code::BadInput,
                    "model.json: of " + p + "gate and " + p + "up only one is quantised",
                    "Convert the model again"};
        }
    }
    for (const Matrix* m : {&w.q, &w.k, &w.v, &w.o, &w.gate, &w.up, &w.down, &w.router}) {
        m_bytesPerToken += matrixBytes(*m);
    }
    if (w.experts) {
        const ExpertTypes& t = w.experts->types;
        m_bytesPerToken += c.topK * (packedBytes(t.w1, c.expertSize, c.hiddenSize) +
                                     packedBytes(t.w3, c.expertSize, c.hiddenSize) +
                                     packedBytes(t.w2, c.hiddenSize, c.expertSize));
    }
    m_layers.push_back(w);
    return {};
}

Status ModelWeights::bind(const ContainerInfo& info, const DenseWeights& dense) {
    const ModelConfig& c = info.config;
    m_layers.reserve(size_t(c.numLayers));
    auto* routers = m_routers.as<std::byte>(c.moeLayerCount() *
                                            packedBytes(DType::F32, c.numExperts, c.hiddenSize));
    for (int64_t l = 0; l < c.numLayers; ++l) COLIBRI_TRY(bindLayer(info, dense, l, routers));
    Binder bind(info, dense);
    bind.vector("norm", c.hiddenSize, true, &m_norm);
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
