// SPDX-License-Identifier: GPL-3.0-or-later
// Rows of quantised blocks as files hold them, of any bytes but with scales that are given.
#pragma once

#include <cstring>
#include <random>
#include <vector>

#include "kernels/kernels.h"

namespace colibri {

// Sets all block scales and minima; mxfp4: the nearest power of two at or below `scale`.
inline void setBlockScales(DType type, float scale, std::vector<std::byte>& rows) {
    const int bytes = fileBlock(type).bytes;
    const uint16_t half = f32ToF16(scale);
    for (size_t at = 0; at < rows.size(); at += size_t(bytes)) {
        std::byte* block = rows.data() + at;
        switch (type) {
            case DType::MXFP4:
                block[0] = std::byte(128 + std::ilogb(scale));
                break;
            case DType::Q6_K:
                std::memcpy(block + 208, &half, 2);
                break;
            case DType::Q4_1:
            case DType::Q5_1:
            case DType::Q4_K:
            case DType::Q5_K:
                std::memcpy(block + 2, &half, 2);
                [[fallthrough]];
            default:
                std::memcpy(block, &half, 2);
        }
    }
}

// `rows` rows of `cols` columns, whole blocks.
inline std::vector<std::byte> randomBlocks(DType type, int64_t rows, int64_t cols, uint32_t seed) {
    const FileBlock file = fileBlock(type);
    std::vector<std::byte> out(size_t(rows * cols / file.cols * file.bytes));
    std::mt19937 random(seed);
    for (std::byte& b : out) b = std::byte(random());
    // Weights come out near 0.1.
    setBlockScales(type, file.cols == kBlock ? 0.01f : 0.0004f, out);
    return out;
}

}  // namespace colibri
