// SPDX-License-Identifier: Apache-2.0
// Private: attention over paged KV for any vector class V, in two passes: scores and softmax, then
// the weighted sum of values. Each pass visits a page once: all query heads of the group use it
// while it is in the first-level cache. Heads are processed in groups of four, two and one that
// share the loads. The arithmetic of a head is the same in each group.
#pragma once

#include <type_traits>

#include "kernels/simd/ops.h"

namespace colibri {
namespace {

// Rows of K or V of one page.
template <typename V, KvType Type>
struct KvRows {
    using F = typename V::F;
    using Element = std::conditional_t<Type == KvType::F32, float,
                                       std::conditional_t<Type == KvType::F16, uint16_t, int8_t>>;
    const Element* base;
    int64_t dim;
    const float* scales;  // of Q8

    // The rows of K (half 0) or V (half 1) of a page, starting at row `slot`.
    static KvRows at(const void* page, int64_t half, int64_t slot, int64_t dim) {
        const auto* start = static_cast<const std::byte*>(page) + half * kvRowsBytes(Type, dim);
        KvRows rows{reinterpret_cast<const Element*>(start) + slot * dim, dim, nullptr};
        if constexpr (Type == KvType::Q8) {
            rows.scales =
                reinterpret_cast<const float*>(start + kPageTokens * dim) + slot * kvScales(dim);
        }
        return rows;
    }
    F load(int64_t row, int64_t d) const {
        const Element* p = base + row * dim + d;
        if constexpr (Type == KvType::F32) return V::load(p);
        if constexpr (Type == KvType::F16) return V::loadF16(p);
        if constexpr (Type == KvType::Q8) return V::mul(V::loadI8(p), scale(row, d));
    }
    F loadPart(int64_t row, int64_t d, int64_t n) const {
        const Element* p = base + row * dim + d;
        if constexpr (Type == KvType::F32) return V::loadPart(p, n);
        if constexpr (Type == KvType::F16) return V::loadF16Part(p, n);
        if constexpr (Type == KvType::Q8) return V::mul(V::loadI8Part(p, n), scale(row, d));
    }
    // Prefetches into the second-level cache, because the current page fills the first level.
    void prefetch(int64_t row) const {
        const auto* bytes = reinterpret_cast<const char*>(base + row * dim);
        for (int64_t i = 0; i < dim * int64_t(sizeof(Element)); i += 64) {
            __builtin_prefetch(bytes + i, 0, 2);
        }
        if constexpr (Type == KvType::Q8) __builtin_prefetch(scales + row * kvScales(dim), 0, 2);
    }

private:
    // All values of a vector have the same scale.
    F scale(int64_t row, int64_t d) const {
        static_assert(kBlock % V::kWidth == 0);
        return V::set1(scales[row * kvScales(dim) + d / kBlock]);
    }
};

template <typename V, KvType Type>
struct Attention {
    using F = typename V::F;
    using Rows = KvRows<V, Type>;
    static constexpr int64_t kWidth = V::kWidth;
    static constexpr int64_t kSquare = kWidth * kWidth;

    // The visible positions [first, first + count) of one page, and the next page. Pages can be
    // anywhere in memory, so the hardware prefetcher cannot predict the next one.
    struct Span {
        int64_t first, count;
        Rows rows;  // row 0 is position `first`
        Rows next;  // null after the last page
    };

    // half 0: K, half 1: V.
    static Span spanAt(const AttentionArgs& args, int64_t t, int64_t half) {
        const int64_t page = t / kPageTokens;
        const int64_t slot = t % kPageTokens;
        const int64_t part = args.latentDim > 0 ? 0 : half;
        Span span;
        span.first = t;
        span.count = lesser(kPageTokens - slot, args.end - t);
        span.rows = Rows::at(args.pages[page], part, slot, args.headDim);
        span.next = {};
        if ((page + 1) * kPageTokens < args.end) {
            span.next = Rows::at(args.pages[page + 1], part, 0, args.headDim);
        }
        return span;
    }

    // Sums of q . k by lane, for H heads (rows of q) and J positions of the span starting at `t`.
    template <int H, int J>
    static void dots(const float* q, const Rows& rows, int64_t t, float (&sums)[H][kSquare]) {
        const int64_t dim = rows.dim;
        const int64_t first = t % kWidth;
        F acc[H][J];
        for (int h = 0; h < H; ++h) {
            for (int j = 0; j < J; ++j) acc[h][j] = V::zero();
        }
        int64_t d = 0;
        for (; d + kWidth <= dim; d += kWidth) {
            for (int j = 0; j < J; ++j) {
                const F k = rows.load(t + j, d);
                for (int h = 0; h < H; ++h) {
                    acc[h][j] = V::fma(V::load(q + h * dim + d), k, acc[h][j]);
                }
            }
        }
        if (d < dim) {
            for (int j = 0; j < J; ++j) {
                const F k = rows.loadPart(t + j, d, dim - d);
                for (int h = 0; h < H; ++h) {
                    acc[h][j] = V::fma(V::loadPart(q + h * dim + d, dim - d), k, acc[h][j]);
                }
            }
        }
        for (int h = 0; h < H; ++h) {
            for (int j = 0; j < J; ++j) V::store(sums[h] + (first + j) * kWidth, acc[h][j]);
        }
    }

