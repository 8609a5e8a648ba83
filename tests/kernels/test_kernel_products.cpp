// SPDX-License-Identifier: GPL-3.0-or-later
// Matrix products of all sets and types compared with double precision, and the guarantee that a
// result depends only on its own inputs.
#include <QtTest>

#include "kernels/block_values.h"
#include "tests/kernels/kernel_sets.h"
#include "tests/kernels/random_blocks.h"

using namespace colibri;

namespace {

// A packed random matrix and the values stored in it.
struct Matrix {
    DType type;
    int64_t rows, cols;
    std::vector<std::byte> packed;
    std::vector<float> values;  // (rows, cols)
    std::vector<float> terms;   // (rows, cols) |product of scale and code| + |minimum|
};

void readBack(Matrix& m) {
    m.values.resize(size_t(m.rows * m.cols));
    for (int64_t r = 0; r < m.rows; ++r) {
        unpackRow(m.type, m.packed.data(), m.cols, r, m.values.data() + r * m.cols);
    }
    m.terms = m.values;
    for (float& v : m.terms) v = std::fabs(v);
    withBlock(m.type, [&](auto* block) {
        using Block = std::remove_pointer_t<decltype(block)>;
        if constexpr (Block::kMin) {
            for (int64_t r = 0; r < m.rows; ++r) {
                const auto* w = reinterpret_cast<const Block*>(
                    m.packed.data() + r / kPanel * panelBytes(m.type, m.cols));
                for (int64_t k = 0; k < m.cols; ++k) {
                    const int64_t b = k / kBlock;
                    const float min = minAt(w[b / Block::kSubs], int(b % Block::kSubs), r % kPanel);
                    m.terms[size_t(r * m.cols + k)] += 2 * std::fabs(min);
                }
            }
        }
    });
}

// For types that this program cannot encode: random blocks, with columns rounded up to whole
// blocks.
Matrix makeMatrix(DType type, int64_t rows, int64_t cols, uint32_t seed, float scale = 0.3f) {
    const int64_t whole = hasEncoder(type) ? 1 : fileBlock(type).cols;
    Matrix m{type, rows, (cols + whole - 1) / whole * whole, {}, {}, {}};
    m.packed.resize(size_t(packedBytes(type, rows, m.cols)));
    if (hasEncoder(type)) {
        const std::vector<float> source = randomFloats(rows * cols, seed, scale);
        packRows(type, source.data(), rows, cols, m.packed.data());
    } else {
        const std::vector<std::byte> source = randomBlocks(type, rows, m.cols, seed);
        packGgmlRows(type, source.data(), rows, m.cols, m.packed.data());
    }
    readBack(m);
    return m;
}

std::vector<std::byte> prepare(const KernelSet& k, DType type, const std::vector<float>& x,
                               int64_t rows, int64_t cols) {
    std::vector<std::byte> out(size_t(inputRowBytes(type, cols) * rows));
    k.prepareInput(type, x.data(), cols, rows, cols, out.data());
    return out;
}

// The values of the prepared activations.
std::vector<double> meaning(DType type, const std::vector<std::byte>& x, int64_t rows,
                            int64_t cols) {
    std::vector<double> out;
    for (int64_t r = 0; r < rows; ++r) {
        const std::byte* row = x.data() + r * inputRowBytes(type, cols);
        for (int64_t k = 0; k < cols; ++k) {
            if (usesQuantisedInput(type)) {
                const Q8Block& b = reinterpret_cast<const Q8Block*>(row)[k / kBlock];
                out.push_back(double(b.scale) * b.q[k % kBlock]);
            } else {
                out.push_back(reinterpret_cast<const float*>(row)[k]);
            }
        }
    }
    return out;
}

struct Expected {
    double value;
    double bound;  // on the error of f32 arithmetic, computed from norms
};

Expected expectedProduct(const Matrix& m, int64_t out, const double* x) {
    double sum = 0.0;
    double norm = 0.0;
    for (int64_t k = 0; k < m.cols; ++k) {
        const double term = double(m.values[size_t(out * m.cols + k)]) * x[k];
        sum += term;
        norm += double(m.terms[size_t(out * m.cols + k)]) * std::fabs(x[k]);
    }
    // Integer dot products are exact within a common scale, half a block or a whole one. Then there
    // are one product of scales and one multiply-add for each, and one more for a minimum.
    const double steps =
        usesQuantisedInput(m.type) ? 2 * double(m.cols) / kBlock + 4 : double(m.cols);
    return {sum, (steps + 4) * kEpsilon * norm + 1e-37};
}

std::vector<float> product(const KernelSet& k, const Matrix& m, const std::vector<std::byte>& x,
                           int64_t rows) {
    std::vector<float> y(size_t(rows * m.rows), NAN);
    k.matmul(m.type, m.packed.data(), m.rows, m.cols, 0, panelCount(m.rows), x.data(), rows,
             y.data(), m.rows);
    return y;
}

void checkMatmul(const NamedSet& set, const Matrix& m, int64_t rows) {
    const std::vector<float> source = randomFloats(rows * m.cols, uint32_t(rows + m.cols));
    const std::vector<std::byte> x = prepare(*set.kernels, m.type, source, rows, m.cols);
    const std::vector<double> exact = meaning(m.type, x, rows, m.cols);
    const std::vector<float> y = product(*set.kernels, m, x, rows);
    for (int64_t r = 0; r < rows; ++r) {
        for (int64_t o = 0; o < m.rows; ++o) {
            const Expected e = expectedProduct(m, o, exact.data() + r * m.cols);
            const double error = std::fabs(double(y[size_t(r * m.rows + o)]) - e.value);
            QVERIFY2(error <= e.bound,
                     qPrintable(QString("%1 %2 %3x%4, %5 rows: output %6 of row %7 is off by %8")
                                    .arg(set.name.c_str(), dtypeName(m.type).data())
                                    .arg(m.rows)
                                    .arg(m.cols)
                                    .arg(rows)
                                    .arg(o)
                                    .arg(r)
                                    .arg(error)));
        }
    }
}

}  // namespace

