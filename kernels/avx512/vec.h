// SPDX-License-Identifier: Apache-2.0
// Private: the vector class of kernels/simd/ with sixteen f32 lanes in one AVX-512 register.
// Include it only in files compiled for AVX-512 F+BW+VL+DQ. Everything is in an anonymous
// namespace, so that the linker cannot choose code for this instruction set for another file.
#pragma once

#include <immintrin.h>

#include <cstdint>

namespace colibri {
namespace {

struct Vec512 {
    static constexpr int kWidth = 16;
    static constexpr int kPartialSums = 4;  // of the plain products, by k mod 4
    static constexpr int kMaxPlainRows = 6;

    using F = __m512;
    typedef int32_t I __attribute__((vector_size(64)));
    struct Doubles {
        __m512d low, high;
    };

    static F zero() { return _mm512_setzero_ps(); }
    static F set1(float v) { return _mm512_set1_ps(v); }
    static F load(const float* p) { return _mm512_loadu_ps(p); }
    static void store(float* p, F v) { _mm512_storeu_ps(p, v); }
    static __mmask16 mask(int64_t n) { return __mmask16((1u << n) - 1u); }
    // Loads the first n lanes, 0 < n <= 16; the rest is zero.
    static F loadPart(const float* p, int64_t n) { return _mm512_maskz_loadu_ps(mask(n), p); }
    static void storePart(float* p, F v, int64_t n) { _mm512_mask_storeu_ps(p, mask(n), v); }

    static F loadF16(const uint16_t* p) {
        return _mm512_cvtph_ps(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(p)));
    }
    static F loadF16Part(const uint16_t* p, int64_t n) {
        return _mm512_cvtph_ps(_mm256_maskz_loadu_epi16(mask(n), p));
    }
    static F loadBf16(const uint16_t* p) {
        const __m256i half = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(p));
        return _mm512_castsi512_ps(_mm512_slli_epi32(_mm512_cvtepu16_epi32(half), 16));
    }
    static F loadU8(const uint8_t* p) { return _mm512_cvtepi32_ps(_mm512_cvtepu8_epi32(bytes(p))); }
    static F loadI8(const int8_t* p) { return _mm512_cvtepi32_ps(_mm512_cvtepi8_epi32(bytes(p))); }
    static F loadI8Part(const int8_t* p, int64_t n) {
        return _mm512_cvtepi32_ps(_mm512_cvtepi8_epi32(_mm_maskz_loadu_epi8(mask(n), p)));
    }
    // 2^(p[i] - 128)
    static F loadE8m0(const uint8_t* p) {
        const __m512i bits = _mm512_slli_epi32(_mm512_cvtepu8_epi32(bytes(p)), 23);
        const __m512i atLeast = _mm512_max_epi32(bits, _mm512_set1_epi32(0x00400000));
        return mul(_mm512_castsi512_ps(atLeast), set1(0.5f));
    }
    static void storeF16(uint16_t* p, F v) {
        _mm256_storeu_si256(reinterpret_cast<__m256i*>(p), _mm512_cvtps_ph(v, kNearest));
    }
    static void storeF16Part(uint16_t* p, F v, int64_t n) {
        _mm256_mask_storeu_epi16(p, mask(n), _mm512_cvtps_ph(v, kNearest));
    }

    static F add(F a, F b) { return _mm512_add_ps(a, b); }
    static F mul(F a, F b) { return _mm512_mul_ps(a, b); }
    static F div(F a, F b) { return _mm512_div_ps(a, b); }
    static F fma(F a, F b, F c) { return _mm512_fmadd_ps(a, b, c); }
    static F negatedFma(F a, F b, F c) { return _mm512_fnmadd_ps(a, b, c); }
    static F fmaAddSub(F a, F b, F c) { return _mm512_fmaddsub_ps(a, b, c); }
    static F negate(F a) { return _mm512_xor_ps(a, _mm512_set1_ps(-0.0f)); }
    // If b is a NaN, so is the result.
    static F max(F a, F b) { return _mm512_max_ps(a, b); }
    static F min(F a, F b) { return _mm512_min_ps(a, b); }
    static F round(F a) { return _mm512_roundscale_ps(a, kNearest); }
    // a * 2^n for integers n. Overflow gives infinity, underflow is gradual.
    static F scaleByPower(F a, F n) { return _mm512_scalef_ps(a, n); }

    static float sum(F v) {
        const __m256 half = _mm256_add_ps(_mm512_castps512_ps256(v), _mm512_extractf32x8_ps(v, 1));
        __m128 s = _mm_add_ps(_mm256_castps256_ps128(half), _mm256_extractf128_ps(half, 1));
        s = _mm_add_ps(s, _mm_movehl_ps(s, s));
        return _mm_cvtss_f32(_mm_add_ss(s, _mm_movehdup_ps(s)));
    }
    static float largest(F v) {
        const __m256 half = _mm256_max_ps(_mm512_castps512_ps256(v), _mm512_extractf32x8_ps(v, 1));
        __m128 m = _mm_max_ps(_mm256_castps256_ps128(half), _mm256_extractf128_ps(half, 1));
        m = _mm_max_ps(m, _mm_movehl_ps(m, m));
        return _mm_cvtss_f32(_mm_max_ss(m, _mm_movehdup_ps(m)));
    }

