// SPDX-License-Identifier: GPL-3.0-or-later
// Number formats and the packed layout, compared bit by bit.
#include <QtTest>
#include <bit>
#include <fstream>
#include <nlohmann/json.hpp>
#include <set>

#include "tests/kernels/kernel_sets.h"
#include "tests/kernels/random_blocks.h"

using namespace colibri;

namespace {

std::vector<std::byte> fromHex(const std::string& hex) {
    std::vector<std::byte> out(hex.size() / 2);
    for (size_t i = 0; i < out.size(); ++i) {
        out[i] = std::byte(std::stoi(hex.substr(2 * i, 2), nullptr, 16));
    }
    return out;
}

std::vector<float> floatsFromHex(const std::string& hex) {
    const std::vector<std::byte> bytes = fromHex(hex);
    std::vector<float> out(bytes.size() / sizeof(float));
    std::memcpy(out.data(), bytes.data(), bytes.size());
    return out;
}

// The value of an f16 by its definition.
double halfValue(uint16_t h) {
    const int exponent = (h >> 10) & 31;
    const int mantissa = h & 1023;
    const double magnitude =
        exponent == 0 ? std::ldexp(mantissa, -24) : std::ldexp(1024 + mantissa, exponent - 25);
    return h & 0x8000 ? -magnitude : magnitude;
}

bool isHalfNan(uint16_t h) {
    return (h & 0x7c00) == 0x7c00 && (h & 0x3ff) != 0;
}

// All f16 numbers, the midpoints between neighbours, and a float on each side of these.
std::vector<float> halfProbes() {
    std::vector<float> probes;
    for (uint32_t h = 0; h < 65536; ++h) {
        const float v = f16ToF32(uint16_t(h));
        probes.push_back(v);
        if ((h & 0x7fff) >= 0x7c00) continue;
        const double next =
            (h & 0x7fff) == 0x7bff ? std::copysign(65536.0, v) : halfValue(uint16_t(h + 1));
        const float middle = float((halfValue(uint16_t(h)) + next) / 2);
        probes.push_back(middle);
        probes.push_back(std::nextafter(middle, 0.0f));
        probes.push_back(std::nextafter(middle, middle * 4));
    }
    for (uint32_t bits : {0x7f7fffffu, 0x7fc12345u, 0xff812345u, 0x7f800001u, 0x00000001u,
                          0x80000001u, 0x33000000u, 0x33000001u, 0x32ffffffu}) {
        probes.push_back(std::bit_cast<float>(bits));
    }
    return probes;
}

// Row `row` of a packed q8_0 or q4_0 matrix in ggml's form.
std::vector<std::byte> ggmlRow(DType type, const std::byte* packed, int64_t cols, int64_t row) {
    const std::byte* panel = packed + row / kPanel * panelBytes(type, cols);
    const int64_t lane = row % kPanel;
    std::vector<std::byte> out;
    const auto append = [&out](const void* p, size_t n) {
        const auto* bytes = static_cast<const std::byte*>(p);
        out.insert(out.end(), bytes, bytes + n);
    };
    for (int64_t b = 0; b < cols / kBlock; ++b) {
        if (type == DType::Q8_0) {
            const PackedQ8& block = reinterpret_cast<const PackedQ8*>(panel)[b];
            append(&block.scale[lane], 2);
            for (int g = 0; g < 8; ++g) append(block.q[g][lane], 4);
        } else {
            const PackedQ4& block = reinterpret_cast<const PackedQ4*>(panel)[b];
            append(&block.scale[lane], 2);
            for (int g = 0; g < 4; ++g) append(block.codes[0].low[g][lane], 4);
        }
    }
    return out;
}

std::vector<float> unpacked(DType type, const std::vector<std::byte>& packed, int64_t cols,
                            int64_t row) {
    std::vector<float> out(static_cast<size_t>(cols));
    unpackRow(type, packed.data(), cols, row, out.data());
    return out;
}

}  // namespace

class TestKernelFormats : public QObject {
    Q_OBJECT

private slots:
    void names() {
        for (DType type : allTypes()) {
            QCOMPARE(int(*dtypeFromName(dtypeName(type))), int(type));
            // A large packed matrix needs exactly the bits per weight of its type.
            QCOMPARE(double(packedBytes(type, 64, 256)) * 8 / (64 * 256), bitsPerWeight(type));
        }
        QVERIFY(!dtypeFromName("Q8_0"));
        QVERIFY(!dtypeFromName(""));
    }

