// SPDX-License-Identifier: GPL-3.0-or-later
// Models in the types of GGUF files, run without conversion.
#include <QtTest>
#include <cmath>

#include "engine/convert/converter.h"
#include "tests/engine/convert/checkpoint_maker.h"
#include "tests/engine/runtime/run_fixture.h"

using namespace colibri;
using namespace colibri::test;
namespace fs = std::filesystem;

namespace {

// Every token uses all experts, so that rounding cannot change a choice.
TinyOptions modelOptions() {
    TinyOptions o = wideOptions();
    o.topK = o.experts;
    return o;
}

fs::path converted(const std::string& name, const TinyOptions& o, const GgufTypes& types,
                   std::optional<DType> dtype = {}) {
    const fs::path file = scratchFolder() / (name + ".gguf"), target = scratchFolder() / name;
    writeFile(file, ggufParts(o, tinyTensors(o), types).front());
    const Result<ContainerInfo> info = convertModel({file, target, dtype, name}, {}, nullptr);
    if (!info.ok()) throw std::runtime_error(info.status().text());
    return target;
}

// Root mean square of the differences, relative to that of `want`.
double relativeError(const std::vector<std::vector<float>>& got,
                     const std::vector<std::vector<float>>& want) {
    double difference = 0, size = 0;
    for (size_t t = 0; t < want.size(); ++t) {
        for (size_t i = 0; i < want[t].size(); ++i) {
            difference += std::pow(double(got[t][i]) - want[t][i], 2);
            size += std::pow(double(want[t][i]), 2);
        }
    }
    return std::sqrt(difference / size);
}

std::vector<std::vector<float>> logitsOf(const fs::path& model, std::optional<Isa> isa = {}) {
    const auto engine = load(model, {{KnobId::KvDtype, int64_t(KvType::F32)}}, isa);
    Result<Engine::LogitsResult> result = engine->logits(somePrompt(20, 70));
    if (!result.ok()) throw std::runtime_error(result.status().text());
    return result->logits;
}

}  // namespace

class TestStoredTypes : public QObject {
    Q_OBJECT

private slots:
    void closeToTheirValuesInFloat_data() {
        QTest::addColumn<int>("ggmlType");
        QTest::addColumn<int>("dtype");
        const std::pair<int, DType> types[] = {
            {2, DType::Q4_0},  {3, DType::Q4_1},  {6, DType::Q5_0},
            {7, DType::Q5_1},  {8, DType::Q8_0},  {12, DType::Q4_K},
            {13, DType::Q5_K}, {14, DType::Q6_K}, {39, DType::MXFP4}};
        for (const auto& [type, dtype] : types) {
            QTest::newRow(std::string(dtypeName(dtype)).c_str()) << type << int(dtype);
        }
        QTest::newRow("mixed") << -1 << -1;
    }
    // The weights are equal to the bit. The results differ by the rounding of activations to 8
    // bits.
    void closeToTheirValuesInFloat() {
        QFETCH(int, ggmlType);
        QFETCH(int, dtype);
        const TinyOptions o = modelOptions();
        const std::string name = QTest::currentDataTag();
        const GgufTypes types = [&](const std::string& tensor) {
            return ggmlType < 0 ? mixedType(tensor) : uint32_t(ggmlType);
        };
        const fs::path stored = converted(name, o, types);
        const auto want = logitsOf(converted(name + "-f32", o, types, DType::F32));
        if (dtype >= 0) QCOMPARE(openContainer(stored)->expertTypeNames(), name);
        for (const Isa isa : availableIsas()) {
            const double error = relativeError(logitsOf(stored, isa), want);
            qInfo("%s: relative rms error %.4f", std::string(isaName(isa)).c_str(), error);
            QVERIFY2(error < 0.12, qPrintable(QString::number(error)));
        }
    }

    void outputDoesNotDependOnHowItIsMade() {
        const fs::path model = converted("determinism", wideOptions(), mixedType);
        const std::vector<int32_t> prompt = somePrompt(50, 70);
        std::vector<int32_t> expected;
        for (const int64_t threads : {1, 2}) {
            for (const int64_t chunk : {16, 17, 512}) {
                for (const int64_t cache : {1, 4}) {
                    const auto engine = load(model, {{KnobId::ComputeThreads, threads},
                                                     {KnobId::PrefillChunk, chunk},
                                                     {KnobId::ExpertCacheSize, cache}});
                    const std::vector<int32_t> got = test::generate(*engine, prompt, 16);
                    if (expected.empty()) expected = got;
                    QCOMPARE(got, expected);
                }
            }
        }
        QVERIFY(!expected.empty());
    }

    // A token reads the chosen experts, each matrix in its own type, and all dense weights.
    void bytesPerTokenAreThoseOfTheTypes() {
        const TinyOptions o = wideOptions();
        const auto engine = load(converted("bytes", o, mixedType));
        const auto matrix = [](double bits, int64_t rows) {
            return int64_t(bits * double(rows * 256) / 8);
        };
        // q, k, v, o; then w1, w3 and w2 of two experts; rows in whole panels of 16.
        int64_t bytes =
            2 * (matrix(4.625, 256) + matrix(5.625, 64) + matrix(6.5625, 64) + matrix(5.5, 256));
        bytes += o.topK * (matrix(4.625, 512) + matrix(6.5625, 256));
        bytes += o.topK * (matrix(6.0, 256) + matrix(5.0, 256) + matrix(4.25, 256));
        bytes += 2 * matrix(32.0, 16);  // routers
        bytes += matrix(6.5625, 80);    // head
        QCOMPARE(engine->bytesPerToken(), bytes);
    }
};

QTEST_GUILESS_MAIN(TestStoredTypes)
#include "test_stored_types.moc"
