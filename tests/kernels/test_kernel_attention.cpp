// SPDX-License-Identifier: GPL-3.0-or-later
// Attention over paged KV against a plain double-precision softmax.
#include <QtTest>

#include "tests/kernels/kernel_sets.h"

using namespace colibri;

namespace {

constexpr float kCanary = -123.25f;
constexpr KvType kTypes[] = {KvType::F32, KvType::F16, KvType::Q8};
constexpr const char* kTypeNames[] = {"f32", "f16", "q8"};

struct Case {
    int heads;
    int headDim;
    int64_t begin, end;
    KvType type;
    bool sinks;
    int latentDim = 0;  // above 0: values are the first columns of the keys
    int valueDim() const { return latentDim > 0 ? latentDim : headDim; }
};

// Random queries and KV. Pages without visible positions are null.
struct Scene {
    Case c;
    std::vector<float> q, keys, values, sinks;
    std::vector<std::vector<std::byte>> pages;
    std::vector<const void*> pagePointers;

    explicit Scene(const Case& wanted) : c(wanted) {
        const int64_t dim = c.headDim;
        const auto seed = uint32_t(c.heads * 7919 + dim * 131 + c.begin * 17 + c.end);
        q = randomFloats(c.heads * dim, seed);
        sinks = randomFloats(c.heads, seed + 3, 2.0f);
        keys = randomFloats(c.end * dim, seed + 1);
        values = randomFloats(c.end * dim, seed + 2);
        if (c.latentDim > 0) values = keys;
        const int64_t bytes = kvRowsBytes(c.type, dim) * (c.latentDim > 0 ? 1 : 2);
        for (int64_t first = 0; first < c.end; first += kPageTokens) {
            pages.emplace_back();
            pagePointers.push_back(nullptr);
            if (first + kPageTokens <= c.begin) continue;
            // Positions outside the window hold NaN, so that reading one changes the result.
            pages.back().assign(size_t(bytes), std::byte(0xff));
            for (int64_t t = std::max(first, c.begin); t < std::min(first + kPageTokens, c.end);
                 ++t) {
                put(pages.back().data(), t - first, keys.data() + t * dim);
                float* value = values.data() + t * dim;
                if (c.latentDim == 0) {
                    put(pages.back().data() + kvRowsBytes(c.type, dim), t - first, value);
                } else {
                    std::copy_n(keys.data() + t * dim, dim, value);
                }
            }
            pagePointers.back() = pages.back().data();
        }
    }

    // Stores a row, and replaces x by the stored values.
    void put(std::byte* rows, int64_t row, float* x) const {
        const int64_t dim = c.headDim;
        const auto at = [&](int64_t bytes) { return rows + row * dim * bytes; };
        if (c.type == KvType::F32) {
            std::memcpy(at(4), x, size_t(dim) * 4);
        } else if (c.type == KvType::F16) {
            for (int64_t d = 0; d < dim; ++d) {
                const uint16_t h = f32ToF16(x[d]);
                std::memcpy(at(2) + d * 2, &h, 2);
                x[d] = f16ToF32(h);
            }
        } else {
            auto* codes = reinterpret_cast<int8_t*>(at(1));
            auto* scales = reinterpret_cast<float*>(rows + kPageTokens * dim) + row * kvScales(dim);
            quantiseKv(x, dim, codes, scales);
            for (int64_t d = 0; d < dim; ++d) x[d] = float(codes[d]) * scales[d / kBlock];
        }
    }

    float scale() const { return 1.0f / std::sqrt(float(c.headDim)); }