class TestKernelProducts : public QObject {
    Q_OBJECT

private slots:
    void setsAreOffered() {
        QCOMPARE(int(availableIsas().front()), int(Isa::Scalar));
        for (Isa isa : availableIsas()) QCOMPARE(int(kernelsFor(isa).isa), int(isa));
        QCOMPARE(int(bestKernels().isa), int(availableIsas().back()));
    }

    void matmulAllShapes() {
        for (DType type : allTypes()) {
            for (int64_t outRows : {1, 15, 16, 17, 40, 499}) {
                for (int64_t cols : {1, 32, 33, 40, 64, 96, 100, 519}) {
                    if (fileBlock(type).cols > kBlock && cols > 1 && cols < 256) continue;
                    const Matrix m = makeMatrix(type, outRows, cols, uint32_t(outRows + cols));
                    for (const NamedSet& set : allKernelSets()) checkMatmul(set, m, 3);
                }
            }
        }
    }

    void matmulRowCounts() {
        for (DType type : allTypes()) {
            const Matrix m = makeMatrix(type, 40, 160, 5);
            for (const NamedSet& set : allKernelSets()) {
                for (int64_t rows = 1; rows <= 40; ++rows) checkMatmul(set, m, rows);
            }
        }
    }

    void resultsDependOnTheirInputsOnly() {
        const int64_t rows = 40, cols = 224, outRows = 75;
        const std::vector<float> source = randomFloats(rows * 2 * cols, 12);
        for (DType type : allTypes()) {
            const Matrix m = makeMatrix(type, outRows, cols, 13);
            const Matrix up = makeMatrix(type, outRows, cols, 14);
            for (const NamedSet& set : allKernelSets()) {
                const std::vector<std::byte> x = prepare(*set.kernels, type, source, rows, m.cols);
                checkSplits(*set.kernels, m, up, x, rows);
            }
        }
    }

