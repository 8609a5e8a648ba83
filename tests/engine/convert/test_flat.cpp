// SPDX-License-Identifier: GPL-3.0-or-later
// The flat layout, the tensor names of tools that split experts, and router tables from
// conversions.
#include <QTemporaryDir>
#include <QTest>
#include <algorithm>
#include <cmath>
#include <cstring>
#include <numeric>

#include "engine/convert/converter.h"
#include "engine/convert/flat/flat.h"
#include "engine/convert/inspect.h"
#include "engine/convert/loadable_model.h"
#include "engine/model/router_table.h"
#include "kernels/kernels.h"
#include "tests/engine/convert/checkpoint_maker.h"

using namespace colibri;
using namespace colibri::test;
namespace fs = std::filesystem;

namespace {

// Everything except the fields that identify the source.
std::map<std::string, std::string> weights(const fs::path& folder) {
    auto content = folderContent(folder);
    content.erase("model.json");
    content.erase(kRouterTableFile);
    return content;
}

}  // namespace

class TestFlat : public QObject {
    Q_OBJECT

    QTemporaryDir m_dir;
    int m_number = 0;

    fs::path fresh() { return fs::path(m_dir.path().toStdString()) / std::to_string(m_number++); }
    static TinyOptions tiny(const std::string& family = "olmoe") {
        TinyOptions o;
        o.family = family;
        if (family == "qwen3_moe") {
            o.layers = 3;
            o.denseLayers = {1};
        }
        return o;
    }
    fs::path checkpoint(const TinyOptions& o, const std::string& type = "BF16") {
        const fs::path source = fresh();
        writeCheckpoint(source, tinyConfig(o), tinyTensors(o), 1, true, type);
        return source;
    }
    static Result<ContainerInfo> convert(const fs::path& source, const fs::path& target,
                                         ConvertLayout layout, std::optional<DType> dtype = {}) {
        ConvertOptions options;
        options.source = source;
        options.target = target;
        options.dtype = dtype;
        options.layout = layout;
        return convertModel(options, {}, nullptr);
    }
    fs::path flat(const fs::path& source, std::optional<DType> dtype = {}) {
        const fs::path target = fresh();
        const auto info = convert(source, target, ConvertLayout::Flat, dtype);
        if (!info.ok()) qFatal("%s", info.status().text().c_str());
        return target;
    }
    static Status loadable(const fs::path& path) {
        return loadableModel(path, {}, nullptr).status();
    }

private slots:
    void filesHoldTheRowsOfTheCheckpoint() {
        const TinyOptions o = tiny();
        const Tensors tensors = tinyTensors(o);
        const fs::path folder = flat(checkpoint(o));
        for (int64_t layer = 0; layer < o.layers; ++layer) {
            for (int64_t e = 0; e < o.experts; ++e) {
                const std::string p = "model.layers." + std::to_string(layer) + ".mlp.experts." +
                                      std::to_string(e) + ".";
                const std::pair<const char*, const char*> files[] = {
                    {"w1", "gate_proj"}, {"w2", "down_proj"}, {"w3", "up_proj"}};
                for (const auto& [file, name] : files) {
                    const std::string bytes =
                        readFile(folder / ("expert_" + std::to_string(e) + "_layer_" +
                                           std::to_string(layer) + "_" + file + ".bin"));
                    const std::vector<float>& values = tensors.at(p + name + ".weight").values;
                    QCOMPARE(bytes.size(), values.size() * 2);
                    for (size_t i = 0; i < values.size(); ++i) {
                        uint16_t half;
                        std::memcpy(&half, bytes.data() + 2 * i, 2);
                        QCOMPARE(bf16ToF32(half), values[i]);
                    }
                }
            }
        }
        QVERIFY(fs::exists(folder / kRouterTableFile));
        QVERIFY(!fs::exists(folder / "model.json"));
        QVERIFY(!fs::exists(folder / "convert.journal"));
    }

