// SPDX-License-Identifier: Apache-2.0
// Private: the vector class of kernels/simd/ with eight f32 lanes in one AVX register. Include it
// only in files compiled for AVX2+FMA+F16C. Everything is in an anonymous namespace, so that the
// linker cannot choose code for this instruction set for another file.
// instruction set can be picked by the linker for another file.
#pragma once

#include <immintrin.h>

#include <cstdint>

namespace colibri {
namespace {

struct Vec256 {
    static constexpr int kWidth = 8;
    static constexpr int kPartialSums = 2;  // of the plain products, by k mod 2
    static constexpr int kMaxPlainRows = 5;

    using F = __m256;
    typedef int32_t I __attribute__((vector_size(32)));
    struct Doubles {
        __m256d low, high;
    };

    static F zero() { return _mm256_setzero_ps(); }
    static F set1(float v) { return _mm256_set1_ps(v); }
    static F load(const float* p) { return _mm256_loadu_ps(p); }
    static void store(float* p, F v) { _mm256_storeu_ps(p, v); }
    static __m256i mask(int64_t n) {
        const __m256i lane = _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7);
        return _mm256_cmpgt_epi32(_mm256_set1_epi32(int(n)), lane);
    }
    // Loads the first n lanes, 0 < n <= 8; the rest is zero.
    static F loadPart(const float* p, int64_t n) { return _mm256_maskload_ps(p, mask(n)); }
    static void storePart(float* p, F v, int64_t n) { _mm256_maskstore_ps(p, mask(n), v); }

