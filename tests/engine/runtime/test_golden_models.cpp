// SPDX-License-Identifier: GPL-3.0-or-later
// The whole forward pass against the reference implementation, on every instruction set.
#include <QtTest>
#include <cmath>

#include <fstream>
#include <map>

#include "engine/base/file.h"
#include "engine/convert/source/families.h"
#include "engine/model/container.h"
#include "tests/engine/runtime/run_fixture.h"

using namespace colibri;
using namespace colibri::test;

namespace {

double largest(const std::vector<double>& x) {
    double best = 0;
    for (const double v : x) best = std::max(best, std::abs(v));
    return best;
}

// Largest difference, divided by the largest absolute logit of the position.
double relativeError(const std::vector<float>& got, const std::vector<double>& want) {
    double worst = 0;
    for (size_t i = 0; i < want.size(); ++i) {
        worst = std::max(worst, std::abs(double(got[i]) - want[i]));
    }
    return worst / largest(want);
}

// The context, because PhiMoE's rotation depends on it: long enough for prompt and greedy text.
const Knobs kExact{{KnobId::KvDtype, int64_t(KvType::F32)}, {KnobId::ContextLength, 128}};

}  // namespace

class TestGoldenModels : public QObject {
    Q_OBJECT

    static void addModels(bool quantisable) {
        QTest::addColumn<QString>("name");
        QTest::addColumn<int>("isa");
        for (const auto& entry : goldenIndex()) {
            if (quantisable && !entry["q8_ok"].get<bool>()) continue;
            for (const Isa isa : availableIsas()) {
                const QString name = QString::fromStdString(entry["name"]);
                QTest::newRow(
                    qPrintable(name + " " + QString::fromStdString(std::string(isaName(isa)))))
                    << name << int(isa);
            }
        }
    }
    static nlohmann::json expectedOf(const QString& name) {
        for (const auto& entry : goldenIndex()) {
            if (entry["name"] == name.toStdString()) return goldenExpected(entry);
        }
        return {};
    }

    static void compareRouting(const Engine::LogitsResult& got, const nlohmann::json& routing) {
        QCOMPARE(got.routing.size(), routing.size());
        for (size_t l = 0; l < routing.size(); ++l) {
            QCOMPARE(got.routing[l].layer, routing[l]["layer"].get<int64_t>());
            const auto experts = routing[l]["experts"].get<std::vector<std::vector<int>>>();
            const auto weights = routing[l]["weights"].get<std::vector<std::vector<double>>>();
            QCOMPARE(got.routing[l].experts, experts);
            for (size_t t = 0; t < weights.size(); ++t) {
                QVERIFY(relativeError(got.routing[l].weights[t], weights[t]) < 1e-4);
            }
        }
    }

    static bool sameExpertsUpTo(const Engine::LogitsResult& a, const Engine::LogitsResult& b,
                                size_t last) {
        for (size_t l = 0; l < a.routing.size(); ++l) {
            for (size_t t = 0; t <= last; ++t) {
                if (a.routing[l].experts[t] != b.routing[l].experts[t]) return false;
            }
        }
        return true;
    }

    static void compareAll(const nlohmann::json& expected, const std::filesystem::path& model,
                           Isa isa) {
        const auto prompt = expected["prompt"].get<std::vector<int32_t>>();
        const auto greedy = expected["greedy"].get<std::vector<int32_t>>();
        const auto engine = load(model, kExact, isa);

        Result<Engine::LogitsResult> result = engine->logits(prompt);
        QVERIFY2(result.ok(), result.status().text().c_str());
        QCOMPARE(result->logits.size(), prompt.size());
        for (const auto& row : expected["logits"]) {
            const auto& got = result->logits[row["position"].get<size_t>()];
            const double error = relativeError(got, row["values"].get<std::vector<double>>());
            QVERIFY2(error <= 1e-4, qPrintable(QString::number(error)));
        }
        for (size_t t = 0; t < prompt.size(); ++t) {
            const auto& row = result->logits[t];
            QCOMPARE(int(std::max_element(row.begin(), row.end()) - row.begin()),
                     expected["argmax"][t].get<int>());
        }
        compareRouting(*result, expected["routing"]);

        QCOMPARE(test::generate(*engine, prompt, int(greedy.size())), greedy);
        std::vector<int32_t> fed = prompt;
        fed.insert(fed.end(), greedy.begin(), greedy.end() - 1);
        result = engine->logits(fed);
        QVERIFY2(result.ok(), result.status().text().c_str());
        compareRouting(*result, expected["greedy_routing"]);
    }

private slots:
    void logitsRoutingAndGreedy_data() { addModels(false); }
    void logitsRoutingAndGreedy() {
        QFETCH(QString, name);
        QFETCH(int, isa);
        compareAll(expectedOf(name), goldenModel(name.toStdString()), Isa(isa));
    }

