// SPDX-License-Identifier: Apache-2.0
// Reference products over the packed layout: plain loops that define the results of the vector
// kernels.
#include "kernels/scalar/scalar.h"

#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <type_traits>

#include "kernels/block_values.h"

namespace colibri::scalar {
namespace {

Q8Block quantiseBlock(const float* x, int64_t n) {
    // The bits of NaN and infinity compare greater than those of all numbers.
    uint32_t largestBits = 0;
    for (int64_t i = 0; i < n; ++i) {
        const uint32_t bits = std::bit_cast<uint32_t>(x[i]) & 0x7fffffffu;
        if (bits > largestBits) largestBits = bits;
    }
    Q8Block out = {};
    if (largestBits >= 0x7f800000u) {
        out.scale = std::numeric_limits<float>::quiet_NaN();  // makes every product NaN
        return out;
    }
    const float largest = std::bit_cast<float>(largestBits);
    if (largest < kVanishing) return out;
    out.scale = largest / 127.0f;
    const float inverse = 127.0f / largest;
    for (int64_t i = 0; i < n; ++i) {
        out.q[i] = int8_t(std::nearbyint(x[i] * inverse));
        out.sums[i / (kBlock / 2)] += out.q[i];
    }
    return out;
}

// Adds the products of one panel and one activation row, in the given element type.
template <typename T, typename Convert>
void plainPanel(const T* w, int64_t cols, const float* x, Convert toFloat, float* acc) {
    for (int64_t k = 0; k < cols; ++k) {
        for (int64_t lane = 0; lane < kPanel; ++lane) {
            acc[lane] += toFloat(w[k * kPanel + lane]) * x[k];
        }
    }
}

// Integer dot products are exact within a part of a block that shares a scale. Each is followed by
// one multiply-add, and one more for the minimum.
template <typename Block>
void quantPanel(const Block* w, int64_t blocks, const Q8Block* x, float* acc) {
    constexpr int kPart = kBlock / Block::kSplit;
    for (int64_t b = 0; b < blocks; ++b, ++x) {
        const Block& block = w[b / Block::kSubs];
        const int sub = int(b % Block::kSubs);
        for (int part = 0; part < Block::kSplit; ++part) {
            int32_t dot[kPanel] = {};
            for (int k = part * kPart; k < (part + 1) * kPart; ++k) {
                for (int64_t lane = 0; lane < kPanel; ++lane) {
                    dot[lane] += valueAt(block, sub, k, lane) * x->q[k];
                }
            }
            for (int64_t lane = 0; lane < kPanel; ++lane) {
                const float scale = scaleAt(block, sub, part, lane) * x->scale;
                acc[lane] = std::fma(float(dot[lane]), scale, acc[lane]);
            }
        }
        if constexpr (Block::kMin) {
            const float sum = float(x->sum()) * x->scale;
            for (int64_t lane = 0; lane < kPanel; ++lane) {
                acc[lane] = std::fma(minAt(block, sub, lane), sum, acc[lane]);
            }
        }
    }
}

// acc[16] = the panel's outputs for one prepared activation row.
void panelProduct(DType type, const std::byte* panel, int64_t cols, const std::byte* x,
                  float* acc) {
    std::memset(acc, 0, kPanel * sizeof(float));
    const int64_t padded = paddedCols(cols);
    const auto* floats = reinterpret_cast<const float*>(x);
    const auto* halves = reinterpret_cast<const uint16_t*>(panel);
    const auto* blocks = reinterpret_cast<const Q8Block*>(x);
    switch (type) {
        case DType::F32:
            plainPanel(
                reinterpret_cast<const float*>(panel), padded, floats, [](float v) { return v; },
                acc);
            break;
        case DType::F16:
            plainPanel(halves, padded, floats, f16ToF32, acc);
            break;
        case DType::BF16:
            plainPanel(halves, padded, floats, bf16ToF32, acc);
            break;
        default:
            withBlock(type, [&](auto* block) {
                using Block = std::remove_pointer_t<decltype(block)>;
                quantPanel(reinterpret_cast<const Block*>(panel), padded / kBlock, blocks, acc);
            });
    }
}

int64_t lanesOf(int64_t panel, int64_t outRows) {
    const int64_t left = outRows - panel * kPanel;
    return left < kPanel ? left : kPanel;
}

}  // namespace

void prepareInput(DType weights, const float* x, int64_t ldx, int64_t rows, int64_t cols,
                  std::byte* out) {
    const int64_t rowBytes = inputRowBytes(weights, cols);
    for (int64_t r = 0; r < rows; ++r) {
        const float* from = x + r * ldx;
        std::byte* to = out + r * rowBytes;
        if (!usesQuantisedInput(weights)) {
            std::memcpy(to, from, size_t(cols) * sizeof(float));
            std::memset(to + cols * int64_t(sizeof(float)), 0,
                        size_t(paddedCols(cols) - cols) * sizeof(float));
            continue;
        }
        for (int64_t k = 0; k < cols; k += kBlock) {
            const Q8Block block = quantiseBlock(from + k, cols - k < kBlock ? cols - k : kBlock);
            std::memcpy(to + k / kBlock * int64_t(sizeof block), &block, sizeof block);
        }
    }
}

void matmul(DType type, const std::byte* packed, int64_t outRows, int64_t cols, int64_t first,
            int64_t last, const std::byte* x, int64_t rows, float* y, int64_t ldy) {
    const int64_t stride = panelBytes(type, cols);
    const int64_t rowBytes = inputRowBytes(type, cols);
    for (int64_t p = first; p < last; ++p) {
        for (int64_t r = 0; r < rows; ++r) {
            float acc[kPanel];
            panelProduct(type, packed + p * stride, cols, x + r * rowBytes, acc);
            std::memcpy(y + r * ldy + p * kPanel, acc, size_t(lanesOf(p, outRows)) * sizeof(float));
        }
    }
}

void gateUp(DType type1, const std::byte* w1, DType type3, const std::byte* w3, int64_t outRows,
            int64_t cols, int64_t first, int64_t last, const std::byte* x, int64_t rows, float* h,
            int64_t ldh) {
    const int64_t stride1 = panelBytes(type1, cols), stride3 = panelBytes(type3, cols);
    const int64_t rowBytes = inputRowBytes(type1, cols);
    for (int64_t p = first; p < last; ++p) {
        for (int64_t r = 0; r < rows; ++r) {
            float gate[kPanel];
            float up[kPanel];
            panelProduct(type1, w1 + p * stride1, cols, x + r * rowBytes, gate);
            panelProduct(type3, w3 + p * stride3, cols, x + r * rowBytes, up);
            float* out = h + r * ldh + p * kPanel;
            for (int64_t lane = 0; lane < lanesOf(p, outRows); ++lane) {
                out[lane] = gate[lane] / (1.0f + std::exp(-gate[lane])) * up[lane];
            }
        }
    }
}

}  // namespace colibri::scalar
