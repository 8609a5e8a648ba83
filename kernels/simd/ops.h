// SPDX-License-Identifier: Apache-2.0
// Private: row operations for any vector class V. Tails are masked vectors, so that the arithmetic
// of a value does not depend on the end of the row. Function templates of the standard library must
// not be used here: the linker could choose a copy compiled for this instruction set for other
// files.
#pragma once

#include <cmath>
#include <cstdint>

#include "kernels/scalar/scalar.h"
#include "kernels/simd/math.h"

namespace colibri {
namespace {

inline int64_t lesser(int64_t a, int64_t b) {
    return a < b ? a : b;
}

template <typename V>
struct RowOps {
    using F = typename V::F;
    static constexpr int64_t kWidth = V::kWidth;

    static void quantiseBlock(const float* x, Q8Block& out) {
        const uint32_t bits = V::magnitudeBits(x);
        float largest;
        __builtin_memcpy(&largest, &bits, sizeof largest);
        out = Q8Block{};
        if (bits >= 0x7f800000u) {
            out.scale = __builtin_nanf("");  // makes every product NaN
            return;
        }
        if (largest < scalar::kVanishing) return;
        out.scale = largest / 127.0f;
        V::quantise(x, 127.0f / largest, out.q, out.sums);
    }

    static void prepareInput(DType weights, const float* x, int64_t ldx, int64_t rows, int64_t cols,
                             std::byte* out) {
        if (!usesQuantisedInput(weights)) {
            scalar::prepareInput(weights, x, ldx, rows, cols, out);
            return;
        }
        auto* block = reinterpret_cast<Q8Block*>(out);
        for (int64_t r = 0; r < rows; ++r) {
            const float* row = x + r * ldx;
            int64_t k = 0;
            for (; k + kBlock <= cols; k += kBlock) quantiseBlock(row + k, *block++);
            if (k < cols) {
                float last[kBlock] = {};
                __builtin_memcpy(last, row + k, size_t(cols - k) * sizeof(float));
                quantiseBlock(last, *block++);
            }
        }
    }

    static void rmsNorm(const float* x, const float* w, int64_t n, float eps, float* out) {
        typename V::Doubles squares = V::zeroDoubles();
        int64_t i = 0;
        for (; i + kWidth <= n; i += kWidth) squares = V::addSquares(squares, V::load(x + i));
        if (i < n) squares = V::addSquares(squares, V::loadPart(x + i, n - i));
        const double mean = V::sum(squares) / double(n) + double(eps);
        const F inverse = V::set1(float(1.0 / __builtin_sqrt(mean)));
        for (i = 0; i + kWidth <= n; i += kWidth) {
            V::store(out + i, V::mul(V::mul(V::load(x + i), inverse), V::load(w + i)));
        }
        if (i < n) {
            const F v = V::mul(V::loadPart(x + i, n - i), inverse);
            V::storePart(out + i, V::mul(v, V::loadPart(w + i, n - i)), n - i);
        }
    }

    // Rotates n pairs (i, i + half).
    static void rotateHalves(float* a, float* b, const float* cosSin, int64_t n) {
        const int64_t second = 2 * n - kWidth;
        const F low = V::loadPart(cosSin, lesser(2 * n, kWidth));
        const F high = second > 0 ? V::loadPart(cosSin + kWidth, second) : V::zero();
        F c, s;
        V::deinterleave(low, high, c, s);
        const F va = V::loadPart(a, n);
        const F vb = V::loadPart(b, n);
        V::storePart(a, V::negatedFma(vb, s, V::mul(va, c)), n);
        V::storePart(b, V::fma(vb, c, V::mul(va, s)), n);
    }

    static void rope(float* head, int rotaryDim, const float* cosSin, bool interleaved) {
        const int64_t half = rotaryDim / 2;
        if (!interleaved) {
            for (int64_t i = 0; i < half; i += kWidth) {
                rotateHalves(head + i, head + half + i, cosSin + 2 * i, lesser(kWidth, half - i));
            }
            return;
        }
        for (int64_t i = 0; i < 2 * half; i += kWidth) {
            const int64_t n = lesser(kWidth, 2 * half - i);
            const F v = V::loadPart(head + i, n);
            const F cs = V::loadPart(cosSin + i, n);
            const F crossed = V::mul(V::swapPairs(v), V::oddTwice(cs));
            V::storePart(head + i, V::fmaAddSub(v, V::evenTwice(cs), crossed), n);
        }
    }