    // Keys and values with eight bits, compared up to the first token for which another expert is
    // chosen. With random weights, scores are close together and this happens.
    void eightBitCacheStaysClose_data() {
        QTest::addColumn<QString>("name");
        // Grouped heads, windows, sinks, latents.
        for (const char* name : {"olmoe", "qwen3moe", "qwen3-window", "gpt-oss", "deepseekv2"}) {
            QTest::newRow(name) << name;
        }
    }
    void eightBitCacheStaysClose() {
        QFETCH(QString, name);
        const nlohmann::json expected = expectedOf(name);
        const auto prompt = expected["prompt"].get<std::vector<int32_t>>();
        const std::filesystem::path model = goldenModel(name.toStdString());
        Knobs knobs = kExact;
        knobs[0].second = int64_t(KvType::Q8);
        const auto exact = load(model, kExact)->logits(prompt);
        const auto got = load(model, knobs)->logits(prompt);
        QVERIFY(exact.ok() && got.ok());
        double worst = 0;
        for (size_t t = 0; t < prompt.size(); ++t) {
            if (!sameExpertsUpTo(*got, *exact, t)) break;
            const std::vector<float>& want = exact->logits[t];
            worst = std::max(worst, relativeError(got->logits[t], {want.begin(), want.end()}));
        }
        QVERIFY2(worst > 0 && worst < 0.06, qPrintable(QString::number(worst)));
    }

    // GGUF files that the common converter made from these models, with the same values. The index
    // lists the settings for which the format has no key.
    void ggufTwins_data() {
        QTest::addColumn<QString>("name");
        QTest::addColumn<bool>("whole");
        for (const auto& entry : goldenGgufIndex()) {
            const auto name = QString::fromStdString(entry["name"]);
            QTest::newRow(qPrintable(name)) << name << entry["lost"].empty();
        }
    }
    void ggufTwins() {
        QFETCH(QString, name);
        QFETCH(bool, whole);
        const auto file = openContainer(goldenGguf(name.toStdString()));
        const auto folder = openContainer(goldenModel(name.toStdString()));
        QVERIFY2(file.ok(), file.status().text().c_str());
        QCOMPARE(file->config.family, folder->config.family);
        QCOMPARE(file->tensors.size(), folder->tensors.size());
        for (const TensorInfo& t : folder->tensors) {
            const TensorInfo* twin = file->find(t.name);
            QVERIFY2(twin && twin->hash == t.hash, t.name.c_str());
        }
        for (size_t i = 0; i < folder->expertLayers.size(); ++i) {
            QCOMPARE(file->expertLayers[i].hashes, folder->expertLayers[i].hashes);
        }
        if (whole) compareAll(expectedOf(name), file->dir, bestKernels().isa);
    }

    // The language model of a vision model: a nested config, and tensors with longer names among
    // others.
    void languageModelOfALargerOne_data() {
        QTest::addColumn<QString>("prefix");
        QTest::addColumn<QString>("head");
        QTest::newRow("model inside") << "language_model.model."
                                      << "language_model.lm_head.";
        QTest::newRow("model outside") << "model.language_model."
                                       << "lm_head.";
    }
    void languageModelOfALargerOne() {
        QFETCH(QString, prefix);
        QFETCH(QString, head);
        const auto from = std::filesystem::path(COLIBRI_GOLDEN_DIR) / "models" / "llama4";
        const auto to = scratchFolder() / QTest::currentDataTag();
        std::filesystem::create_directories(to);
        nlohmann::json inner = nlohmann::json::parse(*readTextFile(from / "config.json"));
        const nlohmann::json config = {{"model_type", "llama4"},
                                       {"eos_token_id", inner["eos_token_id"]},
                                       {"vision_config", {{"model_type", "llama4_vision_model"}}},
                                       {"text_config", std::move(inner)}};
        const std::string weights = *readTextFile(from / "model.safetensors");
        uint64_t length = 0;
        std::memcpy(&length, weights.data(), sizeof length);
        const nlohmann::json original = nlohmann::json::parse(weights.substr(8, length));
        nlohmann::json header;
        for (const auto& [name, tensor] : original.items()) {
            const bool isHead = name.starts_with("lm_head.");
            const std::string old = isHead ? "lm_head." : "model.";
            const std::string longer = (isHead ? head : prefix).toStdString();
            header[name.starts_with(old) ? longer + name.substr(old.size()) : name] = tensor;
        }
        std::string data = weights.substr(8 + length);
        header["vision_model.patch_embedding.weight"] = {
            {"dtype", "BF16"}, {"shape", {2, 2}}, {"data_offsets", {data.size(), data.size() + 8}}};
        data += std::string(8, '\1');
        const std::string text = header.dump();
        length = text.size();
        std::ofstream(to / "config.json") << config.dump();
        std::ofstream(to / "model.safetensors", std::ios::binary)
            << std::string(reinterpret_cast<char*>(&length), sizeof length) << text << data;

        compareAll(expectedOf("llama4"), convertedModel(to), bestKernels().isa);
    }