    void halfToFloatExhaustive() {
        for (uint32_t h = 0; h < 65536; ++h) {
            const float v = f16ToF32(uint16_t(h));
            if (isHalfNan(uint16_t(h))) {
                QVERIFY(std::isnan(v));
            } else if ((h & 0x7fff) == 0x7c00) {
                QVERIFY(std::isinf(v) && std::signbit(v) == (h >= 0x8000));
            } else {
                QVERIFY(double(v) == halfValue(uint16_t(h)));
                QVERIFY(std::signbit(v) == (h >= 0x8000));
            }
        }
    }

    void floatToHalfNearestEven() {
        for (uint32_t h = 0; h < 65536; ++h) {
            const float v = f16ToF32(uint16_t(h));
            if (isHalfNan(uint16_t(h))) {
                QCOMPARE(f32ToF16(v), uint16_t(h | 0x200));
                continue;
            }
            QCOMPARE(f32ToF16(v), uint16_t(h));
            if ((h & 0x7fff) >= 0x7bff) continue;
            const float middle = float((halfValue(uint16_t(h)) + halfValue(uint16_t(h + 1))) / 2);
            QCOMPARE(f32ToF16(middle), uint16_t(h + (h & 1)));
            QCOMPARE(f32ToF16(std::nextafter(middle, 0.0f)), uint16_t(h));
            QCOMPARE(f32ToF16(std::nextafter(middle, v < 0 || h >= 0x8000 ? -1e9f : 1e9f)),
                     uint16_t(h + 1));
        }
        QCOMPARE(f32ToF16(std::nextafter(65520.0f, 0.0f)), uint16_t(0x7bff));
        QCOMPARE(f32ToF16(65520.0f), uint16_t(0x7c00));
        QCOMPARE(f32ToF16(-INFINITY), uint16_t(0xfc00));
    }

    void bfloatExhaustive() {
        for (uint32_t h = 0; h < 65536; ++h) {
            const float v = bf16ToF32(uint16_t(h));
            QCOMPARE(std::bit_cast<uint32_t>(v), h << 16);
            if (std::isnan(v)) {
                QVERIFY(std::isnan(bf16ToF32(f32ToBf16(v))));
                continue;
            }
            QCOMPARE(f32ToBf16(v), uint16_t(h));
            if (std::isinf(v)) continue;
            // Half way to the next number, and one step on each side.
            QCOMPARE(f32ToBf16(std::bit_cast<float>((h << 16) + 0x8000u)), uint16_t(h + (h & 1)));
            QCOMPARE(f32ToBf16(std::bit_cast<float>((h << 16) + 0x7fffu)), uint16_t(h));
            QCOMPARE(f32ToBf16(std::bit_cast<float>((h << 16) + 0x8001u)), uint16_t(h + 1));
        }
        QVERIFY(std::isnan(bf16ToF32(f32ToBf16(std::bit_cast<float>(0x7f800001u)))));
    }

    void vectorConversionsEqualScalar() {
        const std::vector<float> probes = halfProbes();
        std::vector<uint16_t> halves(probes.size());
        std::vector<uint16_t> patterns(65536 + 7);
        for (size_t i = 0; i < patterns.size(); ++i) patterns[i] = uint16_t(i);
        std::vector<float> floats(patterns.size());
        for (const NamedSet& set : allKernelSets()) {
            set.kernels->toF16(probes.data(), int64_t(probes.size()), halves.data());
            for (size_t i = 0; i < probes.size(); ++i) QCOMPARE(halves[i], f32ToF16(probes[i]));
            set.kernels->fromF16(patterns.data(), int64_t(patterns.size()), floats.data());
            for (size_t i = 0; i < patterns.size(); ++i) {
                QCOMPARE(bitsOf(floats[i]), bitsOf(f16ToF32(patterns[i])));
            }
            // Tails are not written past their end.
            for (int64_t n = 0; n < 40; ++n) {
                std::vector<uint16_t> h(size_t(n) + 1, 0x1234);
                set.kernels->toF16(probes.data(), n, h.data());
                QCOMPARE(h.back(), uint16_t(0x1234));
                std::vector<float> f(size_t(n) + 1, 7.0f);
                set.kernels->fromF16(patterns.data(), n, f.data());
                QCOMPARE(f.back(), 7.0f);
            }
        }
    }

