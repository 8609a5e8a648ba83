// SPDX-License-Identifier: Apache-2.0
#include "kernels/packed.h"

#include <cstring>
#include <type_traits>

#include "kernels/block_values.h"
#include "kernels/kernels.h"

namespace colibri {
namespace {

// Copies columns [k, k + 32) of up to kPanel rows; missing values are 0.
void fillTile(const float* src, int64_t rows, int64_t cols, int64_t k, WeightTile& tile) {
    const int64_t n = cols - k < kBlock ? cols - k : kBlock;
    if (rows < kPanel || n < kBlock) std::memset(tile, 0, sizeof tile);
    for (int64_t r = 0; r < rows; ++r) {
        const float* from = src + r * cols + k;
        for (int64_t i = 0; i < n; ++i) tile[i][r] = from[i];
    }
}

}  // namespace

int64_t panelBytes(DType type, int64_t cols) {
    const int64_t padded = paddedCols(cols);
    switch (type) {
        case DType::F32:
            return padded * kPanel * int64_t(sizeof(float));
        case DType::F16:
        case DType::BF16:
            return padded * kPanel * int64_t(sizeof(uint16_t));
        default: {
            int64_t bytes = 0;
            withBlock(type, [&](auto* block) {
                using Block = std::remove_pointer_t<decltype(block)>;
                bytes = padded / (Block::kSubs * kBlock) * int64_t(sizeof(Block));
            });
            return bytes;
        }
    }
}

int64_t packedBytes(DType type, int64_t rows, int64_t cols) {
    return panelCount(rows) * panelBytes(type, cols);
}

void packRows(DType type, const float* src, int64_t rows, int64_t cols, std::byte* out) {
    const KernelSet& kernels = bestKernels();
    const int64_t blockBytes = panelBytes(type, kBlock);
    alignas(64) WeightTile tile;
    for (int64_t row = 0; row < rows; row += kPanel) {
        const int64_t n = rows - row < kPanel ? rows - row : kPanel;
        for (int64_t k = 0; k < cols; k += kBlock, out += blockBytes) {
            fillTile(src + row * cols, n, cols, k, tile);
            kernels.encode(type, tile, out);
            withBlock(type, [&](auto* block) {
                block = reinterpret_cast<decltype(block)>(out);
                for (int64_t lane = n; lane < kPanel; ++lane) clearLane(lane, *block);
            });
        }
    }
}

void unpackRow(DType type, const std::byte* packed, int64_t cols, int64_t row, float* out) {
    const std::byte* panel = packed + row / kPanel * panelBytes(type, cols);
    const int64_t lane = row % kPanel;
    const auto* halves = reinterpret_cast<const uint16_t*>(panel) + lane;
    switch (type) {
        case DType::F32:
            for (int64_t k = 0; k < cols; ++k) {
                out[k] = reinterpret_cast<const float*>(panel)[k * kPanel + lane];
            }
            return;
        case DType::F16:
            for (int64_t k = 0; k < cols; ++k) out[k] = f16ToF32(halves[k * kPanel]);
            return;
        case DType::BF16:
            for (int64_t k = 0; k < cols; ++k) out[k] = bf16ToF32(halves[k * kPanel]);
            return;
        default:
            withBlock(type, [&](auto* block) {
                using Block = std::remove_pointer_t<decltype(block)>;
                constexpr int64_t kWide = Block::kSubs * kBlock;
                const auto* from = reinterpret_cast<const Block*>(panel);
                for (int64_t k = 0; k < cols; k += kWide, ++from) {
                    const int64_t left = cols - k;
                    readLane(*from, lane, left < kWide ? left : kWide, out + k);
                }
            });
    }
}

}  // namespace colibri