    static Doubles zeroDoubles() { return {_mm512_setzero_pd(), _mm512_setzero_pd()}; }
    static Doubles addSquares(Doubles acc, F v) {
        const __m512d low = _mm512_cvtps_pd(_mm512_castps512_ps256(v));
        const __m512d high = _mm512_cvtps_pd(_mm512_extractf32x8_ps(v, 1));
        return {_mm512_fmadd_pd(low, low, acc.low), _mm512_fmadd_pd(high, high, acc.high)};
    }
    static double sum(Doubles v) {
        const __m512d all = _mm512_add_pd(v.low, v.high);
        const __m256d half =
            _mm256_add_pd(_mm512_castpd512_pd256(all), _mm512_extractf64x4_pd(all, 1));
        const __m128d s = _mm_add_pd(_mm256_castpd256_pd128(half), _mm256_extractf128_pd(half, 1));
        return _mm_cvtsd_f64(_mm_add_sd(s, _mm_unpackhi_pd(s, s)));
    }

    // Lane i of the result is the sum of row i of rows[16][16].
    static F rowSums(const float* rows) {
        F quads[4];
        for (int i = 0; i < 4; ++i) {
            const float* r = rows + i * 4 * kWidth;
            const F ab = addUnpacked(load(r), load(r + kWidth));
            const F cd = addUnpacked(load(r + 2 * kWidth), load(r + 3 * kWidth));
            const __m512d x = _mm512_castps_pd(ab);
            const __m512d y = _mm512_castps_pd(cd);
            quads[i] = add(_mm512_castpd_ps(_mm512_unpacklo_pd(x, y)),
                           _mm512_castpd_ps(_mm512_unpackhi_pd(x, y)));
        }
        return addQuarters(addQuarters(quads[0], quads[1]), addQuarters(quads[2], quads[3]));
    }

    // Separates the 32 values of low, high into even and odd lanes.
    static void deinterleave(F low, F high, F& even, F& odd) {
        const __m512i pick =
            _mm512_set_epi32(30, 28, 26, 24, 22, 20, 18, 16, 14, 12, 10, 8, 6, 4, 2, 0);
        even = _mm512_permutex2var_ps(low, pick, high);
        odd = _mm512_permutex2var_ps(low, _mm512_add_epi32(pick, _mm512_set1_epi32(1)), high);
    }
    static F evenTwice(F v) { return _mm512_moveldup_ps(v); }
    static F oddTwice(F v) { return _mm512_movehdup_ps(v); }
    static F swapPairs(F v) { return _mm512_permute_ps(v, 0xb1); }

    // The bits of the largest magnitude of 32 floats. NaN and infinity compare greater than all
    // numbers.
    static uint32_t magnitudeBits(const float* x) {
        const __m512i drop = _mm512_set1_epi32(0x7fffffff);
        const __m512i a = _mm512_and_si512(_mm512_castps_si512(load(x)), drop);
        const __m512i b = _mm512_and_si512(_mm512_castps_si512(load(x + kWidth)), drop);
        return uint32_t(_mm512_reduce_max_epi32(_mm512_max_epi32(a, b)));
    }
    // q[i] = round(x[i] * inverse) for 32 values; also the sums of the first and of the last 16.
    static void quantise(const float* x, float inverse, int8_t* q, int16_t* sums) {
        const F scale = set1(inverse);
        const __m512i a = _mm512_cvtps_epi32(mul(load(x), scale));
        const __m512i b = _mm512_cvtps_epi32(mul(load(x + kWidth), scale));
        _mm_storeu_si128(reinterpret_cast<__m128i*>(q), _mm512_cvtepi32_epi8(a));
        _mm_storeu_si128(reinterpret_cast<__m128i*>(q) + 1, _mm512_cvtepi32_epi8(b));
        sums[0] = int16_t(_mm512_reduce_add_epi32(a));
        sums[1] = int16_t(_mm512_reduce_add_epi32(b));
    }

private:
    static constexpr int kNearest = _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC;

    static __m128i bytes(const void* p) { return _mm_loadu_si128(static_cast<const __m128i*>(p)); }
    static F addUnpacked(F a, F b) {
        return add(_mm512_unpacklo_ps(a, b), _mm512_unpackhi_ps(a, b));
    }
    static F addQuarters(F a, F b) {
        return add(_mm512_shuffle_f32x4(a, b, 0x88), _mm512_shuffle_f32x4(a, b, 0xdd));
    }
};

}  // namespace
}  // namespace colibri
