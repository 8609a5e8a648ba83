// SPDX-License-Identifier: Apache-2.0
// Private: integer dot products and scales of the packed blocks, for any vector class V and the
// integer operations D of its instruction set (avx2/dots.h lists them).
#pragma once

#include "kernels/layout.h"

namespace colibri {
namespace {

// The scales of part `split` of sub-block `sub`, for the lanes starting at `lane`.
template <typename V, typename Block>
typename V::F scaleOf(const Block& w, int, int, int lane) {
    return V::loadF16(w.scale + lane);
}
template <typename V>
typename V::F scaleOf(const PackedMx4& w, int, int, int lane) {
    return V::loadE8m0(w.scale + lane);
}
template <typename V, int High>
typename V::F scaleOf(const PackedSuper<High>& w, int sub, int, int lane) {
    return V::mul(V::loadF16(w.scale + lane), V::loadU8(w.subScale[sub] + lane));
}
template <typename V>
typename V::F scaleOf(const PackedQ6K& w, int sub, int split, int lane) {
    return V::mul(V::loadF16(w.scale + lane), V::loadI8(w.subScale[sub][split] + lane));
}

// The minimum, which is added to every value of sub-block `sub`.
template <typename V, int High>
typename V::F minOf(const PackedRaised<High>& w, int, int lane) {
    return V::loadF16(w.min + lane);
}
template <typename V, int High>
typename V::F minOf(const PackedSuper<High>& w, int sub, int lane) {
    return V::negate(V::mul(V::loadF16(w.min + lane), V::loadU8(w.subMin[sub] + lane)));
}

// Weights as unsigned numbers: the codes, or the table values at the codes.
template <typename D, typename Block>
struct Weights {
    using Ints = typename D::Ints;
    static constexpr int kLargest = (16 << Block::kHigh) - 1;

    // Columns 4 * G to 4 * G + 3, and 16 + 4 * G to 16 + 4 * G + 3; four per lane.
    template <int G>
    static void group(const Block& w, int sub, int part, Ints& low, Ints& high) {
        const auto& codes = w.codes[sub];
        const Ints both = D::load(codes.low[G], part);
        low = D::bits(both, 15);
        high = D::bits(D::template shiftRight<4>(both), 15);
        if constexpr (Block::kHigh > 0) {
            low = D::either(low, highBits<G>(codes, part));
            high = D::either(high, highBits<G + 4>(codes, part));
        }
    }

private:
    // The high bits of column group G, in position above the four low bits.
    template <int G, typename Codes>
    static Ints highBits(const Codes& codes, int part) {
        constexpr int kGroups = 8 / Block::kHigh;
        constexpr int kShift = G % kGroups * Block::kHigh - 4;
        const Ints plane = D::load(codes.high[G / kGroups], part);
        return D::bits(D::template shiftRight<kShift>(plane), ((1 << Block::kHigh) - 1) << 4);
    }
};

template <typename D>
struct Weights<D, PackedMx4> {
    using Ints = typename D::Ints;
    static constexpr int kLargest = 24;
    static constexpr int8_t kRaised[16] = {12, 13, 14, 15, 16, 18, 20, 24,
                                           12, 11, 10, 9,  8,  6,  4,  0};
    template <int G>
    static void group(const PackedMx4& w, int sub, int part, Ints& low, Ints& high) {
        const Ints both = D::load(w.codes[sub].low[G], part);
        low = D::pick(kRaised, D::bits(both, 15));
        high = D::pick(kRaised, D::bits(D::template shiftRight<4>(both), 15));
    }
};

// run: d[i][r] = the dot products of part i of a sub-block with x[r * stride], for one vector of
// lanes.
template <typename D, typename Block>
struct BlockDots {
    using Ints = typename D::Ints;
    static constexpr int kSplit = Block::kSplit;
    // 16-bit sums of pairs can hold all eight groups of a sub-block if weights are below 16,
    // otherwise four. If a sub-block is split, each sum holds half as many.
    static constexpr int kPair = 2 * 127 * Weights<D, Block>::kLargest;
    static constexpr bool kLong = 8 / kSplit * kPair < 32768;
    static_assert(4 / kSplit * kPair < 32768);

    template <int R>
    static void run(const Block& w, int sub, int part, const Q8Block* x, int64_t stride,
                    Ints (&d)[kSplit][R]) {
        Ints pairs[kSplit][R];
        for (int i = 0; i < kSplit; ++i) {
#pragma GCC unroll 8
            for (int r = 0; r < R; ++r) {
                const Q8Block& xr = x[r * stride];
                const int32_t sum = kSplit == 1 ? xr.sum() : xr.sums[i];
                d[i][r] = Block::kOffset ? D::all(-Block::kOffset * sum) : D::all(0);
                pairs[i][r] = D::all(0);
            }
        }
        step<0>(w, sub, part, x, stride, d, pairs);
        step<1>(w, sub, part, x, stride, d, pairs);
        step<2>(w, sub, part, x, stride, d, pairs);
        step<3>(w, sub, part, x, stride, d, pairs);
    }

private:
    template <int G, int R>
    static void step(const Block& w, int sub, int part, const Q8Block* x, int64_t stride,
                     Ints (&d)[kSplit][R], Ints (&pairs)[kSplit][R]) {
        Ints low, high;
        Weights<D, Block>::template group<G>(w, sub, part, low, high);
        constexpr int kLast = kSplit - 1;
#pragma GCC unroll 8
        for (int r = 0; r < R; ++r) {
            const Q8Block& xr = x[r * stride];
            if constexpr (D::kPairs) {
                pairs[0][r] = D::addPairs(pairs[0][r], low, D::quad(xr, G));
                pairs[kLast][r] = D::addPairs(pairs[kLast][r], high, D::quad(xr, G + 4));
            } else {
                d[0][r] = D::addQuads(d[0][r], low, D::quad(xr, G));
                d[kLast][r] = D::addQuads(d[kLast][r], high, D::quad(xr, G + 4));
            }
        }
        if constexpr (D::kPairs && (G == 3 || (G == 1 && !kLong))) {
            for (int i = 0; i < kSplit; ++i) {
#pragma GCC unroll 8
                for (int r = 0; r < R; ++r) {
                    d[i][r] = D::widen(d[i][r], pairs[i][r]);
                    pairs[i][r] = D::all(0);
                }
            }
        }
    }
};

template <typename D>
struct BlockDots<D, PackedQ8> {
    template <int R>
    static void run(const PackedQ8& w, int, int part, const Q8Block* x, int64_t stride,
                    typename D::Ints (&d)[1][R]) {
        D::template signedDots<R>(w, part, x, stride, d[0]);
    }
};

}  // namespace
}  // namespace colibri