    void packUnpackRoundTrip() {
        for (DType type : encodableTypes()) {
            for (int64_t rows : {1, 15, 16, 17, 40}) {
                for (int64_t cols : {1, 31, 32, 33, 40, 64, 100}) checkRoundTrip(type, rows, cols);
            }
        }
    }

    void packingByPanelsEqualsWhole() {
        const int64_t rows = 57, cols = 70;
        const std::vector<float> source = randomFloats(rows * cols, 3);
        for (DType type : encodableTypes()) {
            std::vector<std::byte> whole(size_t(packedBytes(type, rows, cols)), std::byte(0x5a));
            std::vector<std::byte> parts(whole.size(), std::byte(0xa5));
            packRows(type, source.data(), rows, cols, whole.data());
            for (int64_t p = 0; p < panelCount(rows); ++p) {
                packRows(type, source.data() + p * kPanel * cols,
                         std::min(kPanel, rows - p * kPanel), cols,
                         parts.data() + p * panelBytes(type, cols));
            }
            QVERIFY(whole == parts);
        }
    }

    // For normally distributed weights, the searched scale has a smaller error than that of the
    // largest value.
    void q4ScalesAreSearchedFor() {
        std::mt19937 random(5);
        std::normal_distribution<float> normal;
        std::vector<float> x(64 * kBlock);
        for (float& v : x) v = normal(random);
        std::vector<std::byte> packed(size_t(packedBytes(DType::Q4_0, 1, int64_t(x.size()))));
        packRows(DType::Q4_0, x.data(), 1, int64_t(x.size()), packed.data());
        double plain = 0;
        for (size_t b = 0; b < x.size(); b += kBlock) {
            float largest = 0;
            for (int k = 0; k < kBlock; ++k) {
                if (std::fabs(x[b + k]) > std::fabs(largest)) largest = x[b + k];
            }
            const float scale = largest / -8;
            for (int k = 0; k < kBlock; ++k) {
                const float q = std::clamp(std::round(x[b + k] / scale), -8.0f, 7.0f);
                plain += std::abs(double(x[b + k])) * std::pow(double(x[b + k] - q * scale), 2);
            }
        }
        const double own = squaredError(x, unpacked(DType::Q4_0, packed, int64_t(x.size()), 0));
        QVERIFY2(own < 0.93 * plain, qPrintable(QString::number(own / plain)));
    }

    // The bits equal the reference's for values of all magnitudes, midpoints between steps, and
    // zeros.
    void everySetEncodesTheSameBits() {
        std::mt19937 random(12);
        std::normal_distribution<float> normal;
        for (int round = 0; round < 400; ++round) {
            WeightTile tile;
            for (int64_t lane = 0; lane < kPanel; ++lane) {
                const float scale = std::ldexp(1.0f, int(random() % 250) - 140);
                const uint32_t kind = random() % 4;
                for (auto& column : tile) {
                    column[lane] = kind == 0   ? normal(random)
                                   : kind == 1 ? normal(random) * scale
                                   : kind == 2 ? float(int(random() % 31) - 15) / 2
                                               : float(int(random() % 3) - 1) * scale;
                    if (round % 50 == 0) column[lane] = random() % 8 ? 0.0f : -0.0f;
                }
            }
            for (DType type : encodableTypes()) {
                const auto bytes = size_t(panelBytes(type, kBlock));
                std::vector<std::byte> expected(bytes, std::byte(0x5a));
                scalarKernels().encode(type, tile, expected.data());
                for (const NamedSet& set : allKernelSets()) {
                    std::vector<std::byte> encoded(bytes, std::byte(0xa5));
                    set.kernels->encode(type, tile, encoded.data());
                    QVERIFY2(encoded == expected,
                             (set.name + ", " + std::string(dtypeName(type))).c_str());
                }
            }
        }
    }

    void oddValuesPackToFiniteOnes() {
        // Converters reject such rows, but encoding them must not be undefined behaviour.
        std::vector<float> x(4 * kBlock, 0.0f);
        x[3] = NAN;
        x[kBlock] = INFINITY;
        x[2 * kBlock] = 1e-40f;
        x[3 * kBlock] = -3e38f;
        WeightTile tile;
        for (int k = 0; k < kBlock; ++k) {
            for (int64_t lane = 0; lane < kPanel; ++lane)
                tile[k][lane] = x[size_t(lane % 4 * kBlock + k)];
        }
        for (const NamedSet& set : allKernelSets()) {
            for (DType type : encodableTypes()) {
                std::vector<std::byte> block(size_t(panelBytes(type, kBlock)));
                set.kernels->encode(type, tile, block.data());
            }
        }
        for (DType type : {DType::Q8_0, DType::Q4_0}) {
            std::vector<std::byte> packed(size_t(packedBytes(type, 1, 4 * kBlock)));
            packRows(type, x.data(), 1, 4 * kBlock, packed.data());
            const std::vector<std::byte> row = ggmlRow(type, packed.data(), 4 * kBlock, 0);
            QCOMPARE(row.size(), size_t(type == DType::Q8_0 ? 4 * 34 : 4 * 18));
        }
    }

