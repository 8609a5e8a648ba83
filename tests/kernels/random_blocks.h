// SPDX-License-Identifier: GPL-3.0-or-later
// Rows of quantised blocks as in files, with random bytes and given scales.
#pragma once

#include <cmath>
#include <cstring>
#include <random>
#include <vector>

#include "kernels/kernels.h"

namespace colibri {

// Sets all block scales and minima. For mxfp4, uses the largest power of two up to `scale`.
inline void setBlockScales(DType type, float scale, float min, std::vector<std::byte>& rows) {
    const uint16_t halves[2] = {f32ToF16(scale), f32ToF16(min)};
    for (size_t at = 0; at < rows.size(); at += size_t(fileBlock(type).bytes)) {
        std::byte* block = rows.data() + at;
        switch (type) {
            case DType::MXFP4:
                block[0] = std::byte(128 + std::ilogb(scale));
                break;
            case DType::Q6_K:
                std::memcpy(block + 208, halves, 2);
                break;
            case DType::Q4_1:
            case DType::Q5_1:
            case DType::Q4_K:
            case DType::Q5_K:
                std::memcpy(block, halves, 4);
                break;
            default:
                std::memcpy(block, halves, 2);
        }
    }
}

// Standard deviation of the weights of random blocks with scale 1, and the minimum that makes their
// mean 0.
struct BlockSpread {
    float deviation, min;
};
inline BlockSpread blockSpread(DType type) {
    switch (type) {
        case DType::Q4_0:
            return {4.6f, 0.0f};
        case DType::Q4_1:
            return {4.6f, -7.5f};
        case DType::Q5_0:
            return {9.2f, 0.0f};
        case DType::Q5_1:
            return {9.2f, -15.5f};
        case DType::Q4_K:
            return {270.0f, 7.5f};
        case DType::Q5_K:
            return {540.0f, 15.5f};
        case DType::Q6_K:
            return {1360.0f, 0.0f};
        case DType::MXFP4:
            return {5.2f, 0.0f};
        default:
            return {73.6f, 0.0f};
    }
}

// `rows` rows of `cols` columns: whole blocks with random bytes and weights around 0.
inline std::vector<std::byte> randomBlocks(DType type, int64_t rows, int64_t cols, uint32_t seed,
                                           float deviation = 0.06f) {
    const FileBlock file = fileBlock(type);
    std::vector<std::byte> out(size_t(rows * cols / file.cols * file.bytes));
    std::mt19937 random(seed);
    for (std::byte& b : out) b = std::byte(random());
    const BlockSpread spread = blockSpread(type);
    const float scale = deviation / spread.deviation;
    setBlockScales(type, scale, scale * spread.min, out);
    return out;
}

}  // namespace colibri
