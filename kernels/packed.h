// SPDX-License-Identifier: Apache-2.0
// The canonical packed layout of a weight matrix, identical on disk and in memory.
//
// A matrix W (rows = outputs, cols = inputs) is divided into panels of kPanel output rows. The rows
// of a panel are interleaved, so that one vector lane computes one output and weights stream in
// order. Rows are padded with zeros to whole panels, columns to whole blocks of 32 (every type).
//
//   f32, f16, bf16   [panel][col][kPanel]                            one value per lane
//   q8_0             [panel][block]{ f16 scale[16]; int8 q[8][16][4] }    544 bytes per block
//   q4_0             [panel][block]{ f16 scale[16]; codes 4 }             288
//   q4_1             [panel][block]{ f16 scale[16], min[16]; codes 4 }    320
//   q5_0             [panel][block]{ f16 scale[16]; codes 5 }             352
//   q5_1             [panel][block]{ f16 scale[16], min[16]; codes 5 }    384
//   mxfp4            [panel][block]{ uint8 scale[16]; codes 4 }           272
//   q4_k, q5_k       [panel][8 blocks]{ f16 scale[16], min[16]; uint8 subScale[8][16],
//                                       subMin[8][16]; codes 4 or 5 [8] }  2368, 2880
//   q6_k             [panel][8 blocks]{ f16 scale[16]; int8 subScale[8][2][16];
//                                       codes 6 [8] }                      3360
//
// q8_0: q[g][lane][j] is column 4*g + j of the block. Codes of n bits are unsigned numbers:
//   uint8 low[4][16][4]    byte [g][lane][j] holds the four low bits of column 4*g + j in its low
//                          nibble and those of column 16 + 4*g + j in its high nibble
//   uint8 high[n - 4][16][4]   the high bits. 5 bits: bit g of byte [0][lane][j] belongs to column
//                          4*g + j. 6 bits: bits 2*g and 2*g + 1 of byte [h][lane][j] belong to
//                          column 16*h + 4*g + j
// A weight is
//   q4_0, q5_0   scale * (code - 8 or 16)
//   q4_1, q5_1   scale * code + min
//   q4_k, q5_k   scale * subScale * code - min * subMin
//   q6_k         scale * subScale of its 16 columns * (code - 32)
//   mxfp4        2^(scale - 128) * (0, 1, 2, 3, 4, 6, 8, 12 and their negatives)[code]
// Scales and codes have the same meaning as in ggml, so packing a GGUF block is lossless. Encoding
// rounds like ggml, except that it searches for the best scale of a q4_0 block. A row of q4_k, q5_k
// or q6_k consists of whole groups of 256 columns.
#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/dtype.h"

namespace colibri {

constexpr int64_t kPanel = 16;

constexpr int64_t panelCount(int64_t rows) {
    return (rows + kPanel - 1) / kPanel;
}
constexpr int64_t paddedCols(int64_t cols) {
    return (cols + kBlock - 1) / kBlock * kBlock;
}

// Bytes of one panel, and of the whole packed matrix (a multiple of 16 bytes).
int64_t panelBytes(DType type, int64_t cols);
int64_t packedBytes(DType type, int64_t rows, int64_t cols);

// Quantises and packs `rows` rows of f32 source (row stride = cols) into `out`
// (packedBytes(type, rows, cols) bytes). Call it on runs of whole panels to stream a matrix:
// packing rows [16 p, 16 p + n) writes at p * panelBytes. REQUIRES: hasEncoder(type).
void packRows(DType type, const float* src, int64_t rows, int64_t cols, std::byte* out);

// Packs rows already quantised in ggml's row-major block form (fileBlock) without changing a bit of
// scale or value. REQUIRES: isQuantised(type), whole blocks.
void packGgmlRows(DType type, const std::byte* src, int64_t rows, int64_t cols, std::byte* out);

// Decodes `blocks` blocks in ggml's form. ggmlScalesFinite: whether all their scales are finite.
void ggmlToFloats(DType type, const std::byte* src, int64_t blocks, float* out);
bool ggmlScalesFinite(DType type, const std::byte* src, int64_t blocks);

// Decodes one row to f32 (cols values), bit-identical to dequantising the stored form.
void unpackRow(DType type, const std::byte* packed, int64_t cols, int64_t row, float* out);

}  // namespace colibri
