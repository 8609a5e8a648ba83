// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "engine/model/container.h"
#include "engine/model/layout.h"
#include "kernels/kernels.h"

namespace colibri {

namespace {

constexpr int64_t kRecordingBytes = 16 << 20;  // event rings, series and histograms
constexpr int64_t kLogitRows = 64;             // rows of a batch that want logits at once
constexpr int64_t kHugePage = 2 << 20;

// Activations of one chunk of R rows, f32 unless said (H hidden, Q = heads x d, KV = kv heads x d,
// E experts, k chosen, I expert size):
//   residual stream and its norm            2 R H
//   q, k, v, attention output               R (2 Q + 2 KV)
//   router logits, chosen ids and weights   R (E + 2 k)
//   rows gathered by expert and their outputs, with the hidden layer between
//                                           R k (2 H + I), or the dense layer's R D
//   the same inputs quantised               R k max(H, I) x 40/32 bytes
//   logits                                  64 rows x vocabulary
//   attention scores, one head group per thread
//                                           threads x (heads / kv heads) x context
int64_t bufferBytes(const ModelConfig& c, const LoadShape& shape) {
    const int64_t rows = std::clamp<int64_t>(shape.prefillChunk, 1, 1 << 16);
    const int64_t qWidth = c.numHeads * c.headDim, kvWidth = c.numKvHeads * c.headDim;
    int64_t perRow = 2 * c.hiddenSize + 2 * qWidth + 2 * kvWidth + c.numExperts + 2 * c.topK;
    perRow += std::max(c.topK * (2 * c.hiddenSize + c.expertSize), c.denseSize);
    int64_t bytes = rows * perRow * int64_t(sizeof(float));
    int64_t widest = std::max({c.hiddenSize, c.expertSize, qWidth});
    bytes += rows * std::max<int64_t>(c.topK, 1) * inputRowBytes(DType::Q8_0, widest);
    bytes += kLogitRows * c.vocabSize * int64_t(sizeof(float));
    int64_t context = std::max<int64_t>(shape.contextLength, 1);
    bytes += std::max<int64_t>(shape.threads, 1) * (c.numHeads / c.numKvHeads) * context *
             int64_t(sizeof(float));
    return bytes;
}

}  // namespace

MemoryEstimate estimateMemory(const ContainerInfo& info, const LoadShape& shape) {
    const ModelConfig& c = info.config;
    MemoryEstimate m;
    m.dense = alignUp(info.denseBytes, kHugePage);
    int64_t perLayer = std::clamp<int64_t>(shape.cacheSize, 0, c.numExperts);
    m.expertCache = perLayer * c.moeLayerCount() * info.expertRecordBytes();
    int64_t pages = (std::max<int64_t>(shape.contextLength, 0) + kPageTokens - 1) / kPageTokens;
    m.kvCache = c.numLayers * 2 * c.numKvHeads * c.headDim * pages * kPageTokens *
                (shape.kvF16 ? 2 : 4);
    m.buffers = bufferBytes(c, shape);
    m.recording = kRecordingBytes;
    return m;
}

}  // namespace colibri
