// SPDX-License-Identifier: Apache-2.0
// The canonical packed layout of a weight matrix, on disk and in memory alike.
//
// A matrix W (rows = outputs, cols = inputs) is cut into panels of kPanel output rows; the rows of
// a panel lie interleaved, so that one vector lane computes one output and weights stream in
// order. Rows are padded with zeros to whole panels, columns to whole blocks of 32 (every type).
//
//   f32, f16, bf16   [panel][col][kPanel]                            one value per lane
//   q8_0             [panel][block]{ f16 scale[16]; int8 q[8][16][4] }   544 bytes per block
//   q4_0             [panel][block]{ f16 scale[16]; uint8 q[4][16][4] }  288 bytes per block
//
// q8_0: q[g][lane][j] is column 4*g + j of the block. q4_0: byte q[g][lane][j] holds column
// 4*g + j of the block in its low nibble and column 16 + 4*g + j in its high nibble, each value
// offset by 8. Scales and roundings are ggml's, so packing a GGUF block loses nothing.
#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/dtype.h"

namespace colibri {

constexpr int64_t kPanel = 16;

constexpr int64_t panelCount(int64_t rows) { return (rows + kPanel - 1) / kPanel; }
constexpr int64_t paddedCols(int64_t cols) { return (cols + kBlock - 1) / kBlock * kBlock; }

// Bytes of one panel, and of the whole packed matrix (a multiple of 32 bytes).
int64_t panelBytes(DType type, int64_t cols);
int64_t packedBytes(DType type, int64_t rows, int64_t cols);

// Quantises and packs `rows` rows of f32 source (row stride = cols) into `out`
// (packedBytes(type, rows, cols) bytes). Call it on runs of whole panels to stream a matrix:
// packing rows [16 p, 16 p + n) writes at p * panelBytes.
void packRows(DType type, const float* src, int64_t rows, int64_t cols, std::byte* out);

// Packs rows already quantised in ggml's row-major block form (q8_0: 34 bytes, q4_0: 18 bytes per
// 32 columns) without changing a bit of scale or value. cols must be a multiple of 32.
void packGgmlRows(DType type, const std::byte* src, int64_t rows, int64_t cols, std::byte* out);

// One row back as f32 (cols values), bit-exact to the dequantisation of the stored form.
void unpackRow(DType type, const std::byte* packed, int64_t cols, int64_t row, float* out);

}  // namespace colibri