    void theRoundTripGivesTheContainer_data() {
        QTest::addColumn<QString>("family");
        QTest::addColumn<QString>("sourceType");
        QTest::addColumn<int>("dtype");
        for (const char* family : {"olmoe", "qwen3_moe", "mixtral"}) {
            for (const char* type : {"F32", "F16", "BF16"}) {
                for (const DType dtype : {DType::F16, DType::BF16}) {
                    QTest::addRow("%s %s to %s", family, type, dtypeName(dtype).data())
                        << QString(family) << QString(type) << int(dtype);
                }
            }
        }
    }
    void theRoundTripGivesTheContainer() {
        QFETCH(QString, family);
        QFETCH(QString, sourceType);
        QFETCH(int, dtype);
        TinyOptions o = tiny(family.toStdString());
        o.bias = family == "olmoe";
        o.tied = family == "qwen3_moe";
        const fs::path source = checkpoint(o, sourceType.toStdString());
        const fs::path direct = fresh();
        QVERIFY(convert(source, direct, ConvertLayout::Container, DType(dtype)).ok());
        const fs::path folder = flat(source, DType(dtype));
        const auto packed = loadableModel(folder, {}, nullptr);
        QVERIFY2(packed.ok(), packed.status().text().c_str());
        QVERIFY(weights(*packed) == weights(direct));
        QCOMPARE(readFile(*packed / kRouterTableFile), readFile(folder / kRouterTableFile));
        const auto info = openContainer(*packed);
        QVERIFY(info.ok());
        QVERIFY(verifyContainer(*info, {}, nullptr).ok());
        QCOMPARE(info->expertType, DType(dtype));
    }

    void fromGgufToo() {
        for (const char* family : {"olmoe", "qwen3_moe", "mixtral"}) {
            TinyOptions o;
            o.family = family;
            const fs::path source = fresh().string() + ".gguf", direct = fresh();
            writeFile(source, ggufBytes(o, tinyTensors(o), 1));
            QVERIFY(convert(source, direct, ConvertLayout::Container, DType::F16).ok());
            const auto packed = loadableModel(flat(source, DType::F16), {}, nullptr);
            QVERIFY2(packed.ok(), packed.status().text().c_str());
            QVERIFY(weights(*packed) == weights(direct));
            // The hyper-parameters are also equal; only fields that identify the source differ.
            const auto parameters = [](const fs::path& folder) {
                nlohmann::json json = nlohmann::json::parse(readFile(folder / "model.json"));
                for (const char* key : {"source", "fingerprint", "name"}) json.erase(key);
                return json;
            };
            QCOMPARE(QString::fromStdString(parameters(*packed).dump()),
                     QString::fromStdString(parameters(direct).dump()));
        }
    }

    void packedOnceAndAgainWhenItChanges() {
        const fs::path folder = flat(checkpoint(tiny()));
        const auto packed = loadableModel(folder, {}, nullptr);
        QVERIFY(packed.ok());
        const auto time = [&] { return fs::last_write_time(*packed / "dense.bin"); };
        const auto before = time();
        QVERIFY(loadable(folder).ok());
        QVERIFY(time() == before);
        std::string bytes = readFile(folder / "expert_1_layer_0_w1.bin");
        std::swap(bytes[0], bytes[2]);
        std::swap(bytes[1], bytes[3]);
        writeFile(folder / "expert_1_layer_0_w1.bin", bytes);
        const auto old = expertValues(*openContainer(*packed), 0, 1, "w1");
        QVERIFY(loadable(folder).ok());
        const auto now = expertValues(*openContainer(*packed), 0, 1, "w1");
        QCOMPARE(now[0], old[1]);
        QCOMPARE(now[1], old[0]);
        // The path of a container is returned unchanged.
        QCOMPARE(*loadableModel(*packed, {}, nullptr), *packed);
    }