    // The table in the README lists the models that this program runs. A failure prints the
    // expected table.
    void readmeNamesWhatIsTested() {
        std::map<std::string, std::string> layouts, formats;  // by family
        const auto add = [](std::string& to, const std::string& word) {
            if ((", " + to + ", ").find(", " + word + ", ") != std::string::npos) return;
            to += (to.empty() ? "" : ", ") + word;
        };
        const std::map<std::string, std::string> words = {{"per_expert", "per expert"},
                                                          {"granite", "stacked in pairs"},
                                                          {"transposed", "stacked"},
                                                          {"transposed_interleaved", "stacked"}};
        for (const auto& entry : goldenIndex()) {
            const std::string layout = entry["layout"], dtype = entry["dtype"];
            std::string& to = layouts[entry["family"]];
            if (layout != "mxfp4") add(to, words.count(layout) ? words.at(layout) : layout);
            if (entry["files"].get<int>() > 1) add(to, "sharded");
            if (dtype == "fp8") add(to, "FP8 in blocks");
            if (dtype == "mxfp4") add(to, "MXFP4");
        }
        for (const auto& entry : goldenGgufIndex()) {
            std::string& to = formats[entry["family"]];
            if (to.empty()) to = "yes";
            for (const std::string lost : entry["lost"]) {
                to += (to == "yes" ? "; no key for " : ", ") + lost;
            }
        }
        std::string table;
        for (const FamilyRow& row : families()) {
            QVERIFY2(layouts.count(row.modelType), row.modelType);
            const auto gguf = formats.find(row.modelType);
            table += "| " + std::string(row.title) + " | `" + row.modelType + "` | " +
                     layouts[row.modelType] + " | " +
                     (gguf != formats.end() ? gguf->second
                      : row.ggufArch        ? "read, not tested"
                                            : "no") +
                     " |\n";
        }
        std::ifstream file(std::filesystem::path(COLIBRI_SOURCE_DIR) / "README.md");
        const std::string readme{std::istreambuf_iterator<char>(file), {}};
        if (readme.find(table) == std::string::npos) std::puts(table.c_str());
        QVERIFY2(readme.find(table) != std::string::npos, "the README has another table");
    }

    static bool sameExperts(const Engine::LogitsResult& got, const nlohmann::json& routing) {
        for (size_t l = 0; l < routing.size(); ++l) {
            if (nlohmann::json(got.routing[l].experts) != routing[l]["experts"]) return false;
        }
        return true;
    }

    // Quantised weights: the error relative to f32 stays within the limits of 8 and 4 bits. These
    // random models are small and sensitive; the bounds are 1.5 times the measured values. A single
    // different expert for one token changes much.
    void quantisedStaysClose_data() { addModels(true); }
    void quantisedStaysClose() {
        QFETCH(QString, name);
        QFETCH(int, isa);
        const nlohmann::json expected = expectedOf(name);
        const auto prompt = expected["prompt"].get<std::vector<int32_t>>();
        for (const auto& [type, bound] : {std::pair{DType::Q8_0, 0.15}, {DType::Q4_0, 0.9}}) {
            const auto engine = load(goldenModel(name.toStdString(), type), {}, Isa(isa));
            Result<Engine::LogitsResult> result = engine->logits(prompt);
            QVERIFY2(result.ok(), result.status().text().c_str());
            // Root mean square over the last positions, relative to that of the logits.
            double difference = 0, size = 0;
            for (const auto& row : expected["logits"]) {
                const auto want = row["values"].get<std::vector<double>>();
                const auto& got = result->logits[row["position"].get<size_t>()];
                for (size_t i = 0; i < want.size(); ++i) {
                    difference += (double(got[i]) - want[i]) * (double(got[i]) - want[i]);
                    size += want[i] * want[i];
                }
            }
            const double error = std::sqrt(difference / size);
            qInfo("%s: relative rms error %.4f", std::string(dtypeName(type)).c_str(), error);
            const bool same = sameExperts(*result, expected["routing"]);
            QVERIFY2(error < (same ? bound : 0.9), qPrintable(QString::number(error)));
        }
    }
};

QTEST_GUILESS_MAIN(TestGoldenModels)
#include "test_golden_models.moc"
