// SPDX-License-Identifier: GPL-3.0-or-later
// Row operations of all sets compared with double precision, with all tails.
#include <QtTest>
#include <algorithm>
#include <numeric>

#include "tests/kernels/kernel_sets.h"

using namespace colibri;

namespace {

constexpr float kCanary = -123.25f;

std::vector<int64_t> lengths() {
    std::vector<int64_t> out(70);
    std::iota(out.begin(), out.end(), 1);
    for (int64_t n : {128, 500, 2048, 2049}) out.push_back(n);
    return out;
}

std::vector<int> topKReference(const std::vector<float>& scores, int k) {
    std::vector<int> order(scores.size());
    std::iota(order.begin(), order.end(), 0);
    std::stable_sort(order.begin(), order.end(), [&scores](int a, int b) {
        const float x = scores[size_t(a)];
        const float y = scores[size_t(b)];
        return std::isnan(y) ? !std::isnan(x) : x > y;
    });
    order.resize(size_t(std::min<int>(k, int(order.size()))));
    return order;
}

}  // namespace

class TestKernelOps : public QObject {
    Q_OBJECT

private slots:
    void rmsNorm() {
        for (const NamedSet& set : allKernelSets()) {
            for (int64_t n : lengths()) {
                for (float scale : {1e-3f, 1.0f, 1e25f}) checkRmsNorm(set, n, scale);
            }
        }
    }

    void rope() {
        for (const NamedSet& set : allKernelSets()) {
            for (int dim = 2; dim <= 130; dim += 2) {
                checkRope(set, dim, false);
                checkRope(set, dim, true);
            }
        }
    }

    void softmax() {
        for (const NamedSet& set : allKernelSets()) {
            for (int64_t n : lengths()) {
                std::vector<float> x = randomFloats(n + 1, uint32_t(n), 20.0f);
                x[size_t(n)] = kCanary;
                if (n > 3) x[2] = -INFINITY;
                if (n > 4) x[1] = 3000.0f, x[3] = 2999.0f, x[4] = -3000.0f;
                checkSoftmax(set, x, n);
            }
        }
    }

    // The exponential itself: arguments from 0 down to where the result is 0.
    void softmaxAccuracy() {
        std::vector<float> x = {0.0f};
        for (float v = 0.0f; v > -110.0f; v -= 0.0037f) x.push_back(v);
        x.push_back(kCanary);
        for (const NamedSet& set : allKernelSets()) checkSoftmax(set, x, int64_t(x.size()) - 1);
    }

    void softmaxOfNothing() {
        for (const NamedSet& set : allKernelSets()) {
            float x = kCanary;
            set.kernels->softmax(&x, 0);
            QCOMPARE(x, kCanary);
        }
    }

    void axpyAndDot() {
        for (const NamedSet& set : allKernelSets()) {
            for (int64_t n : lengths()) {
                const std::vector<float> x = randomFloats(n, uint32_t(n));
                std::vector<float> y = randomFloats(n + 1, uint32_t(n) + 1);
                y[size_t(n)] = kCanary;
                const std::vector<float> before = y;
                double sum = 0.0;
                double norm = 0.0;
                for (size_t i = 0; i < size_t(n); ++i) {
                    sum += double(x[i]) * y[i];
                    norm += std::fabs(double(x[i]) * y[i]);
                }
                const float dot = set.kernels->dot(x.data(), y.data(), n);
                QVERIFY(std::fabs(dot - sum) <= double(n + 1) * kEpsilon * norm);
                set.kernels->axpy(y.data(), -0.7f, x.data(), n);
                for (size_t i = 0; i < size_t(n); ++i) {
                    const double expected = double(before[i]) + double(-0.7f) * x[i];
                    const double norms = std::fabs(before[i]) + std::fabs(x[i]);
                    QVERIFY(std::fabs(y[i] - expected) <= 2 * kEpsilon * norms);
                }
                QCOMPARE(y[size_t(n)], kCanary);
            }
            QCOMPARE(set.kernels->dot(nullptr, nullptr, 0), 0.0f);
        }
    }

