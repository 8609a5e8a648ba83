// SPDX-License-Identifier: Apache-2.0
#include "kernels/packed.h"

#include <cmath>
#include <cstring>

#include "kernels/kernels.h"
#include "kernels/layout.h"

namespace colibri {
namespace {

// A row block on its way into the packed form: ggml's scale and values, values signed.
struct RowBlock {
    uint16_t scale = 0;
    int8_t q[kBlock] = {};  // q8_0: -128..127; q4_0: -8..7
};

// A value that is no longer finite (a NaN weight, or the reciprocal of a vanishing scale) becomes
// 0: casting it would be undefined.
int toInt(float v, int low, int high) {
    if (!(std::fabs(v) < 1e9f)) return 0;
    const int i = int(v);
    return i < low ? low : i > high ? high : i;
}

// ggml's q8_0: scale max|x| / 127, values rounded half away from zero.
RowBlock quantiseQ8(const float* x, int64_t n) {
    float largest = 0.0f;
    for (int64_t i = 0; i < n; ++i) {
        if (std::fabs(x[i]) > largest) largest = std::fabs(x[i]);
    }
    const float scale = largest / 127.0f;
    const float inverse = scale != 0.0f ? 1.0f / scale : 0.0f;
    RowBlock out;
    out.scale = f32ToF16(scale);
    for (int64_t i = 0; i < n; ++i) out.q[i] = int8_t(toInt(std::round(x[i] * inverse), -127, 127));
    return out;
}

// ggml's q4_0: the value of largest magnitude becomes exactly -8; offset 8.5, then truncation. The
// sum is rounded once, as a fused multiply-add would; this is what the reference encoder does.
RowBlock quantiseQ4(const float* x, int64_t n) {
    float largest = 0.0f;
    for (int64_t i = 0; i < n; ++i) {
        if (std::fabs(x[i]) > std::fabs(largest)) largest = x[i];
    }
    const float scale = largest / -8.0f;
    const float inverse = scale != 0.0f ? 1.0f / scale : 0.0f;
    RowBlock out;
    out.scale = f32ToF16(scale);
    for (int64_t i = 0; i < n; ++i) {
        const float shifted = float(double(x[i]) * double(inverse) + 8.5);
        if (!std::isfinite(shifted)) continue;
        out.q[i] = int8_t(toInt(shifted, 0, 15) - 8);
    }
    return out;
}

RowBlock fromGgml(DType type, const std::byte* src) {
    RowBlock out;
    std::memcpy(&out.scale, src, sizeof out.scale);
    const std::byte* values = src + sizeof out.scale;
    if (type == DType::Q8_0) {
        std::memcpy(out.q, values, kBlock);
        return out;
    }
    for (int j = 0; j < kBlock / 2; ++j) {
        const int byte = std::to_integer<int>(values[j]);
        out.q[j] = int8_t((byte & 15) - 8);
        out.q[j + kBlock / 2] = int8_t((byte >> 4) - 8);
    }
    return out;
}

void storeBlock(DType type, const RowBlock& block, int64_t lane, std::byte* out) {
    if (type == DType::Q8_0) {
        auto* dst = reinterpret_cast<PackedQ8*>(out);
        dst->scale[lane] = block.scale;
        for (int k = 0; k < kBlock; ++k) dst->q[k / 4][lane][k % 4] = block.q[k];
        return;
    }
    auto* dst = reinterpret_cast<PackedQ4*>(out);
    dst->scale[lane] = block.scale;
    for (int k = 0; k < kBlock / 2; ++k) {
        const int low = block.q[k] + 8;
        const int high = block.q[k + kBlock / 2] + 8;
        dst->q[k / 4][lane][k % 4] = uint8_t(low | (high << 4));
    }
}

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
        case DType::Q8_0:
            return padded / kBlock * int64_t(sizeof(PackedQ8));
        case DType::Q4_0:
            return padded / kBlock * int64_t(sizeof(PackedQ4));
    }
    return 0;
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
        if (!usesQuantisedInput(type)) {
            packPlainRow(type, from, from ? cols : 0, paddedCols(cols), lane, panel);
            continue;
        }
        const int64_t blocks = paddedCols(cols) / kBlock;
        for (int64_t b = 0; b < blocks; ++b) {
            const int64_t left = cols - b * kBlock;
            const int64_t n = left < kBlock ? left : kBlock;
            RowBlock block;
            if (from) {
                const float* x = from + b * kBlock;
                block = type == DType::Q8_0 ? quantiseQ8(x, n) : quantiseQ4(x, n);
            }
            storeBlock(type, block, lane, panel + b * (stride / blocks));
        }
    }
}

void packGgmlRows(DType type, const std::byte* src, int64_t rows, int64_t cols, std::byte* out) {
    const int64_t blocks = cols / kBlock;
    const int64_t sourceBlock = type == DType::Q8_0 ? 34 : 18;
    const int64_t packedBlock = type == DType::Q8_0 ? sizeof(PackedQ8) : sizeof(PackedQ4);
    for (int64_t row = 0; row < panelCount(rows) * kPanel; ++row) {
        std::byte* panel = out + row / kPanel * panelBytes(type, cols);
        for (int64_t b = 0; b < blocks; ++b) {
            const RowBlock block =
                row < rows ? fromGgml(type, src + (row * blocks + b) * sourceBlock) : RowBlock{};
            storeBlock(type, block, row % kPanel, panel + b * packedBlock);
        }
    }
}

void unpackRow(DType type, const std::byte* packed, int64_t cols, int64_t row, float* out) {
    const std::byte* panel = packed + row / kPanel * panelBytes(type, cols);
    const int64_t lane = row % kPanel;
    for (int64_t k = 0; k < cols; ++k) {
        const int64_t at = k * kPanel + lane;
        const int64_t b = k / kBlock;
        const int64_t c = k % kBlock;
        switch (type) {
            case DType::F32:
                out[k] = reinterpret_cast<const float*>(panel)[at];
                break;
            case DType::F16:
                out[k] = f16ToF32(reinterpret_cast<const uint16_t*>(panel)[at]);
                break;
            case DType::BF16:
                out[k] = bf16ToF32(reinterpret_cast<const uint16_t*>(panel)[at]);
                break;
            case DType::Q8_0: {
                const PackedQ8& block = reinterpret_cast<const PackedQ8*>(panel)[b];
                out[k] = float(block.q[c / 4][lane][c % 4]) * f16ToF32(block.scale[lane]);
                break;
            }
            case DType::Q4_0: {
                const PackedQ4& block = reinterpret_cast<const PackedQ4*>(panel)[b];
                const int byte = block.q[c % 16 / 4][lane][c % 4];
                const int value = (c < 16 ? byte & 15 : byte >> 4) - 8;
                out[k] = float(value) * f16ToF32(block.scale[lane]);
                break;
            }
        }
    }
}

}  // namespace colibri