    void withoutADescriptionTheConfigNamesTheType() {
        TinyOptions o = tiny();
        const fs::path folder = flat(checkpoint(o));
        fs::remove(folder / kFlatFile);
        // Without the file the type is f16, the layout's default, although the data is bf16.
        QVERIFY(loadable(folder).ok());
        QCOMPARE(openContainer(folder / "container")->expertType, DType::F16);
        auto config = tinyConfig(o);
        config["torch_dtype"] = "bfloat16";
        writeFile(folder / "config.json", config.dump());
        QVERIFY(loadable(folder).ok());
        QCOMPARE(openContainer(folder / "container")->expertType, DType::BF16);
    }

    void brokenFoldersNameTheFile() {
        const TinyOptions o = tiny();
        const fs::path source = checkpoint(o);
        const auto refused = [&](const fs::path& folder, const char* named) {
            const Status status = loadable(folder);
            if (status.code() != Code::BadInput) return false;
            return status.message().find(named) != std::string::npos;
        };
        fs::path folder = flat(source);
        fs::remove(folder / "expert_3_layer_1_w2.bin");
        QVERIFY(refused(folder, "expert_3_layer_1_w2.bin is missing"));
        folder = flat(source);
        fs::resize_file(folder / "expert_2_layer_0_w3.bin", 100);
        QVERIFY(refused(folder, "expert_2_layer_0_w3.bin has 100 bytes, expected 5120"));
        folder = flat(source);
        fs::resize_file(folder / kFlatDenseFile, 1000);
        QVERIFY(refused(folder, kFlatDenseFile));
        folder = flat(source);
        fs::resize_file(folder / kRouterTableFile, 70);
        QVERIFY(refused(folder, kRouterTableFile));
        folder = flat(source);
        writeFile(folder / kFlatFile, R"({"schema": 1, "expert_dtype": "q4_0"})");
        QVERIFY(refused(folder, "q4_0"));
        writeFile(folder / kFlatFile, "{");
        QVERIFY(refused(folder, kFlatFile));
        folder = flat(source);
        fs::create_directories(folder / "container" / "mine");
        QVERIFY(refused(folder, "container"));
        QVERIFY(fs::exists(folder / "container" / "mine"));
        std::string bytes(5120, '\0');
        bytes[6] = char(0x80);  // bf16 infinity
        bytes[7] = char(0x7f);
        folder = flat(source);
        writeFile(folder / "expert_0_layer_0_w1.bin", bytes);
        QVERIFY(refused(folder, "experts.0.gate_proj.weight"));
        QVERIFY(!fs::exists(folder / "container"));
    }

    void quantisedTypesAreNotFlat() {
        const fs::path target = fresh();
        const Status status =
            convert(checkpoint(tiny()), target, ConvertLayout::Flat, DType::Q8_0).status();
        QCOMPARE(status.code(), Code::Unsupported);
        QVERIFY(!fs::exists(target));
    }

    void aStoppedConversionGoesOn() {
        const fs::path source = checkpoint(tiny());
        const fs::path whole = flat(source), target = fresh();
        ConvertOptions options;
        options.source = source;
        options.target = target;
        options.layout = ConvertLayout::Flat;
        for (const char* stage : {"Dense weights", "Experts, layer 2 of 2", "Router table"}) {
            CancelFlag cancel{false};
            const auto stop = [&](const Progress& p) { cancel = cancel || p.stage == stage; };
            const Status status = convertModel(options, stop, &cancel).status();
            QVERIFY(status.code() == Code::Cancelled || status.ok());
            QVERIFY(status.ok() == fs::exists(target));
            if (status.ok()) break;
        }
        if (!fs::exists(target)) QVERIFY(convertModel(options, {}, nullptr).ok());
        QVERIFY(folderContent(target) == folderContent(whole));
        // With other options, no flat file is left in the container.
        fs::path container = fresh();
        CancelFlag cancel{false};
        options.target = container;
        const auto stop = [&](const Progress& p) { cancel = p.stage == "Experts, layer 2 of 2"; };
        QCOMPARE(convertModel(options, stop, &cancel).status().code(), Code::Cancelled);
        QVERIFY(convert(source, container, ConvertLayout::Container).ok());
        for (const auto& [name, content] : folderContent(container)) {
            QVERIFY2(name.rfind("expert_", 0) != 0 && name != kFlatDenseFile, name.c_str());
        }
    }