    void quantisedInputIsTheSameInEverySet() {
        for (int64_t cols : {1, 5, 31, 32, 33, 64, 100, 519}) {
            const int64_t rows = 6, ldx = cols + 3;
            std::vector<float> x = randomFloats(rows * ldx, uint32_t(cols), 3.0f);
            for (int64_t i = 0; i < cols; ++i) {
                x[size_t(ldx + i)] = 0.0f;
                x[size_t(2 * ldx + i)] *= 1e-39f;
                x[size_t(3 * ldx + i)] *= 1e37f;
            }
            x[size_t(4 * ldx + cols - 1)] = NAN;
            x[size_t(5 * ldx)] = -INFINITY;
            const size_t bytes = size_t(inputRowBytes(DType::Q4_0, cols) * rows);
            std::vector<std::byte> reference(bytes);
            scalarKernels().prepareInput(DType::Q4_0, x.data(), ldx, rows, cols, reference.data());
            checkQuantised(x, ldx, rows, cols, reference);
            for (const NamedSet& set : allKernelSets()) {
                for (DType type : {DType::Q8_0, DType::Q4_0}) {
                    std::vector<std::byte> out(bytes + 1, std::byte(0x3c));
                    set.kernels->prepareInput(type, x.data(), ldx, rows, cols, out.data());
                    QVERIFY2(std::memcmp(out.data(), reference.data(), bytes) == 0,
                             set.name.c_str());
                    QVERIFY(out.back() == std::byte(0x3c));
                }
            }
        }
    }

    void plainInputIsPadded() {
        const int64_t cols = 40, rows = 3, ldx = 44;
        const std::vector<float> x = randomFloats(rows * ldx, 4);
        for (const NamedSet& set : allKernelSets()) {
            for (DType type : {DType::F32, DType::F16, DType::BF16}) {
                QCOMPARE(inputRowBytes(type, cols), int64_t(64 * sizeof(float)));
                std::vector<float> out(size_t(rows * 64), kCanary);
                set.kernels->prepareInput(type, x.data(), ldx, rows, cols,
                                          reinterpret_cast<std::byte*>(out.data()));
                for (int64_t r = 0; r < rows; ++r) {
                    for (int64_t k = 0; k < 64; ++k) {
                        QCOMPARE(out[size_t(r * 64 + k)], k < cols ? x[size_t(r * ldx + k)] : 0.0f);
                    }
                }
            }
        }
    }

    void topKTies() {
        const std::vector<float> scores = {1, 3, NAN, 3, 2, -INFINITY, 3, NAN, -0.0f, 0.0f};
        for (int k = 0; k <= 12; ++k) {
            std::vector<int> got(12, -1);
            topK(scores.data(), int(scores.size()), k, got.data());
            std::vector<int> expected = topKReference(scores, k);
            expected.resize(12, -1);
            QVERIFY(got == expected);
        }
        std::vector<int> first(4);
        topK(scores.data(), int(scores.size()), 4, first.data());
        QVERIFY((first == std::vector<int>{1, 3, 6, 4}));
    }

    void topKRandom() {
        std::mt19937 random(17);
        for (int round = 0; round < 2000; ++round) {
            std::vector<float> scores(1 + random() % 300);
            for (float& s : scores) s = random() % 50 == 0 ? NAN : float(random() % 40) - 20;
            const int k = int(random() % 20);
            std::vector<int> got(size_t(std::min<int>(k, int(scores.size()))));
            topK(scores.data(), int(scores.size()), k, got.data());
            QVERIFY(got == topKReference(scores, k));
        }
    }

private:
    static void checkRmsNorm(const NamedSet& set, int64_t n, float scale) {
        std::vector<float> x = randomFloats(n, uint32_t(n), scale);
        const std::vector<float> w = randomFloats(n, uint32_t(n) + 1);
        const float eps = 1e-6f;
        std::vector<float> out(size_t(n) + 1, kCanary);
        set.kernels->rmsNorm(x.data(), w.data(), n, eps, out.data());
        double sum = 0.0;
        for (float v : x) sum += double(v) * v;
        const double inverse = 1.0 / std::sqrt(sum / double(n) + double(eps));
        for (size_t i = 0; i < size_t(n); ++i) {
            const double expected = x[i] * inverse * w[i];
            QVERIFY2(std::fabs(out[i] - expected) <= 4 * kEpsilon * std::fabs(expected) + 1e-43,
                     set.name.c_str());
        }
        QCOMPARE(out[size_t(n)], kCanary);
        set.kernels->rmsNorm(x.data(), w.data(), n, eps, x.data());
        QVERIFY(std::memcmp(x.data(), out.data(), size_t(n) * sizeof(float)) == 0);
    }

