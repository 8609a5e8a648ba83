// SPDX-License-Identifier: Apache-2.0
// Private: the scalar reference implementation of each entry of KernelSet.
#pragma once

#include "kernels/kernels.h"

namespace colibri::scalar {

// Activation blocks whose largest magnitude is below this count as zero: the reciprocal of their
// scale would overflow f32.
constexpr float kVanishing = 1e-36f;

void prepareInput(DType weights, const float* x, int64_t ldx, int64_t rows, int64_t cols,
                  std::byte* out);
void matmul(DType type, const std::byte* packed, int64_t outRows, int64_t cols, int64_t first,
            int64_t last, const std::byte* x, int64_t rows, float* y, int64_t ldy);
void gateUp(DType type1, const std::byte* w1, DType type3, const std::byte* w3, int64_t outRows,
            int64_t cols, int64_t first, int64_t last, const std::byte* x, int64_t rows, float* h,
            int64_t ldh);
void encode(DType type, const WeightTile& tile, std::byte* out);
void tableLookup(const uint16_t* table, int64_t k, const int32_t* tokens, int64_t n, int32_t* out);

// Constants of the scale search for q4_0. Adding and subtracting kRoundingQ4 rounds to an integer.
// The tried inverse scales are multiples of ggml's, for step -4 to 4.
constexpr float kRoundingQ4 = 12582912.0f;  // 1.5 * 2^23
constexpr float trialQ4(int step) {
    return (8.0f + 0.2f * float(step)) / 8.0f;
}

}  // namespace colibri::scalar