    // More activations than fit into one cache level are processed in portions.
    void manyRowsEqualFew() {
        const int64_t rows = 301, cols = 1056, outRows = 24;
        const std::vector<float> source = randomFloats(rows * 2 * cols, 15);
        for (DType type : {DType::F16, DType::Q8_0, DType::Q4_0, DType::Q5_K, DType::Q6_K}) {
            const Matrix m = makeMatrix(type, outRows, cols, 16);
            const Matrix up = makeMatrix(type, outRows, cols, 17);
            for (const NamedSet& set : allKernelSets()) {
                if (set.kernels->isa == Isa::Scalar) continue;  // has no portions
                const std::vector<std::byte> x = prepare(*set.kernels, type, source, rows, m.cols);
                checkSplits(*set.kernels, m, up, x, rows);
            }
        }
    }

    // Integer dot products are exact, and the following operations are the same in all sets.
    void quantisedProductsAgreeBetweenSets() {
        const int64_t rows = 9, cols = 512, outRows = 48;
        const std::vector<float> source = randomFloats(rows * cols, 21);
        for (DType type : quantisedTypes()) {
            const Matrix m = makeMatrix(type, outRows, cols, 22);
            const std::vector<std::byte> x = prepare(scalarKernels(), type, source, rows, cols);
            const std::vector<float> y = product(scalarKernels(), m, x, rows);
            for (const NamedSet& set : allKernelSets()) {
                QVERIFY2(sameBits(product(*set.kernels, m, x, rows), y), set.name.c_str());
            }
        }
    }

    // The largest sums that the formats allow do not saturate.
    void extremeIntegers() {
        for (const bool negative : {false, true}) {
            for (DType type : quantisedTypes()) {
                const int64_t cols = 2 * fileBlock(type).cols;
                std::vector<std::byte> blocks;
                for (const int fill : {0x80, 0x7f, 0x00, 0xff, 0x88, 0x08}) {
                    blocks.insert(blocks.end(), size_t(2 * fileBlock(type).bytes), std::byte(fill));
                }
                setBlockScales(type, 1.0f, 1.0f, blocks);
                Matrix m{type, 6, cols, {}, {}, {}};
                m.packed.resize(size_t(packedBytes(type, m.rows, cols)));
                packGgmlRows(type, blocks.data(), m.rows, cols, m.packed.data());
                readBack(m);
                const std::vector<float> ones(size_t(cols), negative ? -1.0f : 1.0f);
                for (const NamedSet& set : allKernelSets()) {
                    const std::vector<std::byte> x = prepare(*set.kernels, type, ones, 1, cols);
                    const std::vector<double> exact = meaning(type, x, 1, cols);
                    const std::vector<float> y = product(*set.kernels, m, x, 1);
                    for (int64_t o = 0; o < m.rows; ++o) {
                        const Expected e = expectedProduct(m, o, exact.data());
                        QVERIFY2(std::fabs(y[size_t(o)] - e.value) <= e.bound, set.name.c_str());
                    }
                }
            }
        }
    }

    void gateUpAgainstDouble() {
        for (DType type : allTypes()) {
            for (const auto& [outRows, cols, rows] :
                 {std::tuple<int64_t, int64_t, int64_t>{40, 64, 1},
                  {40, 100, 7},
                  {499, 96, 3},
                  {16, 32, 21}}) {
                const Matrix gate = makeMatrix(type, outRows, cols, 31);
                const Matrix up = makeMatrix(type, outRows, cols, 32);
                for (const NamedSet& set : allKernelSets()) checkGateUp(set, gate, up, rows);
            }
        }
    }

    // The types of gate and up may differ.
    void gateUpOfMixedTypes() {
        const std::pair<DType, DType> pairs[] = {
            {DType::Q4_K, DType::Q6_K}, {DType::Q8_0, DType::MXFP4}, {DType::F32, DType::F16}};
        for (const auto& [type1, type3] : pairs) {
            const Matrix gate = makeMatrix(type1, 40, 256, 34);
            const Matrix up = makeMatrix(type3, 40, 256, 35);
            for (const NamedSet& set : allKernelSets()) {
                for (int64_t rows : {1, 9}) checkGateUp(set, gate, up, rows);
            }
        }
    }

