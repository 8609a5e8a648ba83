// SPDX-License-Identifier: Apache-2.0
// Private: products over the packed layout for any vector class V and its integer dot products D.
//
// A tile is one panel (16 outputs) times R activation rows, with its sums in registers. A panel
// stays in the first-level cache while all rows are multiplied with it in tiles. Weights are read
// in address order. The order of summation of an output does not depend on R, so results do not
// depend on the number of rows in a batch.
#pragma once

#include "kernels/layout.h"
#include "kernels/simd/codes.h"
#include "kernels/simd/math.h"

namespace colibri {
namespace {

// Size of the prepared activations that are multiplied with a panel together: a share of the
// second-level cache.
constexpr int64_t kPortionBytes = int64_t(128) << 10;

// Prefetch distances of weights for a single row: into the second-level cache, and then into the
// first. The arithmetic keeps the core from running far enough ahead by itself, and the hardware
// prefetcher stops at page boundaries. q4_0 streams at 0.5 of the speed of plain reads without
// prefetching, at 0.87 with the second level alone, at 0.97 with both.
constexpr int64_t kFarAhead = 8192, kNearAhead = 4096;

template <int R, size_t Bytes>
inline void prefetchAhead(const void* at) {
    if constexpr (R == 1) {
        const char* p = static_cast<const char*>(at);
#pragma GCC unroll 16
        for (size_t i = 0; i < Bytes; i += 64) {
            __builtin_prefetch(p + kFarAhead + i, 0, 2);
            __builtin_prefetch(p + kNearAhead + i, 0, 3);
        }
    }
}

// Element types of the plain products.
struct PlainF32 {
    using Element = float;
    template <typename V>
    static typename V::F load(const float* p) {
        return V::load(p);
    }
};
struct PlainF16 {
    using Element = uint16_t;
    template <typename V>
    static typename V::F load(const uint16_t* p) {
        return V::loadF16(p);
    }
};
struct PlainBf16 {
    using Element = uint16_t;
    template <typename V>
    static typename V::F load(const uint16_t* p) {
        return V::loadBf16(p);
    }
};

// The input of a tile: one panel, and R rows of prepared activations.
struct TileInput {
    const std::byte* panel;
    int64_t cols;  // padded to whole blocks
    const std::byte* x;
    int64_t rowBytes;
};

// Writes out[r * 16 + lane]. The tile covers P of the vectors that make up a panel, starting at
// `part`.
template <typename V, typename T, int R, int P>
void plainTile(const TileInput& in, int part, float* out) {
    using F = typename V::F;
    using Element = typename T::Element;
    constexpr int kSums = V::kPartialSums;
    const auto* w = reinterpret_cast<const Element*>(in.panel) + part * V::kWidth;
    const auto* x = reinterpret_cast<const float*>(in.x);
    const int64_t stride = in.rowBytes / int64_t(sizeof(float));
    F acc[R][P][kSums];
    for (int r = 0; r < R; ++r) {
        for (int p = 0; p < P; ++p) {
            for (int j = 0; j < kSums; ++j) acc[r][p][j] = V::zero();
        }
    }
    for (int64_t k = 0; k < in.cols; k += kSums) {
        prefetchAhead<R, kSums * kPanel * sizeof(Element)>(w + k * kPanel);
#pragma GCC unroll 4
        for (int j = 0; j < kSums; ++j) {
#pragma GCC unroll 2
            for (int p = 0; p < P; ++p) {
                const F weights = T::template load<V>(w + (k + j) * kPanel + p * V::kWidth);
#pragma GCC unroll 8
                for (int r = 0; r < R; ++r) {
                    acc[r][p][j] = V::fma(weights, V::set1(x[r * stride + k + j]), acc[r][p][j]);
                }
            }
        }
    }
    for (int r = 0; r < R; ++r) {
        for (int p = 0; p < P; ++p) {
            F sum = V::add(acc[r][p][0], acc[r][p][1]);
            if constexpr (kSums == 4) sum = V::add(sum, V::add(acc[r][p][2], acc[r][p][3]));
            V::store(out + r * kPanel + (part + p) * V::kWidth, sum);
        }
    }
}

// For each sub-block of 32 columns: integer dot products, one multiply-add for each part with a
// scale, one for the minimum.
template <typename V, typename D, typename Block, int R, int P>
void quantTile(const TileInput& in, int part, float* out) {
    using F = typename V::F;
    const auto* w = reinterpret_cast<const Block*>(in.panel);
    const auto* x = reinterpret_cast<const Q8Block*>(in.x);
    const int64_t blocks = in.cols / kBlock;
    F acc[R][P];
    for (int r = 0; r < R; ++r) {
        for (int p = 0; p < P; ++p) acc[r][p] = V::zero();
    }
    for (int64_t b = 0; b < blocks; ++w) {
        for (int sub = 0; sub < Block::kSubs; ++sub, ++b) {
            constexpr size_t kSubBytes = sizeof(Block) / Block::kSubs;
            prefetchAhead<R, kSubBytes>(reinterpret_cast<const std::byte*>(w) + sub * kSubBytes);
#pragma GCC unroll 2
            for (int p = 0; p < P; ++p) {
                const int lane = (part + p) * V::kWidth;
                typename D::Ints dots[Block::kSplit][R];
                BlockDots<D, Block>::template run<R>(*w, sub, part + p, x + b, blocks, dots);
#pragma GCC unroll 2
                for (int i = 0; i < Block::kSplit; ++i) {
                    const F scale = scaleOf<V>(*w, sub, i, lane);
#pragma GCC unroll 8
                    for (int r = 0; r < R; ++r) {
                        const F both = V::mul(scale, V::set1(x[r * blocks + b].scale));
                        acc[r][p] = V::fma(D::toFloat(dots[i][r]), both, acc[r][p]);
                    }
                }
                if constexpr (Block::kMin) {
                    const F min = minOf<V>(*w, sub, lane);
#pragma GCC unroll 8
                    for (int r = 0; r < R; ++r) {
                        const Q8Block& xr = x[r * blocks + b];
                        acc[r][p] = V::fma(min, V::set1(float(xr.sum()) * xr.scale), acc[r][p]);
                    }
                }
            }
        }
    }
    for (int r = 0; r < R; ++r) {
        for (int p = 0; p < P; ++p) {
            V::store(out + r * kPanel + (part + p) * V::kWidth, acc[r][p]);
        }
    }
}

template <typename V, typename T>
struct PlainTiles {
    static constexpr int kMaxRows = V::kMaxPlainRows;
    template <int R, int P>
    static void run(const TileInput& in, int part, float* out) {
        plainTile<V, T, R, P>(in, part, out);
    }
};

template <typename V, typename D, typename Block>
struct QuantTiles {
    static constexpr int kMaxRows = D::kMaxRows;
    template <int R, int P>
    static void run(const TileInput& in, int part, float* out) {
        quantTile<V, D, Block, R, P>(in, part, out);
    }
};

// The tiles of one weight type, of any height up to maxRows. They write out[r * 16 + lane].
struct TileKind {
    void (*run)(int rows, const TileInput& in, float* out);
    int maxRows;
};
constexpr int kMostRows = 8;  // for any type

template <typename V, typename Tiles>
struct TileHeights {
    static constexpr int kParts = int(kPanel) / V::kWidth;
    static constexpr int kMaxRows = Tiles::kMaxRows;

