// SPDX-License-Identifier: Apache-2.0
// Private: integer dot products of one packed block with R activation rows, eight outputs (one
// half of a panel) at once.
#pragma once

#include <immintrin.h>

#include "kernels/layout.h"

namespace colibri {
namespace {

struct Dots256 {
    static constexpr int kMaxRows = 5;
    using Ints = __m256i;

    static __m256 toFloat(Ints d) { return _mm256_cvtepi32_ps(d); }

    // d[r] = the dot product of one half of the block with x[r * stride]. Q4 weights are taken as
    // 0..15, and 8 times the sum of the row's block is subtracted. Sixteen-bit sums hold: 8 pairs
    // of 2 * 15 * 127 stay below 32768.
    template <int R>
    static void block(const PackedQ4& w, int half, const Q8Block* x, int64_t stride, Ints (&d)[R]) {
        const __m256i nibble = _mm256_set1_epi8(15);
        clear(d);
#pragma GCC unroll 4
        for (int g = 0; g < 4; ++g) {
            const __m256i both = load(w.q[g][8 * half]);
            const __m256i low = _mm256_and_si256(both, nibble);
            const __m256i high = _mm256_and_si256(_mm256_srli_epi16(both, 4), nibble);
#pragma GCC unroll 8
            for (int r = 0; r < R; ++r) {
                const Q8Block& xr = x[r * stride];
                d[r] = _mm256_add_epi16(d[r], _mm256_maddubs_epi16(low, quad(xr, g)));
                d[r] = _mm256_add_epi16(d[r], _mm256_maddubs_epi16(high, quad(xr, g + 4)));
            }
        }
#pragma GCC unroll 8
        for (int r = 0; r < R; ++r) {
            const __m256i dot = _mm256_madd_epi16(d[r], _mm256_set1_epi16(1));
            const __m256i sum = _mm256_set1_epi32(x[r * stride].sum);
            d[r] = _mm256_sub_epi32(dot, _mm256_slli_epi32(sum, 3));
        }
    }

    // The weight's sign goes over to the activation: |w| * 127 * 2 fits 16 bits.
    template <int R>
    static void block(const PackedQ8& w, int half, const Q8Block* x, int64_t stride, Ints (&d)[R]) {
        clear(d);
#pragma GCC unroll 8
        for (int g = 0; g < 8; ++g) {
            const __m256i values = load(w.q[g][8 * half]);
            const __m256i magnitude = _mm256_abs_epi8(values);
#pragma GCC unroll 8
            for (int r = 0; r < R; ++r) {
                const __m256i turned = _mm256_sign_epi8(quad(x[r * stride], g), values);
                const __m256i pairs = _mm256_maddubs_epi16(magnitude, turned);
                d[r] = _mm256_add_epi32(d[r], _mm256_madd_epi16(pairs, _mm256_set1_epi16(1)));
            }
        }
    }

private:
    template <int R>
    static void clear(Ints (&d)[R]) {
#pragma GCC unroll 8
        for (int r = 0; r < R; ++r) d[r] = _mm256_setzero_si256();
    }
    static __m256i load(const void* p) {
        return _mm256_loadu_si256(static_cast<const __m256i*>(p));
    }
    static __m256i quad(const Q8Block& x, int g) {
        int32_t four;
        __builtin_memcpy(&four, x.q + 4 * g, sizeof four);
        return _mm256_set1_epi32(four);
    }
};

}  // namespace
}  // namespace colibri