    // With one column and x = 1, gateUp is silu itself.
    void siluAccuracy() {
        std::vector<float> gates;
        for (float v = -87.0f; v < 90.0f; v += 0.01f) gates.push_back(v);
        for (float v = -0.01f; v < 0.01f; v += 1e-5f) gates.push_back(v);
        const std::vector<float> ones(gates.size(), 1.0f);
        const auto rows = int64_t(gates.size());
        std::vector<std::byte> w1(size_t(packedBytes(DType::F32, rows, 1)));
        std::vector<std::byte> w3(w1.size());
        packRows(DType::F32, gates.data(), rows, 1, w1.data());
        packRows(DType::F32, ones.data(), rows, 1, w3.data());
        for (const NamedSet& set : allKernelSets()) {
            const std::vector<std::byte> x = prepare(*set.kernels, DType::F32, {1.0f}, 1, 1);
            std::vector<float> h(gates.size());
            set.kernels->gateUp(DType::F32, w1.data(), DType::F32, w3.data(), rows, 1, 0,
                                panelCount(rows), x.data(), 1, h.data(), rows);
            for (size_t i = 0; i < gates.size(); ++i) {
                const double g = gates[i];
                const double expected = g / (1.0 + std::exp(-g));
                QVERIFY2(std::fabs(h[i] - expected) <= 2e-6 * std::fabs(expected) + 1e-42,
                         qPrintable(QString("%1: silu(%2) = %3, not %4")
                                        .arg(set.name.c_str())
                                        .arg(g)
                                        .arg(h[i])
                                        .arg(expected)));
            }
        }
    }

    void siluFarOut() {
        const std::vector<float> gates = {-1e30f, -1000.0f, -104.0f, -0.0f, 0.0f, 1000.0f, 1e30f};
        const std::vector<float> ones(gates.size(), 1.0f);
        const auto rows = int64_t(gates.size());
        std::vector<std::byte> w1(size_t(packedBytes(DType::F32, rows, 1)));
        std::vector<std::byte> w3(w1.size());
        packRows(DType::F32, gates.data(), rows, 1, w1.data());
        packRows(DType::F32, ones.data(), rows, 1, w3.data());
        for (const NamedSet& set : allKernelSets()) {
            const std::vector<std::byte> x = prepare(*set.kernels, DType::F32, {1.0f}, 1, 1);
            std::vector<float> h(gates.size());
            set.kernels->gateUp(DType::F32, w1.data(), DType::F32, w3.data(), rows, 1, 0, 1,
                                x.data(), 1, h.data(), rows);
            for (int i = 0; i < 5; ++i) QVERIFY(std::fabs(h[size_t(i)]) < 1e-38f);
            QCOMPARE(h[5], 1000.0f);
            QCOMPARE(h[6], 1e30f);
        }
    }

    void notANumberReachesItsRowOnly() {
        const int64_t cols = 96, rows = 10;
        for (DType type : allTypes()) {
            const Matrix m = makeMatrix(type, 20, cols, 41);
            for (const NamedSet& set : allKernelSets()) {
                std::vector<float> source = randomFloats(rows * m.cols, 42);
                source[size_t(4 * m.cols + 50)] = NAN;
                source[size_t(7 * m.cols + 3)] = INFINITY;
                const std::vector<float> y = product(
                    *set.kernels, m, prepare(*set.kernels, type, source, rows, m.cols), rows);
                for (int64_t r = 0; r < rows; ++r) {
                    for (int64_t o = 0; o < m.rows; ++o) {
                        QCOMPARE(std::isfinite(y[size_t(r * m.rows + o)]), r != 4 && r != 7);
                    }
                }
            }
        }
    }

private:
    static std::vector<float> gated(const KernelSet& k, const Matrix& gate, const Matrix& up,
                                    const std::vector<std::byte>& x, int64_t rows) {
        std::vector<float> h(size_t(rows * gate.rows), NAN);
        k.gateUp(gate.type, gate.packed.data(), up.type, up.packed.data(), gate.rows, gate.cols, 0,
                 panelCount(gate.rows), x.data(), rows, h.data(), gate.rows);
        return h;
    }