    static float largestOf(const float* x, int64_t n) {
        F top = V::set1(-__builtin_inff());
        int64_t i = 0;
        for (; i + kWidth <= n; i += kWidth) top = V::max(top, V::load(x + i));
        float largest = V::largest(top);
        for (; i < n; ++i) largest = x[i] > largest ? x[i] : largest;
        return largest;
    }

    // Replaces x by exp(x - top) and returns the sum. REQUIRES: top >= max(x).
    static float exponentiate(float* x, int64_t n, float top) {
        const F shift = V::set1(-top);
        F sums[4] = {V::zero(), V::zero(), V::zero(), V::zero()};
        for (int64_t i = 0; i < n; i += kWidth) {
            const int64_t count = lesser(kWidth, n - i);
            const F e = expOf<V>(V::add(V::loadPart(x + i, count), shift));
            V::storePart(x + i, e, count);
            // Reloaded with a mask, because the lanes past the end hold exp(-top), not zero.
            F& sum = sums[i / kWidth % 4];
            sum = V::add(sum, count == kWidth ? e : V::loadPart(x + i, count));
        }
        return V::sum(V::add(V::add(sums[0], sums[1]), V::add(sums[2], sums[3])));
    }

    static void multiply(float* x, int64_t n, float by) {
        const F factor = V::set1(by);
        int64_t i = 0;
        for (; i + kWidth <= n; i += kWidth) V::store(x + i, V::mul(V::load(x + i), factor));
        if (i < n) V::storePart(x + i, V::mul(V::loadPart(x + i, n - i), factor), n - i);
    }

    static void softmax(float* x, int64_t n) {
        multiply(x, n, 1.0f / exponentiate(x, n, largestOf(x, n)));
    }

    static void axpy(float* y, float a, const float* x, int64_t n) {
        const F factor = V::set1(a);
        int64_t i = 0;
        for (; i + kWidth <= n; i += kWidth) {
            V::store(y + i, V::fma(factor, V::load(x + i), V::load(y + i)));
        }
        if (i < n) {
            const int64_t left = n - i;
            V::storePart(y + i, V::fma(factor, V::loadPart(x + i, left), V::loadPart(y + i, left)),
                         left);
        }
    }

    static float dot(const float* a, const float* b, int64_t n) {
        F sums[4] = {V::zero(), V::zero(), V::zero(), V::zero()};
        int64_t i = 0;
        for (; i + 4 * kWidth <= n; i += 4 * kWidth) {
#pragma GCC unroll 4
            for (int64_t j = 0; j < 4; ++j) {
                const int64_t at = i + j * kWidth;
                sums[j] = V::fma(V::load(a + at), V::load(b + at), sums[j]);
            }
        }
        for (; i < n; i += kWidth) {
            const int64_t count = lesser(kWidth, n - i);
            sums[0] = V::fma(V::loadPart(a + i, count), V::loadPart(b + i, count), sums[0]);
        }
        return V::sum(V::add(V::add(sums[0], sums[1]), V::add(sums[2], sums[3])));
    }

    static void toF16(const float* x, int64_t n, uint16_t* out) {
        int64_t i = 0;
        for (; i + kWidth <= n; i += kWidth) V::storeF16(out + i, V::load(x + i));
        if (i < n) V::storeF16Part(out + i, V::loadPart(x + i, n - i), n - i);
    }

    static void fromF16(const uint16_t* x, int64_t n, float* out) {
        int64_t i = 0;
        for (; i + kWidth <= n; i += kWidth) V::store(out + i, V::loadF16(x + i));
        if (i < n) V::storePart(out + i, V::loadF16Part(x + i, n - i), n - i);
    }
};

}  // namespace
}  // namespace colibri