    // A single row multiplies the whole panel in one pass, as it arrives from memory. Several rows
    // multiply it vector by vector from the cache, which leaves registers for their sums.
    template <int R>
    static void tile(const TileInput& in, float* out) {
        if constexpr (R == 1) {
            Tiles::template run<1, kParts>(in, 0, out);
        } else {
            for (int part = 0; part < kParts; ++part) Tiles::template run<R, 1>(in, part, out);
        }
    }

    // Heights above the limit are never used, and must not be compiled.
    template <int R>
    static constexpr int kHeight = R <= kMaxRows ? R : 1;

    static void run(int rows, const TileInput& in, float* out) {
        static_assert(kMaxRows >= 2 && kMaxRows <= kMostRows);
        switch (rows) {
            case 1:
                return tile<1>(in, out);
            case 2:
                return tile<2>(in, out);
            case 3:
                return tile<kHeight<3>>(in, out);
            case 4:
                return tile<kHeight<4>>(in, out);
            case 5:
                return tile<kHeight<5>>(in, out);
            case 6:
                return tile<kHeight<6>>(in, out);
            case 7:
                return tile<kHeight<7>>(in, out);
            case 8:
                return tile<kHeight<8>>(in, out);
        }
    }
    static constexpr TileKind kKind = {run, kMaxRows};
};

// Calls body(panel, first row, rows) for all tiles. Order: portions of rows that stay in the
// second-level cache, then panels, then tiles of nearly equal height.
template <typename Body>
void eachTile(int64_t firstPanel, int64_t lastPanel, int64_t rows, int64_t rowBytes, int maxRows,
              Body body) {
    const int64_t fitting = kPortionBytes / rowBytes / maxRows * maxRows;
    const int64_t portion = fitting > maxRows ? fitting : maxRows;
    for (int64_t begin = 0; begin < rows; begin += portion) {
        const int64_t end = begin + portion < rows ? begin + portion : rows;
        const int64_t tiles = (end - begin + maxRows - 1) / maxRows;
        for (int64_t p = firstPanel; p < lastPanel; ++p) {
            for (int64_t t = 0, row = begin; t < tiles; ++t) {
                const int64_t height = (end - row + tiles - t - 1) / (tiles - t);
                body(p, row, int(height));
                row += height;
            }
        }
    }
}

inline size_t outputBytes(int64_t panel, int64_t outRows) {
    const int64_t left = outRows - panel * kPanel;
    return size_t(left < kPanel ? left : kPanel) * sizeof(float);
}

// The entries of KernelSet.
template <typename V, typename D>
struct MatmulOps {
    static TileKind tilesOf(DType type) {
        switch (type) {
            case DType::F32:
                return TileHeights<V, PlainTiles<V, PlainF32>>::kKind;
            case DType::F16:
                return TileHeights<V, PlainTiles<V, PlainF16>>::kKind;
            case DType::BF16:
                return TileHeights<V, PlainTiles<V, PlainBf16>>::kKind;
            case DType::Q8_0:
                return quantTiles<PackedQ8>();
            case DType::Q4_0:
                return quantTiles<PackedQ4>();
            case DType::Q4_1:
                return quantTiles<PackedQ41>();
            case DType::Q5_0:
                return quantTiles<PackedQ5>();
            case DType::Q5_1:
                return quantTiles<PackedQ51>();
            case DType::Q4_K:
                return quantTiles<PackedQ4K>();
            case DType::Q5_K:
                return quantTiles<PackedQ5K>();
            case DType::Q6_K:
                return quantTiles<PackedQ6K>();
            case DType::MXFP4:
                return quantTiles<PackedMx4>();
        }
        return {};
    }

