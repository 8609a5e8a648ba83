// SPDX-License-Identifier: Apache-2.0
// Reference products over the packed layout: plain loops, the twin of every vector kernel.
#include "kernels/scalar/scalar.h"

#include <bit>
#include <cmath>
#include <cstring>
#include <limits>

#include "kernels/layout.h"

namespace colibri::scalar {
namespace {

Q8Block quantiseBlock(const float* x, int64_t n) {
    // Compared as integers, NaN and infinity are the largest magnitudes of all.
    uint32_t largestBits = 0;
    for (int64_t i = 0; i < n; ++i) {
        const uint32_t bits = std::bit_cast<uint32_t>(x[i]) & 0x7fffffffu;
        if (bits > largestBits) largestBits = bits;
    }
    Q8Block out = {};
    if (largestBits >= 0x7f800000u) {
        out.scale = std::numeric_limits<float>::quiet_NaN();  // reaches every product
        return out;
    }
    const float largest = std::bit_cast<float>(largestBits);
    if (largest < kVanishing) return out;
    out.scale = largest / 127.0f;
    const float inverse = 127.0f / largest;
    for (int64_t i = 0; i < n; ++i) {
        out.q[i] = int8_t(std::nearbyint(x[i] * inverse));
        out.sum += out.q[i];
    }
    return out;
}

// 16 lanes of one output panel for one activation row, in the given element type.
template <typename T, typename Convert>
void plainPanel(const T* w, int64_t cols, const float* x, Convert toFloat, float* acc) {
    for (int64_t k = 0; k < cols; ++k) {
        for (int64_t lane = 0; lane < kPanel; ++lane) {
            acc[lane] += toFloat(w[k * kPanel + lane]) * x[k];
        }
    }
}

void addBlock(const uint16_t* scale, const int32_t* dot, float xScale, float* acc) {
    for (int64_t lane = 0; lane < kPanel; ++lane) {
        acc[lane] = std::fma(float(dot[lane]), f16ToF32(scale[lane]) * xScale, acc[lane]);
    }
}

void q8Panel(const PackedQ8* w, int64_t blocks, const Q8Block* x, float* acc) {
    for (int64_t b = 0; b < blocks; ++b) {
        int32_t dot[kPanel] = {};
        for (int k = 0; k < kBlock; ++k) {
            for (int64_t lane = 0; lane < kPanel; ++lane) {
                dot[lane] += int32_t(w[b].q[k / 4][lane][k % 4]) * x[b].q[k];
            }
        }
        addBlock(w[b].scale, dot, x[b].scale, acc);
    }
}

void q4Panel(const PackedQ4* w, int64_t blocks, const Q8Block* x, float* acc) {
    for (int64_t b = 0; b < blocks; ++b) {
        int32_t dot[kPanel] = {};
        for (int k = 0; k < kBlock / 2; ++k) {
            for (int64_t lane = 0; lane < kPanel; ++lane) {
                const int byte = w[b].q[k / 4][lane][k % 4];
                dot[lane] += ((byte & 15) - 8) * x[b].q[k];
                dot[lane] += ((byte >> 4) - 8) * x[b].q[k + kBlock / 2];
            }
        }
        addBlock(w[b].scale, dot, x[b].scale, acc);
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
        case DType::Q8_0:
            q8Panel(reinterpret_cast<const PackedQ8*>(panel), padded / kBlock, blocks, acc);
            break;
        case DType::Q4_0:
            q4Panel(reinterpret_cast<const PackedQ4*>(panel), padded / kBlock, blocks, acc);
            break;
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

void gateUp(DType type, const std::byte* w1, const std::byte* w3, int64_t outRows, int64_t cols,
            int64_t first, int64_t last, const std::byte* x, int64_t rows, float* h, int64_t ldh) {
    const int64_t stride = panelBytes(type, cols);
    const int64_t rowBytes = inputRowBytes(type, cols);
    for (int64_t p = first; p < last; ++p) {
        for (int64_t r = 0; r < rows; ++r) {
            float gate[kPanel];
            float up[kPanel];
            panelProduct(type, w1 + p * stride, cols, x + r * rowBytes, gate);
            panelProduct(type, w3 + p * stride, cols, x + r * rowBytes, up);
            float* out = h + r * ldh + p * kPanel;
            for (int64_t lane = 0; lane < lanesOf(p, outRows); ++lane) {
                out[lane] = gate[lane] / (1.0f + std::exp(-gate[lane])) * up[lane];
            }
        }
    }
}

}  // namespace colibri::scalar