    void namesOfOtherToolsAreRead_data() {
        QTest::addColumn<QString>("pattern");
        for (const char* pattern :
             {"expert_%1.%2.weight", "expert_%1.expert_feedforward.%2.weight",
              "expert_feedforward.expert_%1.%2.weight", "expert_feedforward.%1.%2.weight",
              "expert_feedforward_%1.%2.weight"}) {
            QTest::addRow("%s", pattern) << QString(pattern);
        }
    }
    void namesOfOtherToolsAreRead() {
        QFETCH(QString, pattern);
        const TinyOptions o = tiny();
        const Tensors tensors = tinyTensors(o);
        Tensors renamed;
        for (const auto& [name, tensor] : tensors) {
            const QString from = QString::fromStdString(name);
            const QStringList parts = from.split('.');
            if (!from.contains(".experts.")) {
                renamed[name] = tensor;
                continue;
            }
            const QString w = parts[6] == "gate_proj" ? "w1" : parts[6] == "up_proj" ? "w3" : "w2";
            const QString to = "model.layers." + parts[2] + "." + pattern.arg(parts[5], w);
            renamed[to.toStdString()] = tensor;
        }
        const fs::path source = fresh(), target = fresh(), direct = fresh();
        writeCheckpoint(source, tinyConfig(o), renamed, 1, true, "BF16");
        const auto info = convert(source, target, ConvertLayout::Container);
        QVERIFY2(info.ok(), info.status().text().c_str());
        QVERIFY(convert(checkpoint(o), direct, ConvertLayout::Container).ok());
        QVERIFY(weights(target) == weights(direct));
    }

    void theTableIsTheGateOfEachEmbedding() {
        for (const char* family : {"olmoe", "qwen3_moe"}) {
            const TinyOptions o = tiny(family);
            const Tensors tensors = tinyTensors(o);
            ConvertOptions options;
            options.source = checkpoint(o);
            options.target = fresh();
            options.routerTable = true;
            const auto info = convertModel(options, {}, nullptr);
            QVERIFY2(info.ok(), info.status().text().c_str());
            const auto table = RouterTable::load(options.target / kRouterTableFile, info->config);
            QVERIFY2(table.ok(), table.status().text().c_str());
            std::vector<int32_t> tokens(size_t(o.vocab)), chosen(size_t(o.vocab * o.topK));
            std::iota(tokens.begin(), tokens.end(), 0);
            for (int64_t layer = 0; layer < o.layers; ++layer) {
                const int64_t moe = info->config.moeIndex(layer);
                if (moe < 0) continue;
                (*table)->lookup(bestKernels(), moe, tokens, chosen.data());
                const std::string p = "model.layers." + std::to_string(layer) + ".";
                const auto& embed = tensors.at("model.embed_tokens.weight").values;
                const auto& norm = tensors.at(p + "post_attention_layernorm.weight").values;
                const auto& gate = tensors.at(p + "mlp.gate.weight").values;
                for (int64_t t = 0; t < o.vocab; ++t) {
                    // The scale of the norm does not change the order of the experts.
                    std::vector<float> logits(size_t(o.experts), 0.0f);
                    for (int64_t e = 0; e < o.experts; ++e) {
                        double sum = 0;
                        for (int64_t i = 0; i < o.hidden; ++i) {
                            sum += double(embed[size_t(t * o.hidden + i)]) *
                                   double(norm[size_t(i)]) * double(gate[size_t(e * o.hidden + i)]);
                        }
                        logits[size_t(e)] = float(sum);
                    }
                    std::vector<int> best(size_t(o.topK));
                    topK(logits.data(), int(o.experts), int(o.topK), best.data());
                    for (int64_t i = 0; i < o.topK; ++i) {
                        QCOMPARE(chosen[size_t(t * o.topK + i)], best[size_t(i)]);
                    }
                }
            }
        }
    }
};

QTEST_GUILESS_MAIN(TestFlat)
#include "test_flat.moc"
