// SPDX-License-Identifier: Apache-2.0
#include "kernels/packed.h"

#include <cmath>
#include <cstring>
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

// ggml's choice for q4_0: the value of largest magnitude becomes exactly -8.
float plainQ4Scale(const float* x) {
    float largest = 0.0f;
    for (int k = 0; k < kBlock; ++k) {
        if (std::fabs(x[k]) > std::fabs(largest)) largest = x[k];
    }
    return largest / -8.0f;
}

// Eight values at a time; sums of lanes are taken at the end, so that every processor gives the
// same bits.
using Lanes = float __attribute__((vector_size(32)));
#define COLIBRI_INLINE inline __attribute__((always_inline))

// The whole steps from -8 to 7 of a scale that lie nearest to x.
COLIBRI_INLINE void stepsQ4(const Lanes& x, float inverse, Lanes& q) {
    const Lanes round = Lanes{} + 12582912.0f;  // 1.5 * 2^23: added and taken off, it rounds
    const Lanes low = Lanes{} - 8.0f, high = Lanes{} + 7.0f;
    q = x * inverse;
    q = q < low ? low : q;
    q = q > high ? high : q;
    q = q + round - round;
}

// How much of a block's sum of squares its nearest steps explain with the scale that suits them
// best, and that scale. A value counts by its magnitude: without that perplexity gets worse, not
// better, than with ggml's scale.
struct Q4Fit {
    float explained = 0, scale = 0;
};
COLIBRI_INLINE Q4Fit fitQ4(const float* x, float inverse) {
    Lanes products = {}, squares = {};
    for (int k = 0; k < kBlock; k += 8) {
        Lanes v, q;
        std::memcpy(&v, x + k, sizeof v);
        stepsQ4(v, inverse, q);
        const Lanes weighted = (v < 0 ? -v : v) * q;
        products += weighted * v;
        squares += weighted * q;
    }
    float p = 0, s = 0;
    for (int j = 0; j < 8; ++j) {
        p += products[j];
        s += squares[j];
    }
    return s > 0 ? Q4Fit{p * p / s, p / s} : Q4Fit{};
}

// Codes of a block at a scale; returns the squared error, with the same weights.
COLIBRI_INLINE float codesQ4(const float* x, float scale, uint8_t* codes) {
    const float inverse = scale != 0.0f && scale - scale == 0.0f ? 1.0f / scale : 0.0f;
    Lanes errors = {};
    for (int k = 0; k < kBlock; k += 8) {
        Lanes v, q;
        std::memcpy(&v, x + k, sizeof v);
        stepsQ4(v, inverse, q);
        const Lanes d = v - scale * q;
        errors += (v < 0 ? -v : v) * d * d;
        for (int j = 0; j < 8; ++j) codes[k + j] = uint8_t(int(q[j]) + 8);
    }
    float error = 0;
    for (int j = 0; j < 8; ++j) error += errors[j];
    return error;
}

// The scale whose steps lie closest to the block, of some around ggml's, and its codes.
COLIBRI_INLINE uint16_t searchQ4(const float* x, uint8_t* codes) {
    const float plain = plainQ4Scale(x);
    Q4Fit best;
    for (int step = -4; step <= 4 && std::isnormal(plain); ++step) {
        const Q4Fit fit = fitQ4(x, (8.0f + 0.2f * float(step)) / 8.0f / plain);
        if (fit.explained > best.explained) best = fit;
    }
    const uint16_t scale = f32ToF16(plain), fitted = f32ToF16(best.scale);
    const float error = codesQ4(x, f16ToF32(scale), codes);
    uint8_t other[kBlock];
    if (best.explained == 0 || codesQ4(x, f16ToF32(fitted), other) >= error) return scale;
    std::memcpy(codes, other, sizeof other);
    return fitted;
}

uint16_t searchQ4Plain(const float* x, uint8_t* codes) { return searchQ4(x, codes); }
#ifdef COLIBRI_X86_KERNELS
__attribute__((target("avx2"))) uint16_t searchQ4Avx2(const float* x, uint8_t* codes) {
    return searchQ4(x, codes);
}
#endif

void encode(const float* x, int64_t n, int64_t lane, PackedQ4& out) {
    float values[kBlock] = {};
    for (int64_t i = 0; i < n; ++i) values[i] = std::isfinite(x[i]) ? x[i] : 0.0f;
    uint8_t codes[kBlock];
#ifdef COLIBRI_X86_KERNELS
    static const bool avx2 = __builtin_cpu_supports("avx2");
    out.scale[lane] = avx2 ? searchQ4Avx2(values, codes) : searchQ4Plain(values, codes);
#else
    out.scale[lane] = searchQ4Plain(values, codes);
#endif
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
