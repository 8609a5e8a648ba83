// SPDX-License-Identifier: Apache-2.0
// Private: lookup in a token -> experts table. One gather fetches the narrow entries (k = 1, 2, 4)
// of several tokens. Wider entries are contiguous, where vectors gain nothing over the plain loop,
// which is also the fastest for one token. Uses AVX2, which every vector set includes.
#pragma once

#include <immintrin.h>

#include <cstdint>

#include "kernels/scalar/scalar.h"

namespace colibri {
namespace {

inline void lookupTail(const uint16_t* table, int64_t k, const int32_t* tokens, int64_t first,
                       int64_t n, int32_t* out) {
    for (int64_t r = first; r < n; ++r) {
        const uint16_t* entry = table + int64_t(tokens[r]) * k;
        for (int64_t i = 0; i < k; ++i) out[r * k + i] = entry[i];
    }
}

inline __m256i loadTokens(const int32_t* tokens) {
    return _mm256_loadu_si256(reinterpret_cast<const __m256i*>(tokens));
}

inline void store8(int32_t* out, __m256i v) {
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(out), v);
}

// Eight tokens: gathers 32 bits for each, the lower half of which is the entry.
inline void lookup1(const uint16_t* table, const int32_t* tokens, int64_t n, int32_t* out) {
    int64_t r = 0;
    for (; r + 8 <= n; r += 8) {
        const __m256i words =
            _mm256_i32gather_epi32(reinterpret_cast<const int*>(table), loadTokens(tokens + r), 2);
        store8(out + r, _mm256_and_si256(words, _mm256_set1_epi32(0xffff)));
    }
    lookupTail(table, 1, tokens, r, n, out);
}

// Eight tokens: the 32 bits gathered for each are its two experts.
inline void lookup2(const uint16_t* table, const int32_t* tokens, int64_t n, int32_t* out) {
    int64_t r = 0;
    for (; r + 8 <= n; r += 8) {
        const __m256i words =
            _mm256_i32gather_epi32(reinterpret_cast<const int*>(table), loadTokens(tokens + r), 4);
        store8(out + 2 * r, _mm256_cvtepu16_epi32(_mm256_castsi256_si128(words)));
        store8(out + 2 * r + 8, _mm256_cvtepu16_epi32(_mm256_extracti128_si256(words, 1)));
    }
    lookupTail(table, 2, tokens, r, n, out);
}

// Four tokens: the 64 bits gathered for each are its four experts.
inline void lookup4(const uint16_t* table, const int32_t* tokens, int64_t n, int32_t* out) {
    int64_t r = 0;
    for (; r + 4 <= n; r += 4) {
        const __m256i words = _mm256_i32gather_epi64(
            reinterpret_cast<const long long*>(table),
            _mm_loadu_si128(reinterpret_cast<const __m128i*>(tokens + r)), 8);
        store8(out + 4 * r, _mm256_cvtepu16_epi32(_mm256_castsi256_si128(words)));
        store8(out + 4 * r + 8, _mm256_cvtepu16_epi32(_mm256_extracti128_si256(words, 1)));
    }
    lookupTail(table, 4, tokens, r, n, out);
}

inline void tableLookup(const uint16_t* table, int64_t k, const int32_t* tokens, int64_t n,
                        int32_t* out) {
    switch (k) {
        case 1:
            return lookup1(table, tokens, n, out);
        case 2:
            return lookup2(table, tokens, n, out);
        case 4:
            return lookup4(table, tokens, n, out);
        default:
            return scalar::tableLookup(table, k, tokens, n, out);
    }
}

}  // namespace
}  // namespace colibri
