// SPDX-License-Identifier: Apache-2.0
#include "kernels/packed.h"

#include <cmath>
#include <type_traits>

#include "kernels/block_values.h"
#include "kernels/kernels.h"

namespace colibri {
namespace {

// A value that is no longer finite (a NaN weight, or the reciprocal of a vanishing scale) becomes
// 0: casting it would be undefined.
int toInt(float v, int low, int high) {
    if (!(std::fabs(v) < 1e9f)) return 0;
    const int i = int(v);
    return i < low ? low : i > high ? high : i;
}

// ggml's q8_0: scale max|x| / 127, values rounded half away from zero.
void encode(const float* x, int64_t n, int64_t lane, PackedQ8& out) {
    float largest = 0.0f;
    for (int64_t i = 0; i < n; ++i) {
        if (std::fabs(x[i]) > largest) largest = std::fabs(x[i]);
    }
    const float scale = largest / 127.0f;
    const float inverse = scale != 0.0f ? 1.0f / scale : 0.0f;
    out.scale[lane] = f32ToF16(scale);
    for (int k = 0; k < kBlock; ++k) {
        const int q = k < n ? toInt(std::round(x[k] * inverse), -127, 127) : 0;
        out.q[k / 4][lane][k % 4] = int8_t(q);
    }
}

// ggml's q4_0: the value of largest magnitude becomes exactly -8; offset 8.5, then truncation. The
// sum is rounded once, as a fused multiply-add would; this is what the reference encoder does.
void encode(const float* x, int64_t n, int64_t lane, PackedQ4& out) {
    float largest = 0.0f;
    for (int64_t i = 0; i < n; ++i) {
        if (std::fabs(x[i]) > std::fabs(largest)) largest = x[i];
    }
    const float scale = largest / -8.0f;
    const float inverse = scale != 0.0f ? 1.0f / scale : 0.0f;
    out.scale[lane] = f32ToF16(scale);
    uint8_t codes[kBlock];
    for (int k = 0; k < kBlock; ++k) {
        codes[k] = 8;
        if (k >= n) continue;
        const float shifted = float(double(x[k]) * double(inverse) + 8.5);
        if (std::isfinite(shifted)) codes[k] = uint8_t(toInt(shifted, 0, 15));
    }
    storeCodes(codes, lane, out.codes[0]);
}

// OCP's mxfp4: the power of two that brings the largest magnitude to 4..8, of whose values 6 is
// the largest; each number goes to the nearest value, the one of smaller magnitude when two are.
void encode(const float* x, int64_t n, int64_t lane, PackedMx4& out) {
    float largest = 0.0f;
    for (int64_t i = 0; i < n; ++i) {
        if (std::isfinite(x[i]) && std::fabs(x[i]) > largest) largest = std::fabs(x[i]);
    }
    const int exponent = largest > 0.0f ? std::ilogb(largest) - 2 + 127 : 0;
    out.scale[lane] = uint8_t(exponent < 0 ? 0 : exponent);
    const float scale = mxScale(out.scale[lane]);
    uint8_t codes[kBlock] = {};
    for (int k = 0; k < n; ++k) {
        float nearest = std::fabs(x[k]);
        for (int code = 1; code < 16; ++code) {
            const float error = std::fabs(scale * float(kMxValues[code]) - x[k]);
            if (error >= nearest) continue;
            nearest = error;
            codes[k] = uint8_t(code);
        }
    }
    storeCodes(codes, lane, out.codes[0]);
}

template <typename Block>
void encode(const float*, int64_t, int64_t, Block&) {}  // REQUIRES: hasEncoder

// src may be null when cols is 0: a padding row.
void packPlainRow(DType type, const float* src, int64_t cols, int64_t padded, int64_t lane,
                  std::byte* panel) {
    for (int64_t k = 0; k < padded; ++k) {
        const float v = k < cols ? src[k] : 0.0f;
        const int64_t at = k * kPanel + lane;
        if (type == DType::F32) {
            reinterpret_cast<float*>(panel)[at] = v;
        } else {
            reinterpret_cast<uint16_t*>(panel)[at] =
                type == DType::F16 ? f32ToF16(v) : f32ToBf16(v);
        }
    }
}

}  // namespace

int64_t panelBytes(DType type, int64_t cols) {
    const int64_t padded = paddedCols(cols);
    switch (type) {
        case DType::F32:
            return padded * kPanel * int64_t(sizeof(float));
        case DType::F16:
        case DType::BF16:
            return padded * kPanel * int64_t(sizeof(uint16_t));
        default: {
            int64_t bytes = 0;
            withBlock(type, [&](auto* block) {
                using Block = std::remove_pointer_t<decltype(block)>;
                bytes = padded / (Block::kSubs * kBlock) * int64_t(sizeof(Block));
            });
            return bytes;
        }
    }
}

int64_t packedBytes(DType type, int64_t rows, int64_t cols) {
    return panelCount(rows) * panelBytes(type, cols);
}

void packRows(DType type, const float* src, int64_t rows, int64_t cols, std::byte* out) {
    const int64_t stride = panelBytes(type, cols);
    for (int64_t row = 0; row < panelCount(rows) * kPanel; ++row) {
        std::byte* panel = out + row / kPanel * stride;
        const int64_t lane = row % kPanel;
        const float* from = row < rows ? src + row * cols : nullptr;
        if (!isQuantised(type)) {
            packPlainRow(type, from, from ? cols : 0, paddedCols(cols), lane, panel);
            continue;
        }
        withBlock(type, [&](auto* block) {
            block = reinterpret_cast<decltype(block)>(panel);
            for (int64_t k = 0; k < paddedCols(cols); k += kBlock, ++block) {
                const int64_t left = cols - k;
                if (from) {
                    encode(from + k, left < kBlock ? left : kBlock, lane, *block);
                } else {
                    clearLane(lane, *block);
                }
            }
        });
    }
}

void unpackRow(DType type, const std::byte* packed, int64_t cols, int64_t row, float* out) {
    const std::byte* panel = packed + row / kPanel * panelBytes(type, cols);
    const int64_t lane = row % kPanel;
    const auto* halves = reinterpret_cast<const uint16_t*>(panel) + lane;
    switch (type) {
        case DType::F32:
            for (int64_t k = 0; k < cols; ++k) {
                out[k] = reinterpret_cast<const float*>(panel)[k * kPanel + lane];
            }
            return;
        case DType::F16:
            for (int64_t k = 0; k < cols; ++k) out[k] = f16ToF32(halves[k * kPanel]);
            return;
        case DType::BF16:
            for (int64_t k = 0; k < cols; ++k) out[k] = bf16ToF32(halves[k * kPanel]);
            return;
        default:
            withBlock(type, [&](auto* block) {
                using Block = std::remove_pointer_t<decltype(block)>;
                constexpr int64_t kWide = Block::kSubs * kBlock;
                const auto* from = reinterpret_cast<const Block*>(panel);
                for (int64_t k = 0; k < cols; k += kWide, ++from) {
                    const int64_t left = cols - k;
                    readLane(*from, lane, left < kWide ? left : kWide, out + k);
                }
            });
    }
}

}  // namespace colibri
