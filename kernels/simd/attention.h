// SPDX-License-Identifier: Apache-2.0
// Private: attention over paged KV for any vector class V, in two passes: scores and softmax, then
// the weighted sum of values. Query heads of a group go together in fours, twos and ones and share
// the loads of K and V; the arithmetic of a head is the same in each.
#pragma once

#include "kernels/simd/ops.h"

namespace colibri {
namespace {

template <typename V, bool Half>
struct KvRow {
    using Element = typename std::conditional<Half, uint16_t, float>::type;
    const Element* at;

    // Row of K (half 0) or V (half 1) of position t, headDim values.
    static KvRow of(const AttentionArgs& args, int64_t t, int64_t half) {
        const auto* page = static_cast<const Element*>(args.pages[t / kPageTokens]);
        return {page + (half * kPageTokens + t % kPageTokens) * args.headDim};
    }
    typename V::F load(int64_t d) const {
        if constexpr (Half) {
            return V::loadF16(at + d);
        } else {
            return V::load(at + d);
        }
    }
    typename V::F loadPart(int64_t d, int64_t n) const {
        if constexpr (Half) {
            return V::loadF16Part(at + d, n);
        } else {
            return V::loadPart(at + d, n);
        }
    }
};

template <typename V, bool Half>
struct Attention {
    using F = typename V::F;
    using Row = KvRow<V, Half>;
    static constexpr int64_t kWidth = V::kWidth;

    // scratch[head][t - begin] = scale * q . k for H heads from `head` on.
    template <int H>
    static void scores(const AttentionArgs& args, int head) {
        const int64_t n = args.end - args.begin;
        const int64_t dim = args.headDim;
        const float* q = args.q + head * dim;
        // kWidth positions at a time, so that their sums over lanes are taken together.
        alignas(64) float sums[H][kWidth * kWidth] = {};
        for (int64_t t = 0; t < n; t += kWidth) {
            const int64_t count = lesser(kWidth, n - t);
            for (int64_t j = 0; j < count; ++j) {
                const Row k = Row::of(args, args.begin + t + j, 0);
                F acc[H];
                for (int h = 0; h < H; ++h) acc[h] = V::zero();
                int64_t d = 0;
                for (; d + kWidth <= dim; d += kWidth) {
                    const F kv = k.load(d);
                    for (int h = 0; h < H; ++h) acc[h] = V::fma(V::load(q + h * dim + d), kv, acc[h]);
                }
                if (d < dim) {
                    const F kv = k.loadPart(d, dim - d);
                    for (int h = 0; h < H; ++h) {
                        acc[h] = V::fma(V::loadPart(q + h * dim + d, dim - d), kv, acc[h]);
                    }
                }
                for (int h = 0; h < H; ++h) V::store(sums[h] + j * kWidth, acc[h]);
            }
            for (int h = 0; h < H; ++h) {
                const F s = V::mul(V::rowSums(sums[h]), V::set1(args.scale));
                V::storePart(args.scratch + (head + h) * n + t, s, count);
            }
        }
    }

    // out[head][d ..] for H heads and C vectors of values, the last of them `tail` lanes wide.
    template <int H, int C>
    static void values(const AttentionArgs& args, int head, int64_t d, int64_t tail,
                       const float* inverse) {
        const int64_t n = args.end - args.begin;
        const float* p = args.scratch + head * n;
        F acc[H][C];
        for (int h = 0; h < H; ++h) {
            for (int c = 0; c < C; ++c) acc[h][c] = V::zero();
        }
        for (int64_t t = 0; t < n; ++t) {
            const Row v = Row::of(args, args.begin + t, 1);
#pragma GCC unroll 4
            for (int c = 0; c < C; ++c) {
                const F kv = c + 1 < C || tail == kWidth ? v.load(d + c * kWidth)
                                                         : v.loadPart(d + c * kWidth, tail);
#pragma GCC unroll 4
                for (int h = 0; h < H; ++h) {
                    acc[h][c] = V::fma(V::set1(p[h * n + t]), kv, acc[h][c]);
                }
            }
        }
        for (int h = 0; h < H; ++h) {
            for (int c = 0; c < C; ++c) {
                const F scaled = V::mul(acc[h][c], V::set1(inverse[h]));
                float* out = args.out + (head + h) * args.headDim + d + c * kWidth;
                V::storePart(out, scaled, c + 1 < C ? kWidth : tail);
            }
        }
    }

    template <int H>
    static void heads(const AttentionArgs& args, int head) {
        const int64_t n = args.end - args.begin;
        const int64_t dim = args.headDim;
        scores<H>(args, head);
        float inverse[H];
        for (int h = 0; h < H; ++h) {
            float* s = args.scratch + (head + h) * n;
            float top = RowOps<V>::largestOf(s, n);
            const float* sink = args.sinks ? args.sinks + head + h : nullptr;
            if (sink && *sink > top) top = *sink;
            float sum = RowOps<V>::exponentiate(s, n, top);
            if (sink) sum += ::expf(*sink - top);
            inverse[h] = n > 0 ? 1.0f / sum : 0.0f;
        }
        for (int64_t d = 0; d < dim;) {
            const int64_t left = dim - d;
            if (left >= 4 * kWidth) {
                values<H, 4>(args, head, d, kWidth, inverse);
                d += 4 * kWidth;
            } else if (left > kWidth) {
                values<H, 2>(args, head, d, lesser(kWidth, left - kWidth), inverse);
                d += 2 * kWidth;
            } else {
                values<H, 1>(args, head, d, left, inverse);
                d += kWidth;
            }
        }
    }

    static void run(const AttentionArgs& args) {
        int head = 0;
        for (; head + 4 <= args.heads; head += 4) heads<4>(args, head);
        if (head + 2 <= args.heads) {
            heads<2>(args, head);
            head += 2;
        }
        if (head < args.heads) heads<1>(args, head);
    }
};

template <typename V>
void attentionOf(const AttentionArgs& args) {
    if (args.kvF16) {
        Attention<V, true>::run(args);
    } else {
        Attention<V, false>::run(args);
    }
}

}  // namespace
}  // namespace colibri