    // scratch[head][t - begin] = scale * q . k for H heads starting at `head`, over one span.
    template <int H>
    static void scores(const AttentionArgs& args, int head, const Span& span) {
        constexpr int kTogether = 4 / H;
        const int64_t n = args.end - args.begin;
        const float* q = args.q + head * args.headDim;
        // Processes kWidth positions at a time, so that their lane sums are reduced together.
        alignas(64) float sums[H][kSquare] = {};
        for (int64_t t = 0; t < span.count; t += kWidth) {
            const int64_t end = lesser(t + kWidth, span.count);
            // Prefetches row by row, because a burst would delay the loads that are needed now.
            const bool ahead = head == 0 && span.next.base;
            int64_t j = t;
            for (; j + kTogether <= end; j += kTogether) {
                if (ahead) {
                    for (int64_t i = 0; i < kTogether; ++i) span.next.prefetch(j + i);
                }
                dots<H, kTogether>(q, span.rows, j, sums);
            }
            for (; j < end; ++j) dots<H, 1>(q, span.rows, j, sums);
            for (int h = 0; h < H; ++h) {
                const F s = V::mul(V::rowSums(sums[h]), V::set1(args.scale));
                float* to = args.scratch + (head + h) * n + span.first - args.begin + t;
                V::storePart(to, s, end - t);
            }
        }
    }

    // out[head][d ..] += weights * values over one span, for H heads and C vectors, the last with
    // `tail` lanes.
    template <int H, int C>
    static void values(const AttentionArgs& args, int head, const Span& span, int64_t d,
                       int64_t tail) {
        const int64_t n = args.end - args.begin;
        const float* p = args.scratch + head * n + span.first - args.begin;
        const int64_t width = args.valueDim();
        float* out = args.out + head * width + d;
        const bool ahead = head == 0 && d == 0 && span.next.base;
        F acc[H][C];
        for (int h = 0; h < H; ++h) {
            for (int c = 0; c < C; ++c) {
                acc[h][c] = V::loadPart(out + h * width + c * kWidth, c + 1 < C ? kWidth : tail);
            }
        }
        for (int64_t t = 0; t < span.count; ++t) {
            if (ahead) span.next.prefetch(t);
#pragma GCC unroll 8
            for (int c = 0; c < C; ++c) {
                const int64_t at = d + c * kWidth;
                const F v = c + 1 < C || tail == kWidth ? span.rows.load(t, at)
                                                        : span.rows.loadPart(t, at, tail);
#pragma GCC unroll 4
                for (int h = 0; h < H; ++h) {
                    acc[h][c] = V::fma(V::set1(p[h * n + t]), v, acc[h][c]);
                }
            }
        }
        for (int h = 0; h < H; ++h) {
            for (int c = 0; c < C; ++c) {
                V::storePart(out + h * width + c * kWidth, acc[h][c], c + 1 < C ? kWidth : tail);
            }
        }
    }

    template <int H>
    static void allValues(const AttentionArgs& args, int head, const Span& span) {
        constexpr int64_t kMost = H == 1 ? 8 : 4;
        for (int64_t d = 0; d < args.valueDim();) {
            const int64_t left = args.valueDim() - d;
            if (left >= kMost * kWidth) {
                values<H, kMost>(args, head, span, d, kWidth);
                d += kMost * kWidth;
            } else if (left > kWidth) {
                values<H, 2>(args, head, span, d, lesser(kWidth, left - kWidth));
                d += 2 * kWidth;
            } else {
                values<H, 1>(args, head, span, d, left);
                d += kWidth;
            }
        }
    }

    // Turns the scores of one head into weights that sum to 1 minus the sink's share.
    static void normalise(const AttentionArgs& args, int head) {
        const int64_t n = args.end - args.begin;
        float* s = args.scratch + head * n;
        float top = RowOps<V>::largestOf(s, n);
        const float* sink = args.sinks ? args.sinks + head : nullptr;
        if (sink && *sink > top) top = *sink;
        float sum = RowOps<V>::exponentiate(s, n, top);
        if (sink) sum += ::expf(*sink - top);
        RowOps<V>::multiply(s, n, 1.0f / sum);
    }

    static void run(const AttentionArgs& args) {
        for (int64_t t = args.begin; t < args.end;) {
            const Span span = spanAt(args, t, 0);
            int head = 0;
            for (; head + 4 <= args.heads; head += 4) scores<4>(args, head, span);
            for (; head + 2 <= args.heads; head += 2) scores<2>(args, head, span);
            if (head < args.heads) scores<1>(args, head, span);
            t += span.count;
        }
        for (int head = 0; head < args.heads; ++head) normalise(args, head);
        __builtin_memset(args.out, 0, size_t(args.heads * args.valueDim()) * sizeof(float));
        for (int64_t t = args.begin; t < args.end;) {
            const Span span = spanAt(args, t, 1);
            int head = 0;
            for (; head + 4 <= args.heads; head += 4) allValues<4>(args, head, span);
            for (; head + 2 <= args.heads; head += 2) allValues<2>(args, head, span);
            if (head < args.heads) allValues<1>(args, head, span);
            t += span.count;
        }
    }
};

template <typename V>
void attentionOf(const AttentionArgs& args) {
    switch (args.kvType) {
        case KvType::F32:
            return Attention<V, KvType::F32>::run(args);
        case KvType::F16:
            return Attention<V, KvType::F16>::run(args);
        case KvType::Q8:
            return Attention<V, KvType::Q8>::run(args);
    }
}

}  // namespace
}  // namespace colibri