    static void matmul(DType type, const std::byte* packed, int64_t outRows, int64_t cols,
                       int64_t first, int64_t last, const std::byte* x, int64_t rows, float* y,
                       int64_t ldy) {
        const TileKind tiles = tilesOf(type);
        const int64_t size = panelBytes(type, cols);
        const int64_t rowBytes = inputRowBytes(type, cols);
        eachTile(first, last, rows, rowBytes, tiles.maxRows, [&](int64_t p, int64_t row, int n) {
            alignas(64) float out[kMostRows * kPanel];
            tiles.run(n, {packed + p * size, paddedCols(cols), x + row * rowBytes, rowBytes}, out);
            for (int r = 0; r < n; ++r) {
                __builtin_memcpy(y + (row + r) * ldy + p * kPanel, out + r * kPanel,
                                 outputBytes(p, outRows));
            }
        });
    }

    static void gateUp(DType type1, const std::byte* w1, DType type3, const std::byte* w3,
                       int64_t outRows, int64_t cols, int64_t first, int64_t last,
                       const std::byte* x, int64_t rows, float* h, int64_t ldh) {
        const TileKind tiles1 = tilesOf(type1), tiles3 = tilesOf(type3);
        const int64_t size1 = panelBytes(type1, cols), size3 = panelBytes(type3, cols);
        const int64_t rowBytes = inputRowBytes(type1, cols);
        const int maxRows = tiles1.maxRows < tiles3.maxRows ? tiles1.maxRows : tiles3.maxRows;
        eachTile(first, last, rows, rowBytes, maxRows, [&](int64_t p, int64_t row, int n) {
            alignas(64) float gate[kMostRows * kPanel];
            alignas(64) float up[kMostRows * kPanel];
            TileInput in = {w1 + p * size1, paddedCols(cols), x + row * rowBytes, rowBytes};
            tiles1.run(n, in, gate);
            in.panel = w3 + p * size3;
            tiles3.run(n, in, up);
            for (int r = 0; r < n; ++r) {
                for (int64_t lane = 0; lane < kPanel; lane += V::kWidth) {
                    const int64_t at = r * kPanel + lane;
                    V::store(gate + at, gated<V>(V::load(gate + at), V::load(up + at)));
                }
                __builtin_memcpy(h + (row + r) * ldh + p * kPanel, gate + r * kPanel,
                                 outputBytes(p, outRows));
            }
        });
    }

private:
    template <typename Block>
    static TileKind quantTiles() {
        return TileHeights<V, QuantTiles<V, D, Block>>::kKind;
    }
};

}  // namespace
}  // namespace colibri
