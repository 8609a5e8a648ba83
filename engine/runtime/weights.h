// SPDX-License-Identifier: Apache-2.0
// The dense weights of a model by layer, as pointers into DenseWeights. Routers are packed once at
// load so that they use the same matrix kernels as all other matrices (in f32).
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "engine/base/buffer.h"
#include "engine/base/status.h"
#include "engine/model/container.h"
#include "kernels/packed.h"

namespace colibri {

struct Matrix {  // [rows, cols], packed
    DType type = DType::F32;
    const std::byte* data = nullptr;
    int64_t rows = 0, cols = 0;

    explicit operator bool() const { return data != nullptr; }
    int64_t panels() const { return panelCount(rows); }
};

struct Norm {
    const float* weight = nullptr;  // (n)
    const float* bias = nullptr;    // (n): a layer norm; nullptr: RMS norm
};

struct FfnWeights {  // gate and up take their input in one form
    Matrix gate, up, down;
    const float *gateBias = nullptr, *upBias = nullptr, *downBias = nullptr;  // all or none

    explicit operator bool() const { return bool(gate); }
};

struct LayerWeights {
    Norm attnNorm, ffnNorm;                          // (H)
    const float *qNorm = nullptr, *kNorm = nullptr;  // (d) or the full width
    const float *qBias = nullptr, *kBias = nullptr, *vBias = nullptr;
    const float* oBias = nullptr;  // (H)
    const float* sinks = nullptr;  // (heads)
    Matrix q, k, v, o;
    // Latent attention: kvA instead of k and v, and qA, qB instead of q if queries have a latent.
    // kUp and vUp contain the heads one after the other, each in whole panels.
    Matrix qA, qB, kvA, kUp, vUp;
    const float *qANorm = nullptr, *kvANorm = nullptr;
    FfnWeights dense;                   // of a layer without experts
    FfnWeights shared;                  // the expert that every token uses
    const float* sharedGate = nullptr;  // (H) the sigmoid of this product scales its output
    Matrix router;                      // (E, H) f32
    const float* logitBias = nullptr;   // (E) part of the logits
    const float* selectBias = nullptr;  // (E) of the choice only
    // (E, I), (E, I) and (E, H); all or none
    const float *expertGateBias = nullptr, *expertUpBias = nullptr, *expertDownBias = nullptr;
    int64_t moeIndex = -1;  // -1: dense FFN
    const ExpertLayer* experts = nullptr;
};

class ModelWeights {
public:
    // `info` and `dense` must outlive this. Errors: BadInput naming tensor and shape.
    Status bind(const ContainerInfo& info, const DenseWeights& dense);

    const std::vector<LayerWeights>& layers() const { return m_layers; }
    const LayerWeights& layer(int64_t i) const { return m_layers[size_t(i)]; }
    // The model layer of a MoE layer index.
    int64_t layerOfMoe(int64_t moe) const { return m_moeLayers[size_t(moe)]; }
    int64_t moeLayers() const { return int64_t(m_moeLayers.size()); }
    const Norm& norm() const { return m_norm; }
    const Matrix& head() const { return m_head; }
    const float* headBias() const { return m_headBias; }  // (vocab) or nullptr
    void embed(int32_t token, float* out) const;          // (H)

    int64_t routerBytes() const { return m_routers.bytes(); }  // of the packed copies
    // Bytes of weights one decoded token streams from memory: attention, norms, routers, chosen
    // experts or dense FFN, head (not the embedding table, of which it reads one row).
    int64_t bytesPerToken() const { return m_bytesPerToken; }

private:
    Status bindLayer(const ContainerInfo& info, const DenseWeights& dense, int64_t layer,
                     std::byte* routers);
    void count(const ModelConfig& config, const LayerWeights& w);

    std::vector<LayerWeights> m_layers;
    std::vector<int64_t> m_moeLayers;
    ScratchBuffer m_routers;  // all packed routers, one after another
    Norm m_norm;
    const float* m_headBias = nullptr;
    Matrix m_head;
    Matrix m_embed;
    const float* m_plainEmbed = nullptr;  // the embedding table if it is not packed
    int64_t m_bytesPerToken = 0;
};

}  // namespace colibri