    // Heads [first, first + n) in one call.
    std::vector<float> run(const KernelSet& k, int first, int n) const {
        const int64_t positions = c.end - c.begin;
        std::vector<float> scratch(size_t(n * positions) + 1, kCanary);
        std::vector<float> out(size_t(n * c.valueDim()) + 1, kCanary);
        AttentionArgs args = {};
        args.q = q.data() + first * c.headDim;
        args.heads = n;
        args.headDim = c.headDim;
        args.latentDim = c.latentDim;
        args.pages = pagePointers.data();
        args.kvType = c.type;
        args.begin = c.begin;
        args.end = c.end;
        args.scale = scale();
        args.sinks = c.sinks ? sinks.data() + first : nullptr;
        args.scratch = scratch.data();
        args.out = out.data();
        k.attention(args);
        if (scratch.back() != kCanary || out.back() != kCanary) return {};
        out.pop_back();
        return out;
    }

    struct Expected {
        std::vector<double> out;
        double bound;
    };

    Expected expected(int head) const {
        const int64_t dim = c.headDim;
        std::vector<double> scores;
        double norm = 0.0;  // of the largest score
        for (int64_t t = c.begin; t < c.end; ++t) {
            double sum = 0.0;
            double terms = 0.0;
            for (int64_t d = 0; d < dim; ++d) {
                const double term = double(q[size_t(head * dim + d)]) * keys[size_t(t * dim + d)];
                sum += term;
                terms += std::fabs(term);
            }
            scores.push_back(sum * scale());
            norm = std::max(norm, terms * scale());
        }
        double total = c.sinks ? std::exp(double(sinks[size_t(head)])) : 0.0;
        for (double s : scores) total += std::exp(s);
        Expected e{std::vector<double>(size_t(dim), 0.0), 0.0};
        double largest = 0.0;
        for (int64_t t = c.begin; t < c.end; ++t) {
            const double p = std::exp(scores[size_t(t - c.begin)]) / total;
            for (int64_t d = 0; d < dim; ++d) {
                e.out[size_t(d)] += p * values[size_t(t * dim + d)];
                largest = std::max(largest, double(std::fabs(values[size_t(t * dim + d)])));
            }
        }
        // An error s of a score changes every weight by at most 2 s; then exp, and two sums over n.
        const double scoreError = double(dim + 4) * kEpsilon * norm;
        e.bound = (2 * scoreError + 4e-6 + 2.0 * double(scores.size()) * kEpsilon) * largest;
        return e;
    }
};

void check(const NamedSet& set, const Case& c) {
    const Scene scene(c);
    const std::vector<float> out = scene.run(*set.kernels, 0, c.heads);
    const QString name = QString("%1: %2 heads of %3, [%4, %5), %6, sinks %7, latent %8")
                             .arg(set.name.c_str())
                             .arg(c.heads)
                             .arg(c.headDim)
                             .arg(c.begin)
                             .arg(c.end)
                             .arg(kTypeNames[int(c.type)])
                             .arg(c.sinks)
                             .arg(c.latentDim);
    QVERIFY2(!out.empty(), qPrintable(name + ": wrote past its end"));
    for (int h = 0; h < c.heads; ++h) {
        const Scene::Expected e = scene.expected(h);
        for (int d = 0; d < c.valueDim(); ++d) {
            const double got = out[size_t(h * c.valueDim() + d)];
            QVERIFY2(std::fabs(got - e.out[size_t(d)]) <= e.bound, qPrintable(name));
        }
        // A head alone gives the same bits as in its group.
        const std::vector<float> alone = scene.run(*set.kernels, h, 1);
        QVERIFY2(std::memcmp(alone.data(), out.data() + h * c.valueDim(),
                             alone.size() * sizeof(float)) == 0,
                 qPrintable(name));
    }
}

}  // namespace

class TestKernelAttention : public QObject {
    Q_OBJECT

private slots:
    void headSizes() {
        for (const NamedSet& set : allKernelSets()) {
            for (int dim : {1, 3, 8, 15, 16, 17, 31, 32, 40, 64, 72, 80, 96, 100, 128, 192, 256}) {
                for (const KvType type : kTypes) {
                    check(set, {3, dim, 0, 45, type, false});
                    check(set, {1, dim, 7, 40, type, true});
                }
            }
        }
    }