    // ggml's blocks keep all byte values, including -128.
    void ggmlRowsKeepEveryBit() {
        std::mt19937 random(9);
        const int64_t rows = 35, cols = 96;
        for (DType type : {DType::Q8_0, DType::Q4_0}) {
            const size_t rowBytes = size_t(cols / kBlock) * (type == DType::Q8_0 ? 34 : 18);
            std::vector<std::byte> source(rowBytes * rows);
            for (std::byte& b : source) b = std::byte(random());
            std::vector<std::byte> packed(size_t(packedBytes(type, rows, cols)), std::byte(0x77));
            packGgmlRows(type, source.data(), rows, cols, packed.data());
            for (int64_t row = 0; row < rows; ++row) {
                const std::vector<std::byte> expected(
                    source.begin() + row * int64_t(rowBytes),
                    source.begin() + (row + 1) * int64_t(rowBytes));
                QVERIFY(ggmlRow(type, packed.data(), cols, row) == expected);
            }
            std::vector<float> padding(cols, 1.0f);
            unpackRow(type, packed.data(), cols, 40, padding.data());
            for (float v : padding) QCOMPARE(v, 0.0f);
        }
    }

    // Every value of every row and lane equals that of the file's block, with both decoders.
    void ggmlRowsKeepTheirValues() {
        const int64_t rows = 35, cols = 512;
        for (DType type : quantisedTypes()) {
            const std::vector<std::byte> source = randomBlocks(type, rows, cols, 10);
            const int64_t rowBytes = int64_t(source.size()) / rows;
            std::vector<std::byte> packed(size_t(packedBytes(type, rows, cols)), std::byte(0x77));
            packGgmlRows(type, source.data(), rows, cols, packed.data());
            QVERIFY(ggmlScalesFinite(type, source.data(), rows * cols / fileBlock(type).cols));
            std::set<float> seen;
            for (int64_t row = 0; row < rows; ++row) {
                std::vector<float> expected(cols);
                ggmlToFloats(type, source.data() + row * rowBytes, cols / fileBlock(type).cols,
                             expected.data());
                QVERIFY(sameBits(unpacked(type, packed, cols, row), expected));
                seen.insert(expected.begin(), expected.end());
            }
            QVERIFY(seen.size() >= 15);
            for (float v : unpacked(type, packed, cols, 40)) QCOMPARE(v, 0.0f);
        }
    }

    void scalesThatAreNotNumbersAreFound() {
        for (DType type : quantisedTypes()) {
            const FileBlock file = fileBlock(type);
            std::vector<std::byte> blocks = randomBlocks(type, 1, 2 * file.cols, 11);
            QVERIFY(ggmlScalesFinite(type, blocks.data(), 2));
            std::vector<std::byte> last(blocks.begin() + file.bytes, blocks.end());
            setBlockScales(type, type == DType::MXFP4 ? 0x1p125f : INFINITY, 1.0f, last);
            std::copy(last.begin(), last.end(), blocks.begin() + file.bytes);
            QVERIFY2(!ggmlScalesFinite(type, blocks.data(), 2), dtypeName(type).data());
        }
    }

