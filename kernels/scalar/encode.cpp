// SPDX-License-Identifier: Apache-2.0
// Reference encoders, which process the lanes of a block one after another.
#include <bit>
#include <cmath>
#include <cstring>

#include "kernels/block_values.h"
#include "kernels/scalar/scalar.h"

namespace colibri::scalar {
namespace {

using Values = float[kBlock];

// Returns 0 for a value that is not finite (a NaN weight, or the reciprocal of a vanishing scale),
// because casting it would be undefined.
int toInt(float v, int low, int high) {
    if (!(std::fabs(v) < 1e9f)) return 0;
    const int i = int(v);
    return i < low ? low : i > high ? high : i;
}

// ggml's q8_0: scale max|x| / 127, values rounded half away from zero.
void encodeLane(const Values& x, int64_t lane, PackedQ8& out) {
    float largest = 0.0f;
    for (float v : x) {
        if (std::fabs(v) > largest) largest = std::fabs(v);
    }
    const float scale = largest / 127.0f;
    const float inverse = scale != 0.0f ? 1.0f / scale : 0.0f;
    out.scale[lane] = f32ToF16(scale);
    for (int k = 0; k < kBlock; ++k) {
        out.q[k / 4][lane][k % 4] = int8_t(toInt(std::round(x[k] * inverse), -127, 127));
    }
}

// ggml's scale for q4_0: the value of largest magnitude becomes exactly -8.
float plainQ4Scale(const Values& x) {
    float largest = 0.0f;
    for (float v : x) {
        if (std::fabs(v) > std::fabs(largest)) largest = v;
    }
    return largest / -8.0f;
}

// The nearest integer to v in -8..7, |v| < 2^22; ties to even.
float stepQ4(float v) {
    const float q = v + kRoundingQ4 - kRoundingQ4;
    return q < -8.0f ? -8.0f : q > 7.0f ? 7.0f : q;
}

// Sums over a block have eight parts, by k mod 8, which are added at the end.
float sumOf(const float (&parts)[8]) {
    float sum = 0;
    for (float part : parts) sum += part;
    return sum;
}

// The share of a block's sum of squares that its rounded values explain with the best scale for
// them, and that scale. Values are weighted by their magnitude; without weights the perplexity is
// worse than with ggml's scale.
struct Q4Fit {
    float explained = 0, scale = 0;
};
Q4Fit fitQ4(const Values& x, float inverse) {
    float products[8] = {}, squares[8] = {};
    for (int k = 0; k < kBlock; ++k) {
        const float q = stepQ4(x[k] * inverse);
        const float weighted = std::fabs(x[k]) * q;
        products[k % 8] += weighted * x[k];
        squares[k % 8] += weighted * q;
    }
    const float p = sumOf(products), s = sumOf(squares);
    return s > 0 ? Q4Fit{p * p / s, p / s} : Q4Fit{};
}

// Rounds a block with a scale. Returns the squared error, with the same weights.
float codesQ4(const Values& x, float scale, uint8_t* codes) {
    const float inverse = scale != 0.0f && std::isfinite(scale) ? 1.0f / scale : 0.0f;
    float errors[8] = {};
    for (int k = 0; k < kBlock; ++k) {
        const float q = stepQ4(x[k] * inverse);
        const float d = x[k] - scale * q;
        errors[k % 8] += std::fabs(x[k]) * d * d;
        codes[k] = uint8_t(int(q) + 8);
    }
    return sumOf(errors);
}

// Tries several scales around ggml's and uses the one with the smallest error.
void encodeLane(const Values& all, int64_t lane, PackedQ4& out) {
    Values x;
    for (int k = 0; k < kBlock; ++k) x[k] = std::isfinite(all[k]) ? all[k] : 0.0f;
    const float plain = plainQ4Scale(x);
    Q4Fit best;
    for (int step = -4; step <= 4 && std::isnormal(plain); ++step) {
        const Q4Fit fit = fitQ4(x, trialQ4(step) / plain);
        if (fit.explained > best.explained) best = fit;
    }
    const uint16_t scale = f32ToF16(plain), fitted = f32ToF16(best.scale);
    uint8_t codes[kBlock], other[kBlock];
    const float error = codesQ4(x, f16ToF32(scale), codes);
    const bool closer = best.explained > 0 && codesQ4(x, f16ToF32(fitted), other) < error;
    out.scale[lane] = closer ? fitted : scale;
    storeCodes(closer ? other : codes, lane, out.codes[0]);
}

// OCP's mxfp4: the scale is the power of two that brings the largest magnitude into 4..8 (the
// largest value is 6). Each number becomes the nearest value; of two equally near ones, that of
// smaller magnitude.
void encodeLane(const Values& x, int64_t lane, PackedMx4& out) {
    float largest = 0.0f;
    for (float v : x) {
        if (std::isfinite(v) && std::fabs(v) > largest) largest = std::fabs(v);
    }
    const int exponent = int(std::bit_cast<uint32_t>(largest) >> 23) - 2;  // biased, like the f32's
    out.scale[lane] = uint8_t(exponent < 0 ? 0 : exponent);
    const float scale = mxScale(out.scale[lane]);
    uint8_t codes[kBlock] = {};
    for (int k = 0; k < kBlock; ++k) {
        float nearest = std::fabs(x[k]);
        for (int code = 1; code < 16; ++code) {
            const float error = std::fabs(scale * float(kMxValues[code]) - x[k]);
            if (!(error < nearest)) continue;
            nearest = error;
            codes[k] = uint8_t(code);
        }
    }
    storeCodes(codes, lane, out.codes[0]);
}

template <typename Block>
void encodeLane(const Values&, int64_t, Block&) {}  // REQUIRES: hasEncoder

}  // namespace

void encode(DType type, const WeightTile& tile, std::byte* out) {
    const float* values = &tile[0][0];
    auto* halves = reinterpret_cast<uint16_t*>(out);
    switch (type) {
        case DType::F32:
            std::memcpy(out, values, sizeof tile);
            return;
        case DType::F16:
            for (int i = 0; i < kBlock * kPanel; ++i) halves[i] = f32ToF16(values[i]);
            return;
        case DType::BF16:
            for (int i = 0; i < kBlock * kPanel; ++i) halves[i] = f32ToBf16(values[i]);
            return;
        default:
            withBlock(type, [&](auto* block) {
                block = reinterpret_cast<decltype(block)>(out);
                for (int64_t lane = 0; lane < kPanel; ++lane) {
                    Values x;
                    for (int k = 0; k < kBlock; ++k) x[k] = tile[k][lane];
                    encodeLane(x, lane, *block);
                }
            });
    }
}

}  // namespace colibri::scalar
