// SPDX-License-Identifier: Apache-2.0
// The dense weights of a model by layer, as pointers into DenseWeights. Routers are packed once at
// load so that they run through the same matrix kernels as everything else (in f32).
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "engine/base/status.h"
#include "engine/model/container.h"
#include "engine/run/buffer.h"
#include "kernels/packed.h"

namespace colibri {

struct Matrix {  // [rows, cols], packed
    DType type = DType::F32;
    const std::byte* data = nullptr;
    int64_t rows = 0, cols = 0;

    explicit operator bool() const { return data != nullptr; }
    int64_t panels() const { return panelCount(rows); }
};

struct LayerWeights {
    const float* attnNorm = nullptr;                 // (H)
    const float* ffnNorm = nullptr;                  // (H)
    const float *qNorm = nullptr, *kNorm = nullptr;  // (d) or the full width
    const float *qBias = nullptr, *kBias = nullptr, *vBias = nullptr;
    const float* oBias = nullptr;  // (H)
    Matrix q, k, v, o;
    Matrix gate, up, down;              // dense FFN
    Matrix router;                      // (E, H) f32
    const float* selectBias = nullptr;  // (E)
    int64_t moeIndex = -1;              // -1: dense FFN
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
    const float* norm() const { return m_norm; }
    const Matrix& head() const { return m_head; }
    void embed(int32_t token, float* out) const;  // (H)

    int64_t routerBytes() const { return m_routers.bytes(); }  // of the packed copies
    // Bytes of weights one decoded token streams from memory: attention, norms, routers, chosen
    // experts or dense FFN, head (not the embedding table, of which it reads one row).
    int64_t bytesPerToken() const { return m_bytesPerToken; }

private:
    Status bindLayer(const ContainerInfo& info, const DenseWeights& dense, int64_t layer,
                     std::byte* routers);

    std::vector<LayerWeights> m_layers;
    std::vector<int64_t> m_moeLayers;
    ScratchBuffer m_routers;  // all packed routers, one after the other
    const float* m_norm = nullptr;
    Matrix m_head;
    Matrix m_embed;
    const float* m_plainEmbed = nullptr;  // an embedding table that is not packed
    int64_t m_bytesPerToken = 0;
};

}  // namespace colibri
