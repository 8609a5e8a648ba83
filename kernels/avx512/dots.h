// SPDX-License-Identifier: Apache-2.0
// Private: the integer operations of the dot products, for sixteen outputs; see avx2/dots.h for
// their meaning. One file with VNNI and one without include this header.
#pragma once

#include <immintrin.h>

#include "kernels/layout.h"

namespace colibri {
namespace {

struct Dots512 {
#ifdef __AVX512VNNI__
    static constexpr int kMaxRows = 8;
    static constexpr bool kPairs = false;
#else
    static constexpr int kMaxRows = 4;
    static constexpr bool kPairs = true;
#endif
    using Ints = __m512i;

    static __m512 toFloat(Ints d) {
        return _mm512_cvtepi32_ps(d);
    }
    static Ints all(int32_t v) {
        return _mm512_set1_epi32(v);
    }
    static Ints load(const void* p, int) {
        return _mm512_loadu_si512(p);
    }
    static Ints bits(Ints v, int mask) {
        return _mm512_and_si512(v, _mm512_set1_epi8(char(mask)));
    }
    static Ints either(Ints a, Ints b) {
        return _mm512_or_si512(a, b);
    }
    template <int N>
    static Ints shiftRight(Ints v) {
        if constexpr (N >= 0)
            return _mm512_srli_epi16(v, N);
        else
            return _mm512_slli_epi16(v, -N);
    }
    static Ints pick(const int8_t (&table)[16], Ints v) {
        const __m128i all = _mm_loadu_si128(reinterpret_cast<const __m128i*>(table));
        return _mm512_shuffle_epi8(_mm512_broadcast_i32x4(all), v);
    }
    static Ints quad(const Q8Block& x, int g) {
        int32_t four;
        __builtin_memcpy(&four, x.q + 4 * g, sizeof four);
        return _mm512_set1_epi32(four);
    }
#ifdef __AVX512VNNI__
    // Adds products of unsigned w and signed x, four to each 32-bit lane.
    static Ints addQuads(Ints d, Ints w, Ints x) {
        return _mm512_dpbusd_epi32(d, w, x);
    }
#else
    static Ints addPairs(Ints d, Ints w, Ints x) {
        return _mm512_add_epi16(d, _mm512_maddubs_epi16(w, x));
    }
    static Ints widen(Ints d, Ints pairs) {
        return _mm512_add_epi32(d, _mm512_madd_epi16(pairs, _mm512_set1_epi16(1)));
    }
#endif

    template <int R>
    static void signedDots(const PackedQ8& w, int part, const Q8Block* x, int64_t stride,
                           Ints (&d)[R]) {
#pragma GCC unroll 8
        for (int r = 0; r < R; ++r) {
#ifdef __AVX512VNNI__
            d[r] = all(-128 * x[r * stride].sum());  // weights become 0..255 below
#else
            d[r] = all(0);
#endif
        }
#pragma GCC unroll 8
        for (int g = 0; g < 8; ++g) {
            const __m512i values = load(w.q[g], part);
#ifdef __AVX512VNNI__
            const __m512i raised = _mm512_xor_si512(values, _mm512_set1_epi8(-128));
#pragma GCC unroll 8
            for (int r = 0; r < R; ++r) d[r] = addQuads(d[r], raised, quad(x[r * stride], g));
#else
            // The weight's sign is moved to the activation. |w| * 127 * 2 fits into 16 bits.
            const __m512i magnitude = _mm512_abs_epi8(values);
            const __mmask64 negative = _mm512_movepi8_mask(values);
#pragma GCC unroll 8
            for (int r = 0; r < R; ++r) {
                const __m512i xq = quad(x[r * stride], g);
                const __m512i turned =
                    _mm512_mask_sub_epi8(xq, negative, _mm512_setzero_si512(), xq);
                d[r] = widen(d[r], _mm512_maddubs_epi16(magnitude, turned));
            }
#endif
        }
    }
};

}  // namespace
}  // namespace colibri
