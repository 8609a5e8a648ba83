// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "engine/model/container.h"
#include "engine/model/layout.h"
#include "kernels/kernels.h"
#include "kernels/packed.h"

namespace colibri {

namespace {

constexpr int64_t kRecordingBytes = 16 << 20;  // event rings, series and histograms
constexpr int64_t kLogitRows = 64;             // most rows of a batch that need logits
constexpr int64_t kHugePage = 2 << 20;

// Prefers a plain type, whose input takes more memory than that of quantised types.
template <typename Items, typename TypeOf>
DType widestInput(const Items& items, TypeOf typeOf) {
    for (const auto& item : items) {
        if (!usesQuantisedInput(typeOf(item))) return DType::F32;
    }
    return DType::Q8_0;
}

// Activations of one chunk of R rows, in f32 unless "as input": the form inputRowBytes gives for
// the weight type. H hidden, Q = heads x d, KV = kv heads x d, D dense FFN, E experts, k chosen,
// I expert size.
//   attention   residual, norm, norm of the FFN          3 R H
//               inputs of the products                   R max(H, Q, D) + R max(H, D), as input
//               q, k, v, mixed heads, rotation           R (2 Q + 2 KV + rotary)
//               output, or the dense FFN's inner row     R max(H, D)
//   experts     router input, logits, scores             R (H + 2 E)
//               rows grouped by expert                   R (k + 1) H, as input
//               inner rows, and these as input           R k I twice
//               outputs                                  R k H
//   prefetch    next router's norm, input, logits        R (2 H + E)
//   logits      of at most 64 rows                       64 x vocabulary
//   scores      one head group per thread                threads x heads / kv heads x context
int64_t bufferBytes(const ContainerInfo& info, const LoadShape& shape) {
    const ModelConfig& c = info.config;
    const int64_t rows = std::clamp<int64_t>(shape.prefillChunk, 1, 1 << 16);
    const int64_t hidden = c.hiddenSize, k = c.topK;
    // Latent attention: latent queries, and the projections before and after.
    const int64_t qWidth = c.numHeads * (c.mla.kvRank ? 2 * c.cachedKeyDim() : c.headDim);
    const int64_t kvWidth = c.cachedHeads() * c.cachedKeyDim();
    const int64_t inner = std::max({hidden, c.denseSize, c.sharedSize});
    int64_t floats = 3 * hidden + 2 * qWidth + 2 * kvWidth + c.rope.rotaryDim + inner;
    floats += hidden + 2 * c.numExperts + k * (c.expertSize + hidden);
    floats += 2 * hidden + c.numExperts;
    int64_t perRow = floats * int64_t(sizeof(float));
    const DType dense = widestInput(
        info.tensors, [](const TensorInfo& t) { return t.packed ? t.dtype : DType::Q8_0; });
    const DType in =
        widestInput(info.expertLayers, [](const ExpertLayer& e) { return e.types.w1; });
    const DType down =
        widestInput(info.expertLayers, [](const ExpertLayer& e) { return e.types.w2; });
    perRow += inputRowBytes(dense, std::max(inner, qWidth)) + inputRowBytes(dense, inner);
    perRow += (k + 1) * inputRowBytes(in, hidden) + k * inputRowBytes(down, c.expertSize);
    int64_t bytes = rows * perRow + kLogitRows * c.vocabSize * int64_t(sizeof(float));
    const int64_t seen = c.slidingWindow > 0 && c.windowLayer.empty()
                             ? std::min(c.slidingWindow, shape.contextLength)
                             : shape.contextLength;
    bytes += std::max<int64_t>(shape.threads, 1) * (c.numHeads / c.cachedHeads()) *
             std::max<int64_t>(seen, 1) * int64_t(sizeof(float));
    return bytes;
}

}  // namespace

MemoryEstimate estimateMemory(const ContainerInfo& info, const LoadShape& shape) {
    const ModelConfig& c = info.config;
    MemoryEstimate m;
    // Routers also exist in packed form, for the matrix product.
    m.dense = alignUp(info.denseBytes, kHugePage) +
              c.moeLayerCount() * packedBytes(DType::F32, c.numExperts, c.hiddenSize);
    int64_t perLayer = std::clamp<int64_t>(shape.cacheSize, 0, c.numExperts);
    m.expertCache = perLayer * c.moeLayerCount() * info.expertRecordBytes();
    int64_t pages = (std::max<int64_t>(shape.contextLength, 0) + kPageTokens - 1) / kPageTokens;
    m.kvCache = c.numLayers * (c.mla.kvRank ? 1 : 2) * c.cachedHeads() * pages *
                kvRowsBytes(shape.kvType, c.cachedKeyDim());
    m.buffers = bufferBytes(info, shape);
    m.recording = kRecordingBytes;
    return m;
}

}  // namespace colibri