    void groups() {
        for (const NamedSet& set : allKernelSets()) {
            for (int heads = 1; heads <= 9; ++heads) {
                for (const KvType type : kTypes) {
                    check(set, {heads, 64, 0, 70, type, heads % 2 == 0});
                    check(set, {heads, 40, 3, 70, type, heads % 2 == 1});
                }
            }
        }
    }

    void valuesInsideTheKeys() {
        for (const NamedSet& set : allKernelSets()) {
            for (const auto& [dim, latent] : {std::pair{576, 512}, {40, 32}, {33, 16}, {24, 24}}) {
                for (const KvType type : kTypes) {
                    check(set, {16, dim, 0, 45, type, false, latent});
                    check(set, {3, dim, 7, 99, type, true, latent});
                }
            }
        }
    }

    void windowsAndPageBoundaries() {
        const std::vector<std::pair<int64_t, int64_t>> windows = {
            {0, 1},    {0, 15},   {0, 16},  {0, 17},  {0, 31},  {0, 32},   {0, 33},
            {0, 64},   {31, 32},  {31, 33}, {32, 33}, {32, 64}, {5, 70},   {40, 41},
            {63, 130}, {64, 131}, {95, 97}, {1, 2},   {0, 300}, {200, 321}};
        for (const NamedSet& set : allKernelSets()) {
            for (const auto& [begin, end] : windows) {
                for (const KvType type : kTypes) {
                    check(set, {2, 32, begin, end, type, false});
                    check(set, {5, 32, begin, end, type, true});
                }
            }
        }
    }

    void nothingVisible() {
        for (const NamedSet& set : allKernelSets()) {
            for (bool sinks : {false, true}) {
                const Scene scene({3, 40, 9, 9, KvType::F32, sinks});
                const std::vector<float> out = scene.run(*set.kernels, 0, 3);
                QCOMPARE(out.size(), size_t(120));
                for (float v : out) QCOMPARE(v, 0.0f);
            }
        }
    }

    // The rounding error is at most half a step of the largest of 32 values. NaN stays NaN, and
    // values near zero become 0.
    void eightBits() {
        for (const int64_t dim : {1, 31, 32, 80, 128}) {
            std::vector<float> x = randomFloats(dim, uint32_t(dim));
            std::vector<int8_t> codes(size_t(dim), 0);
            std::vector<float> scales(size_t(kvScales(dim)), 0.0f);
            quantiseKv(x.data(), dim, codes.data(), scales.data());
            for (int64_t d = 0; d < dim; ++d) {
                const float scale = scales[size_t(d / kBlock)];
                QVERIFY(std::fabs(float(codes[size_t(d)]) * scale - x[size_t(d)]) <=
                        0.5001f * scale);
            }
        }
        float x[kBlock * 3] = {1, -2, INFINITY};
        x[kBlock] = 1e-40f;
        x[2 * kBlock] = NAN;
        int8_t codes[kBlock * 3];
        float scales[3];
        quantiseKv(x, kBlock * 3, codes, scales);
        QVERIFY(std::isnan(scales[0]) && std::isnan(scales[2]));
        QCOMPARE(codes[kBlock], int8_t(0));
    }

    // A sink far above all scores takes all the weight, and one far below takes none.
    void extremeSinks() {
        for (const NamedSet& set : allKernelSets()) {
            Scene scene({2, 32, 0, 20, KvType::F32, true});
            scene.sinks = {500.0f, -500.0f};
            const std::vector<float> out = scene.run(*set.kernels, 0, 2);
            for (int d = 0; d < 32; ++d) QCOMPARE(out[size_t(d)], 0.0f);
            const Scene::Expected e = scene.expected(1);
            for (int d = 0; d < 32; ++d) {
                QVERIFY(std::fabs(out[size_t(32 + d)] - e.out[size_t(d)]) <= e.bound);
            }
        }
    }
};

QTEST_GUILESS_MAIN(TestKernelAttention)
#include "test_kernel_attention.moc"
