// SPDX-License-Identifier: Apache-2.0
// Private: encoders of a block for any vector class V, with one row of the panel in each lane. Each
// lane performs the operations of scalar/encode.cpp in the same order, so the bits are equal.
#pragma once

#include <cstdint>

#include "kernels/block_values.h"
#include "kernels/scalar/scalar.h"

namespace colibri {
namespace {

template <typename V>
struct Encoder {
    using F = typename V::F;
    using I = typename V::I;
    static constexpr int kWidth = V::kWidth;

    static F at(const WeightTile& x, int k, int lane) { return V::load(&x[k][lane]); }
    static I bitsOf(F v) { return reinterpret_cast<I>(v); }
    static F magnitude(F v) { return reinterpret_cast<F>(bitsOf(v) & 0x7fffffff); }
    static F only(I mask, F v) { return reinterpret_cast<F>(mask & bitsOf(v)); }
    static F choose(I mask, F yes, F no) {
        return reinterpret_cast<F>((mask & bitsOf(yes)) | (~mask & bitsOf(no)));
    }
    static I within(I v, int low, int high) {
        v = v < low ? I{} + low : v;
        return v > high ? I{} + high : v;
    }
    static I isFinite(F v) { return (bitsOf(v) & 0x7fffffff) < kInfinity; }
    static constexpr int32_t kInfinity = 0x7f800000;
    static F fromF16(const uint16_t (&halves)[kWidth]) { return V::loadF16(halves); }

    // Rounds half away from zero; 0 for NaN and for numbers of large magnitude.
    static I nearest(F v, int limit) {
        v = only(magnitude(v) < 1e9f, v);
        const I whole = __builtin_convertvector(v, I);
        const F rest = v - __builtin_convertvector(whole, F);
        return within(whole - I(rest >= 0.5f) + I(rest <= -0.5f), -limit, limit);
    }

    // Stores parts[j] as byte j of each lane, the order of codes in a block.
    static void storeBytes(const I (&parts)[4], uint8_t* out) {
        const I word = parts[0] | parts[1] << 8 | parts[2] << 16 | parts[3] << 24;
        __builtin_memcpy(out, &word, sizeof word);
    }

    static void encodeLanes(const WeightTile& x, int lane, PackedQ8& out) {
        F largest = V::zero();
        for (int k = 0; k < kBlock; ++k) {
            const F m = magnitude(at(x, k, lane));
            largest = choose(m > largest, m, largest);
        }
        const F scale = largest / 127.0f;
        const F inverse = only(scale != 0.0f, 1.0f / scale);
        V::storeF16(out.scale + lane, scale);
        for (int g = 0; g < kBlock / 4; ++g) {
            I q[4];
            for (int j = 0; j < 4; ++j) {
                q[j] = nearest(at(x, 4 * g + j, lane) * inverse, 127) & 255;
            }
            storeBytes(q, reinterpret_cast<uint8_t*>(out.q[g][lane]));
        }
    }

    static F stepQ4(F v) {
        const F q = v + scalar::kRoundingQ4 - scalar::kRoundingQ4;
        return V::min(V::max(q, V::set1(-8.0f)), V::set1(7.0f));
    }

    struct Q4Fit {
        F explained, scale;
    };
    static Q4Fit fitQ4(const F (&x)[kBlock], F inverse) {
        F p = V::zero(), s = V::zero();
        for (int first = 0; first < 8; ++first) {
            F products = V::zero(), squares = V::zero();
            for (int k = first; k < kBlock; k += 8) {
                const F q = stepQ4(x[k] * inverse);
                const F weighted = magnitude(x[k]) * q;
                products += weighted * x[k];
                squares += weighted * q;
            }
            p += products;
            s += squares;
        }
        const I some = s > 0.0f;
        return {only(some, p * p / s), only(some, p / s)};
    }

    static F errorQ4(const F (&x)[kBlock], F scale, F inverse) {
        F error = V::zero();
        for (int first = 0; first < 8; ++first) {
            F errors = V::zero();
            for (int k = first; k < kBlock; k += 8) {
                const F d = x[k] - scale * stepQ4(x[k] * inverse);
                errors += magnitude(x[k]) * d * d;
            }
            error += errors;
        }
        return error;
    }

    static F inverseOf(F scale) { return only((scale != 0.0f) & isFinite(scale), 1.0f / scale); }

