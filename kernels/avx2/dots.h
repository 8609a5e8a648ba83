// SPDX-License-Identifier: Apache-2.0
// Private: the integer operations of the dot products, for eight outputs (one half of a panel).
#pragma once

#include <immintrin.h>

#include "kernels/layout.h"

namespace colibri {
namespace {

struct Dots256 {
    static constexpr int kMaxRows = 5;
    static constexpr bool kPairs = true;  // products are summed in 16 bits first
    using Ints = __m256i;

    static __m256 toFloat(Ints d) { return _mm256_cvtepi32_ps(d); }
    static Ints all(int32_t v) { return _mm256_set1_epi32(v); }
    // Loads four bytes of each lane from vector `part` of a panel.
    static Ints load(const void* p, int part) {
        return _mm256_loadu_si256(static_cast<const __m256i*>(p) + part);
    }
    static Ints bits(Ints v, int mask) { return _mm256_and_si256(v, _mm256_set1_epi8(char(mask))); }
    static Ints either(Ints a, Ints b) { return _mm256_or_si256(a, b); }
    // Shifts 16-bit elements right by N; negative: left.
    template <int N>
    static Ints shiftRight(Ints v) {
        if constexpr (N >= 0)
            return _mm256_srli_epi16(v, N);
        else
            return _mm256_slli_epi16(v, -N);
    }
    // Returns table[v] for every byte v in 0..15.
    static Ints pick(const int8_t (&table)[16], Ints v) {
        const __m128i all = _mm_loadu_si128(reinterpret_cast<const __m128i*>(table));
        return _mm256_shuffle_epi8(_mm256_broadcastsi128_si256(all), v);
    }
    // Columns 4 * g to 4 * g + 3 of an activation block, broadcast to every lane.
    static Ints quad(const Q8Block& x, int g) {
        int32_t four;
        __builtin_memcpy(&four, x.q + 4 * g, sizeof four);
        return _mm256_set1_epi32(four);
    }
    // Adds products of unsigned w and signed x: pairs are summed in 16 bits, then pairs of these in
    // 32 bits.
    static Ints addPairs(Ints d, Ints w, Ints x) {
        return _mm256_add_epi16(d, _mm256_maddubs_epi16(w, x));
    }
    static Ints widen(Ints d, Ints pairs) {
        return _mm256_add_epi32(d, _mm256_madd_epi16(pairs, _mm256_set1_epi16(1)));
    }

    // The weight's sign is moved to the activation. |w| * 127 * 2 fits into 16 bits.
    template <int R>
    static void signedDots(const PackedQ8& w, int part, const Q8Block* x, int64_t stride,
                           Ints (&d)[R]) {
#pragma GCC unroll 8
        for (int r = 0; r < R; ++r) d[r] = all(0);
#pragma GCC unroll 8
        for (int g = 0; g < 8; ++g) {
            const __m256i values = load(w.q[g], part);
            const __m256i magnitude = _mm256_abs_epi8(values);
#pragma GCC unroll 8
            for (int r = 0; r < R; ++r) {
                const __m256i turned = _mm256_sign_epi8(quad(x[r * stride], g), values);
                d[r] = widen(d[r], _mm256_maddubs_epi16(magnitude, turned));
            }
        }
    }
};

}  // namespace
}  // namespace colibri