    void goldenQuantisation() {
        std::ifstream file(COLIBRI_GOLDEN_DIR "/quant_cases.json");
        QVERIFY(file.good());
        const nlohmann::json cases = nlohmann::json::parse(file);
        int checked = 0;
        for (DType type : allTypes()) {
            if (type == DType::F32) continue;
            for (const nlohmann::json& c : cases.at(std::string(dtypeName(type)))) {
                checkGolden(type, c);
                ++checked;
            }
        }
        QVERIFY(checked > 20);
    }

private:
    static void checkRoundTrip(DType type, int64_t rows, int64_t cols) {
        const std::vector<float> source = randomFloats(rows * cols, uint32_t(rows * 1000 + cols));
        const size_t bytes = size_t(packedBytes(type, rows, cols));
        std::vector<std::byte> packed(bytes + 64, std::byte(0xee));
        packRows(type, source.data(), rows, cols, packed.data());
        QCOMPARE(bytes % 16, size_t(0));
        for (size_t i = 0; i < 64; ++i) QVERIFY(packed[bytes + i] == std::byte(0xee));

        std::vector<float> row(static_cast<size_t>(cols));
        for (int64_t r = 0; r < rows; ++r) {
            unpackRow(type, packed.data(), cols, r, row.data());
            for (int64_t k = 0; k < cols; ++k) {
                const float from = source[size_t(r * cols + k)];
                const float to = row[size_t(k)];
                switch (type) {
                    case DType::F32:
                        QCOMPARE(to, from);
                        break;
                    case DType::F16:
                        QCOMPARE(to, f16ToF32(f32ToF16(from)));
                        break;
                    case DType::BF16:
                        QCOMPARE(to, bf16ToF32(f32ToBf16(from)));
                        break;
                    default: {
                        float largest = 0.0f;
                        for (int64_t j = k / 32 * 32; j < std::min(cols, k / 32 * 32 + 32); ++j) {
                            largest = std::max(largest, std::fabs(source[size_t(r * cols + j)]));
                        }
                        // Half a step. For q4_0 a quarter of the largest value, because its ends
                        // may be inside the range. mxfp4's largest value may be a quarter too low;
                        // its steps are a sixth.
                        const float step = type == DType::Q8_0 ? largest / 127 / 2 : largest / 4;
                        const float scaleRounding = largest * 0x1p-11f;  // the scale is an f16
                        QVERIFY(std::fabs(to - from) <= step * 1.001f + scaleRounding);
                    }
                }
            }
        }
        // Padding rows and columns count as zero.
        std::vector<float> padded(size_t(paddedCols(cols)));
        for (int64_t r = 0; r < panelCount(rows) * kPanel; ++r) {
            unpackRow(type, packed.data(), paddedCols(cols), r, padded.data());
            for (int64_t k = r < rows ? cols : 0; k < paddedCols(cols); ++k) {
                QCOMPARE(padded[size_t(k)], 0.0f);
            }
        }
    }

    // The error is weighted by magnitude.
    static double squaredError(const std::vector<float>& x, const std::vector<float>& y) {
        double sum = 0;
        for (size_t i = 0; i < x.size(); ++i) {
            sum += std::abs(double(x[i])) * std::pow(double(x[i]) - double(y[i]), 2);
        }
        return sum;
    }

    static void checkGolden(DType type, const nlohmann::json& c) {
        const std::string name = c.at("name");
        const int64_t n = c.at("n");
        const std::vector<float> y = floatsFromHex(c.at("y"));
        const std::vector<std::byte> bytes = fromHex(c.at("bytes"));
        std::vector<std::byte> packed(size_t(packedBytes(type, 1, n)));
        if (isQuantised(type)) packGgmlRows(type, bytes.data(), 1, n, packed.data());
        if (hasEncoder(type)) {
            const std::vector<float> x = floatsFromHex(c.at("x"));
            QCOMPARE(int64_t(x.size()), n);
            std::vector<std::byte> encoded(packed.size());
            packRows(type, x.data(), 1, n, encoded.data());
            if (!isQuantised(type)) packed = encoded;
            if (type == DType::Q4_0) {
                // The scale is searched, so its error is not larger than the reference's.
                const double own = squaredError(x, unpacked(type, encoded, n, 0));
                QVERIFY2(own <= squaredError(x, y) * 1.001 + 1e-30, name.c_str());
            } else {
                QVERIFY2(encoded == packed, name.c_str());
            }
            for (int64_t i = 0; i < n && !isQuantised(type); ++i) {
                uint16_t half;
                std::memcpy(&half, bytes.data() + 2 * i, 2);
                const float v = x[size_t(i)];
                QCOMPARE(type == DType::F16 ? f32ToF16(v) : f32ToBf16(v), half);
            }
        }
        const std::vector<float> back = unpacked(type, packed, n, 0);
        for (size_t i = 0; i < y.size(); ++i) {
            QVERIFY2(bitsOf(back[i]) == bitsOf(y[i]),
                     (std::string(dtypeName(type)) + ", " + name).c_str());
        }
    }
};

QTEST_GUILESS_MAIN(TestKernelFormats)
#include "test_kernel_formats.moc"