    static void encodeLanes(const WeightTile& tile, int lane, PackedQ4& out) {
        F x[kBlock];
        F largest = V::zero();
        for (int k = 0; k < kBlock; ++k) {
            x[k] = at(tile, k, lane);
            x[k] = only(isFinite(x[k]), x[k]);
            largest = choose(magnitude(x[k]) > magnitude(largest), x[k], largest);
        }
        const F plain = largest / -8.0f;
        const I normal = isFinite(plain) & (magnitude(plain) >= 0x1p-126f);
        Q4Fit best = {V::zero(), V::zero()};
        for (int step = -4; step <= 4; ++step) {
            const Q4Fit fit = fitQ4(x, scalar::trialQ4(step) / plain);
            const I better = normal & (fit.explained > best.explained);
            best = {choose(better, fit.explained, best.explained),
                    choose(better, fit.scale, best.scale)};
        }
        uint16_t halves[kWidth], fittedHalves[kWidth];
        V::storeF16(halves, plain);
        V::storeF16(fittedHalves, best.scale);
        const F scale = fromF16(halves), fitted = fromF16(fittedHalves);
        const F inverse = inverseOf(scale), otherInverse = inverseOf(fitted);
        const I closer = (best.explained > 0.0f) &
                         (errorQ4(x, fitted, otherInverse) < errorQ4(x, scale, inverse));
        for (int i = 0; i < kWidth; ++i) {
            out.scale[lane + i] = closer[i] ? fittedHalves[i] : halves[i];
        }
        const F chosen = choose(closer, otherInverse, inverse);
        const auto code = [&](int k) {
            return __builtin_convertvector(stepQ4(x[k] * chosen), I) + 8;
        };
        for (int g = 0; g < kBlock / 8; ++g) {
            I bytes[4];
            for (int j = 0; j < 4; ++j) {
                bytes[j] = code(4 * g + j) | code(kBlock / 2 + 4 * g + j) << 4;
            }
            storeBytes(bytes, out.codes[0].low[g][lane]);
        }
    }

    static void encodeLanes(const WeightTile& x, int lane, PackedMx4& out) {
        I largest = {};
        for (int k = 0; k < kBlock; ++k) {
            const F v = at(x, k, lane);
            const I m = bitsOf(v) & 0x7fffffff & isFinite(v);
            largest = m > largest ? m : largest;
        }
        const I exponent = within((largest >> 23) - 2, 0, 255);
        for (int i = 0; i < kWidth; ++i) out.scale[lane + i] = uint8_t(exponent[i]);
        const F scale = V::loadE8m0(out.scale + lane);
        const auto code = [&](int k) {
            const F v = at(x, k, lane);
            F nearest = magnitude(v);
            I found = {};
            for (int c = 1; c < 16; ++c) {
                const F error = magnitude(scale * float(kMxValues[c]) - v);
                const I closer = error < nearest;
                nearest = choose(closer, error, nearest);
                found = (closer & c) | (~closer & found);
            }
            return found;
        };
        for (int g = 0; g < kBlock / 8; ++g) {
            I bytes[4];
            for (int j = 0; j < 4; ++j) {
                bytes[j] = code(4 * g + j) | code(kBlock / 2 + 4 * g + j) << 4;
            }
            storeBytes(bytes, out.codes[0].low[g][lane]);
        }
    }

    template <typename Block>
    static void encodeLanes(const WeightTile&, int, Block&) {}  // REQUIRES: hasEncoder

    static void encode(DType type, const WeightTile& tile, std::byte* out) {
        switch (type) {
            case DType::F32:
                __builtin_memcpy(out, tile, sizeof tile);
                return;
            case DType::F16:
                for (int i = 0; i < kBlock * kPanel; i += kWidth) {
                    V::storeF16(reinterpret_cast<uint16_t*>(out) + i, V::load(&tile[0][0] + i));
                }
                return;
            case DType::BF16:
                for (int i = 0; i < kBlock * kPanel; ++i) {
                    reinterpret_cast<uint16_t*>(out)[i] = f32ToBf16((&tile[0][0])[i]);
                }
                return;
            default:
                withBlock(type, [&](auto* block) {
                    block = reinterpret_cast<decltype(block)>(out);
                    for (int lane = 0; lane < kPanel; lane += kWidth) {
                        encodeLanes(tile, lane, *block);
                    }
                });
        }
    }
};

}  // namespace
}  // namespace colibri