    static void checkRope(const NamedSet& set, int dim, bool interleaved) {
        std::vector<float> head = randomFloats(dim + 9, uint32_t(dim));
        const std::vector<float> before = head;
        std::vector<float> cosSin;
        for (int i = 0; i < dim / 2; ++i) {
            cosSin.push_back(std::cos(0.3f * float(i + 1)));
            cosSin.push_back(std::sin(0.3f * float(i + 1)));
        }
        set.kernels->rope(head.data(), dim, cosSin.data(), interleaved);
        for (int i = 0; i < dim / 2; ++i) {
            const size_t a = size_t(interleaved ? 2 * i : i);
            const size_t b = size_t(interleaved ? 2 * i + 1 : i + dim / 2);
            const double c = cosSin[size_t(2 * i)];
            const double s = cosSin[size_t(2 * i + 1)];
            const double bound = 3 * kEpsilon * (std::fabs(before[a]) + std::fabs(before[b]));
            QVERIFY2(std::fabs(head[a] - (before[a] * c - before[b] * s)) <= bound,
                     set.name.c_str());
            QVERIFY2(std::fabs(head[b] - (before[a] * s + before[b] * c)) <= bound,
                     set.name.c_str());
        }
        for (size_t i = size_t(dim); i < head.size(); ++i) QCOMPARE(head[i], before[i]);
    }

    static void checkSoftmax(const NamedSet& set, std::vector<float> x, int64_t n) {
        const float top = *std::max_element(x.begin(), x.begin() + n);
        std::vector<double> expected;
        double sum = 0.0;
        for (int64_t i = 0; i < n; ++i) {
            // The kernel computes this difference in f32.
            expected.push_back(std::exp(double(x[size_t(i)] - top)));
            sum += expected.back();
        }
        set.kernels->softmax(x.data(), n);
        for (int64_t i = 0; i < n; ++i) {
            const double e = expected[size_t(i)] / sum;
            const double bound = 3e-6 * e + 2e-44;
            QVERIFY2(std::fabs(x[size_t(i)] - e) <= bound + (e < 1e-36 ? 1e-37 : 0.0),
                     qPrintable(QString("%1: %2 of %3: %4, not %5")
                                    .arg(set.name.c_str())
                                    .arg(i)
                                    .arg(n)
                                    .arg(x[size_t(i)])
                                    .arg(e)));
        }
        QCOMPARE(x[size_t(n)], kCanary);
    }

    static void checkQuantised(const std::vector<float>& x, int64_t ldx, int64_t rows, int64_t cols,
                               const std::vector<std::byte>& prepared) {
        const auto* blocks = reinterpret_cast<const Q8Block*>(prepared.data());
        const int64_t perRow = paddedCols(cols) / kBlock;
        for (int64_t r = 0; r < rows; ++r) {
            for (int64_t b = 0; b < perRow; ++b) {
                const Q8Block& block = blocks[r * perRow + b];
                const int8_t* half = block.q + kBlock / 2;
                QCOMPARE(int(block.sums[0]), std::accumulate(block.q, half, 0));
                QCOMPARE(int(block.sums[1]), std::accumulate(half, block.q + kBlock, 0));
                if (std::isnan(block.scale)) {
                    QVERIFY((r == 4 && b == perRow - 1) || (r == 5 && b == 0));
                    continue;
                }
                for (int64_t j = 0; j < kBlock; ++j) {
                    const int64_t k = b * kBlock + j;
                    const float v = k < cols ? x[size_t(r * ldx + k)] : 0.0f;
                    const double error = std::fabs(double(block.q[j]) * block.scale - v);
                    QVERIFY(error <= 0.5001 * block.scale + 1e-36);
                }
            }
        }
    }
};

QTEST_GUILESS_MAIN(TestKernelOps)
#include "test_kernel_ops.moc"
