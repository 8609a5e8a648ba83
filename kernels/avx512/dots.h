// SPDX-License-Identifier: Apache-2.0
// Private: integer dot products of one packed block with R activation rows, sixteen outputs at
// once. Included by a file compiled with VNNI and by one compiled without.
#pragma once

#include <immintrin.h>

#include "kernels/layout.h"

namespace colibri {
namespace {

struct Dots512 {
#ifdef __AVX512VNNI__
    static constexpr int kMaxRows = 8;
#else
    static constexpr int kMaxRows = 4;
#endif
    using Ints = __m512i;

    static __m512 toFloat(Ints d) { return _mm512_cvtepi32_ps(d); }

    // d[r] = the block's dot product with x[r * stride]. Q4 weights are taken as 0..15, and 8
    // times the sum of the row's block is subtracted.
    template <int R>
    static void block(const PackedQ4& w, int, const Q8Block* x, int64_t stride, Ints (&d)[R]) {
        const __m512i nibble = _mm512_set1_epi8(15);
        clear(d);
#pragma GCC unroll 4
        for (int g = 0; g < 4; ++g) {
            const __m512i both = _mm512_loadu_si512(w.q[g]);
            const __m512i low = _mm512_and_si512(both, nibble);
            const __m512i high = _mm512_and_si512(_mm512_srli_epi16(both, 4), nibble);
#pragma GCC unroll 8
            for (int r = 0; r < R; ++r) {
                d[r] = addSmall(d[r], low, quad(x[r * stride], g));
                d[r] = addSmall(d[r], high, quad(x[r * stride], g + 4));
            }
        }
#pragma GCC unroll 8
        for (int r = 0; r < R; ++r) {
            const __m512i sum = _mm512_set1_epi32(x[r * stride].sum);
            d[r] = _mm512_sub_epi32(widen(d[r]), _mm512_slli_epi32(sum, 3));
        }
    }

    template <int R>
    static void block(const PackedQ8& w, int, const Q8Block* x, int64_t stride, Ints (&d)[R]) {
        clear(d);
#pragma GCC unroll 8
        for (int g = 0; g < 8; ++g) {
            const __m512i values = _mm512_loadu_si512(w.q[g]);
#ifdef __AVX512VNNI__
            // Taken as 0..255; 128 times the sum is subtracted below.
            const __m512i raised = _mm512_xor_si512(values, _mm512_set1_epi8(-128));
#pragma GCC unroll 8
            for (int r = 0; r < R; ++r) {
                d[r] = _mm512_dpbusd_epi32(d[r], raised, quad(x[r * stride], g));
            }
#else
            // The weight's sign goes over to the activation: |w| * 127 * 2 fits 16 bits.
            const __m512i magnitude = _mm512_abs_epi8(values);
            const __mmask64 negative = _mm512_movepi8_mask(values);
#pragma GCC unroll 8
            for (int r = 0; r < R; ++r) {
                const __m512i xq = quad(x[r * stride], g);
                const __m512i turned =
                    _mm512_mask_sub_epi8(xq, negative, _mm512_setzero_si512(), xq);
                const __m512i pairs = _mm512_maddubs_epi16(magnitude, turned);
                d[r] = _mm512_add_epi32(d[r], _mm512_madd_epi16(pairs, _mm512_set1_epi16(1)));
            }
#endif
        }
#ifdef __AVX512VNNI__
#pragma GCC unroll 8
        for (int r = 0; r < R; ++r) {
            const __m512i sum = _mm512_set1_epi32(x[r * stride].sum);
            d[r] = _mm512_sub_epi32(d[r], _mm512_slli_epi32(sum, 7));
        }
#endif
    }

private:
    template <int R>
    static void clear(Ints (&d)[R]) {
#pragma GCC unroll 8
        for (int r = 0; r < R; ++r) d[r] = _mm512_setzero_si512();
    }
    static __m512i quad(const Q8Block& x, int g) {
        int32_t four;
        __builtin_memcpy(&four, x.q + 4 * g, sizeof four);
        return _mm512_set1_epi32(four);
    }
#ifdef __AVX512VNNI__
    static __m512i addSmall(__m512i d, __m512i w, __m512i x) {
        return _mm512_dpbusd_epi32(d, w, x);
    }
    static __m512i widen(__m512i d) {
        return d;
    }
#else
    // Sixteen-bit sums: a block's 16 products of 15 * 127 stay below 32768 (8 pairs of 3810).
    static __m512i addSmall(__m512i d, __m512i w, __m512i x) {
        return _mm512_add_epi16(d, _mm512_maddubs_epi16(w, x));
    }
    static __m512i widen(__m512i d) {
        return _mm512_madd_epi16(d, _mm512_set1_epi16(1));
    }
#endif
};

}  // namespace
}  // namespace colibri