    static void checkGateUp(const NamedSet& set, const Matrix& gate, const Matrix& up,
                            int64_t rows) {
        const std::vector<float> source = randomFloats(rows * gate.cols, 33);
        const std::vector<std::byte> x = prepare(*set.kernels, gate.type, source, rows, gate.cols);
        const std::vector<double> exact = meaning(gate.type, x, rows, gate.cols);
        const std::vector<float> h = gated(*set.kernels, gate, up, x, rows);
        for (int64_t r = 0; r < rows; ++r) {
            for (int64_t o = 0; o < gate.rows; ++o) {
                const Expected g = expectedProduct(gate, o, exact.data() + r * gate.cols);
                const Expected u = expectedProduct(up, o, exact.data() + r * gate.cols);
                const double silu = g.value / (1.0 + std::exp(-g.value));
                const double expected = silu * u.value;
                // silu's slope is at most 1.1.
                const double bound = 1.1 * g.bound * (std::fabs(u.value) + u.bound) +
                                     std::fabs(silu) * u.bound + 2e-6 * std::fabs(expected) + 1e-37;
                const double got = h[size_t(r * gate.rows + o)];
                QVERIFY2(std::fabs(got - expected) <= bound,
                         qPrintable(
                             QString("%1 %2").arg(set.name.c_str(), dtypeName(gate.type).data())));
            }
        }
    }

    static void checkSplits(const KernelSet& k, const Matrix& m, const Matrix& up,
                            const std::vector<std::byte>& x, int64_t rows) {
        const std::vector<float> y = product(k, m, x, rows);
        const std::vector<float> h = gated(k, m, up, x, rows);
        const int64_t rowBytes = inputRowBytes(m.type, m.cols);
        std::mt19937 random(7);
        for (int round = 0; round < 6; ++round) {
            // Rows and panels are split at random; the first round splits everything.
            const int64_t ldy = m.rows + 5;
            std::vector<float> y2(size_t(rows * ldy), -7.5f);
            std::vector<float> h2(size_t(rows * ldy), -7.5f);
            for (int64_t r = 0; r < rows;) {
                const int64_t n = round == 0 ? 1 : std::min<int64_t>(rows - r, 1 + random() % 13);
                for (int64_t p = 0; p < panelCount(m.rows);) {
                    const int64_t until =
                        round == 0 ? p + 1
                                   : std::min<int64_t>(panelCount(m.rows), p + 1 + random() % 3);
                    const std::byte* from = x.data() + r * rowBytes;
                    k.matmul(m.type, m.packed.data(), m.rows, m.cols, p, until, from, n,
                             y2.data() + r * ldy, ldy);
                    k.gateUp(m.type, m.packed.data(), up.type, up.packed.data(), m.rows, m.cols, p,
                             until, from, n, h2.data() + r * ldy, ldy);
                    p = until;
                }
                r += n;
            }
            for (int64_t r = 0; r < rows; ++r) {
                const size_t bytes = size_t(m.rows) * sizeof(float);
                QVERIFY(std::memcmp(&y2[size_t(r * ldy)], &y[size_t(r * m.rows)], bytes) == 0);
                QVERIFY(std::memcmp(&h2[size_t(r * ldy)], &h[size_t(r * m.rows)], bytes) == 0);
                for (int64_t o = m.rows; o < ldy; ++o) {
                    QCOMPARE(y2[size_t(r * ldy + o)], -7.5f);
                    QCOMPARE(h2[size_t(r * ldy + o)], -7.5f);
                }
            }
        }
    }
};

QTEST_GUILESS_MAIN(TestKernelProducts)
#include "test_kernel_products.moc"