    static F loadF16(const uint16_t* p) {
        return _mm256_cvtph_ps(_mm_loadu_si128(reinterpret_cast<const __m128i*>(p)));
    }
    static F loadF16Part(const uint16_t* p, int64_t n) {
        uint16_t all[kWidth] = {};
        for (int64_t i = 0; i < n; ++i) all[i] = p[i];
        return loadF16(all);
    }
    static F loadBf16(const uint16_t* p) {
        const __m128i half = _mm_loadu_si128(reinterpret_cast<const __m128i*>(p));
        return _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_cvtepu16_epi32(half), 16));
    }
    static F loadU8(const uint8_t* p) { return _mm256_cvtepi32_ps(_mm256_cvtepu8_epi32(bytes(p))); }
    static F loadI8(const int8_t* p) { return _mm256_cvtepi32_ps(_mm256_cvtepi8_epi32(bytes(p))); }
    static F loadI8Part(const int8_t* p, int64_t n) {
        int8_t all[kWidth] = {};
        for (int64_t i = 0; i < n; ++i) all[i] = p[i];
        return loadI8(all);
    }
    // 2^(p[i] - 128)
    static F loadE8m0(const uint8_t* p) {
        const __m256i bits = _mm256_slli_epi32(_mm256_cvtepu8_epi32(bytes(p)), 23);
        const __m256i atLeast = _mm256_max_epi32(bits, _mm256_set1_epi32(0x00400000));
        return mul(_mm256_castsi256_ps(atLeast), set1(0.5f));
    }
    static void storeF16(uint16_t* p, F v) {
        _mm_storeu_si128(reinterpret_cast<__m128i*>(p), _mm256_cvtps_ph(v, kNearest));
    }
    static void storeF16Part(uint16_t* p, F v, int64_t n) {
        uint16_t all[kWidth];
        storeF16(all, v);
        for (int64_t i = 0; i < n; ++i) p[i] = all[i];
    }

    static F add(F a, F b) { return _mm256_add_ps(a, b); }
    static F mul(F a, F b) { return _mm256_mul_ps(a, b); }
    static F div(F a, F b) { return _mm256_div_ps(a, b); }
    static F fma(F a, F b, F c) { return _mm256_fmadd_ps(a, b, c); }
    static F negatedFma(F a, F b, F c) { return _mm256_fnmadd_ps(a, b, c); }
    static F fmaAddSub(F a, F b, F c) { return _mm256_fmaddsub_ps(a, b, c); }
    static F negate(F a) { return _mm256_xor_ps(a, _mm256_set1_ps(-0.0f)); }
    // If b is a NaN, so is the result.
    static F max(F a, F b) { return _mm256_max_ps(a, b); }
    static F min(F a, F b) { return _mm256_min_ps(a, b); }
    static F round(F a) { return _mm256_round_ps(a, kNearest); }
    // a * 2^n for integers n in -250..250. Overflow gives infinity, underflow is gradual.
    // Multiplies twice, because f32 has no power of two for the ends of the range.
    static F scaleByPower(F a, F n) {
        const __m256i whole = _mm256_cvtps_epi32(n);
        const __m256i half = _mm256_srai_epi32(whole, 1);
        return mul(mul(a, power(half)), power(_mm256_sub_epi32(whole, half)));
    }

    static float sum(F v) {
        __m128 s = _mm_add_ps(_mm256_castps256_ps128(v), _mm256_extractf128_ps(v, 1));
        s = _mm_add_ps(s, _mm_movehl_ps(s, s));
        return _mm_cvtss_f32(_mm_add_ss(s, _mm_movehdup_ps(s)));
    }
    static float largest(F v) {
        __m128 m = _mm_max_ps(_mm256_castps256_ps128(v), _mm256_extractf128_ps(v, 1));
        m = _mm_max_ps(m, _mm_movehl_ps(m, m));
        return _mm_cvtss_f32(_mm_max_ss(m, _mm_movehdup_ps(m)));
    }

    static Doubles zeroDoubles() { return {_mm256_setzero_pd(), _mm256_setzero_pd()}; }
    static Doubles addSquares(Doubles acc, F v) {
        const __m256d low = _mm256_cvtps_pd(_mm256_castps256_ps128(v));
        const __m256d high = _mm256_cvtps_pd(_mm256_extractf128_ps(v, 1));
        return {_mm256_fmadd_pd(low, low, acc.low), _mm256_fmadd_pd(high, high, acc.high)};
    }
    static double sum(Doubles v) {
        const __m256d all = _mm256_add_pd(v.low, v.high);
        const __m128d s = _mm_add_pd(_mm256_castpd256_pd128(all), _mm256_extractf128_pd(all, 1));
        return _mm_cvtsd_f64(_mm_add_sd(s, _mm_unpackhi_pd(s, s)));
    }

    // Lane i of the result is the sum of row i of rows[8][8].
    static F rowSums(const float* rows) {
        F quads[2];
        for (int i = 0; i < 2; ++i) {
            const float* r = rows + i * 4 * kWidth;
            const F ab = _mm256_hadd_ps(load(r), load(r + kWidth));
            const F cd = _mm256_hadd_ps(load(r + 2 * kWidth), load(r + 3 * kWidth));
            quads[i] = _mm256_hadd_ps(ab, cd);
        }
        return add(_mm256_permute2f128_ps(quads[0], quads[1], 0x20),
                   _mm256_permute2f128_ps(quads[0], quads[1], 0x31));
    }

    // Separates the 16 values of low, high into even and odd lanes.
    static void deinterleave(F low, F high, F& even, F& odd) {
        even = inOrder(_mm256_shuffle_ps(low, high, 0x88));
        odd = inOrder(_mm256_shuffle_ps(low, high, 0xdd));
    }
    static F evenTwice(F v) { return _mm256_moveldup_ps(v); }
    static F oddTwice(F v) { return _mm256_movehdup_ps(v); }
    static F swapPairs(F v) { return _mm256_permute_ps(v, 0xb1); }

    // The bits of the largest magnitude of 32 floats. NaN and infinity compare greater than all
    // numbers.
    static uint32_t magnitudeBits(const float* x) {
        const __m256i drop = _mm256_set1_epi32(0x7fffffff);
        __m256i most = _mm256_setzero_si256();
        for (int i = 0; i < 4; ++i) {
            const __m256i bits = _mm256_castps_si256(load(x + i * kWidth));
            most = _mm256_max_epi32(most, _mm256_and_si256(bits, drop));
        }
        __m128i m = _mm_max_epi32(_mm256_castsi256_si128(most), _mm256_extracti128_si256(most, 1));
        m = _mm_max_epi32(m, _mm_shuffle_epi32(m, 0x4e));
        m = _mm_max_epi32(m, _mm_shuffle_epi32(m, 0xb1));
        return uint32_t(_mm_cvtsi128_si32(m));
    }
    // q[i] = round(x[i] * inverse) for 32 values; also the sums of the first and of the last 16.
    static void quantise(const float* x, float inverse, int8_t* q, int16_t* sums) {
        const F scale = set1(inverse);
        __m256i v[4];
        for (int i = 0; i < 4; ++i) v[i] = _mm256_cvtps_epi32(mul(load(x + i * kWidth), scale));
        const __m256i packed =
            _mm256_packs_epi16(_mm256_packs_epi32(v[0], v[1]), _mm256_packs_epi32(v[2], v[3]));
        // Packing works within 128-bit halves, so groups of four are put back in order.
        const __m256i order = _mm256_setr_epi32(0, 4, 1, 5, 2, 6, 3, 7);
        _mm256_storeu_si256(reinterpret_cast<__m256i*>(q),
                            _mm256_permutevar8x32_epi32(packed, order));
        sums[0] = int16_t(laneSum(_mm256_add_epi32(v[0], v[1])));
        sums[1] = int16_t(laneSum(_mm256_add_epi32(v[2], v[3])));
    }

private:
    static int32_t laneSum(__m256i v) {
        __m128i s = _mm_add_epi32(_mm256_castsi256_si128(v), _mm256_extracti128_si256(v, 1));
        s = _mm_add_epi32(s, _mm_shuffle_epi32(s, 0x4e));
        s = _mm_add_epi32(s, _mm_shuffle_epi32(s, 0xb1));
        return _mm_cvtsi128_si32(s);
    }
    static __m128i bytes(const void* p) { return _mm_loadl_epi64(static_cast<const __m128i*>(p)); }
    static constexpr int kNearest = _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC;

    static F power(__m256i n) {
        const __m256i biased = _mm256_add_epi32(n, _mm256_set1_epi32(127));
        return _mm256_castsi256_ps(_mm256_slli_epi32(biased, 23));
    }
    static F inOrder(F v) {
        return _mm256_castpd_ps(_mm256_permute4x64_pd(_mm256_castps_pd(v), 0xd8));
    }
};

}  // namespace
}  // namespace colibri
