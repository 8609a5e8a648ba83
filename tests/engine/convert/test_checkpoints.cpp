// SPDX-License-Identifier: GPL-3.0-or-later
// Conversion of whole checkpoints: every layout, type and family gives the correct values, and
// errors name the tensors that do not fit.
#include <QTemporaryDir>
#include <QTest>
#include <cmath>

#include "engine/convert/converter.h"
#include "engine/convert/hf/hf_config.h"
#include "engine/convert/inspect.h"
#include "tests/engine/convert/checkpoint_maker.h"

using namespace colibri;
using namespace colibri::test;
namespace fs = std::filesystem;

namespace {

Result<ContainerInfo> convert(const fs::path& source, const fs::path& target,
                              std::optional<DType> dtype = {}, const std::string& name = "tiny") {
    return convertModel({source, target, dtype, name}, {}, nullptr);
}

// Largest difference relative to the largest magnitude.
double difference(const std::vector<float>& a, const std::vector<float>& b) {
    if (a.size() != b.size() || a.empty()) return INFINITY;
    double largest = 0, off = 0;
    for (size_t i = 0; i < a.size(); ++i) {
        largest = std::max(largest, double(std::abs(b[i])));
        off = std::max(off, double(std::abs(a[i] - b[i])));
    }
    return off / largest;
}

// The expected model.json of one file, without the fields that identify the source.
std::map<std::string, std::string> withoutSource(const fs::path& folder) {
    auto content = folderContent(folder);
    std::string& json = content["model.json"];
    for (const char* key : {"\"fingerprint\"", "\"source\""}) {
        size_t at = json.find(key);
        json.erase(at, json.find('\n', at) - at);
    }
    return content;
}

}  // namespace

class TestCheckpoints : public QObject {
    Q_OBJECT

    QTemporaryDir m_dir;
    int m_number = 0;
    fs::path fresh() { return fs::path(m_dir.path().toStdString()) / std::to_string(m_number++); }

private slots:
    void everyTensorKeepsItsValues_data() {
        QTest::addColumn<QString>("family");
        QTest::addColumn<QString>("sourceType");
        QTest::addColumn<int>("dtype");  // -1: none
        QTest::addColumn<double>("tolerance");
        for (const char* family : {"olmoe", "qwen3_moe", "mixtral"}) {
            for (const char* type : {"F32", "F16", "BF16"}) {
                auto row = [&](const char* name, int dtype, double tolerance) {
                    QTest::addRow("%s %s to %s", family, type, name)
                        << QString(family) << QString(type) << dtype << tolerance;
                };
                row("source", -1, 0);
                row("f32", int(DType::F32), 0);
                row("f16", int(DType::F16), 0);
                row("bf16", int(DType::BF16), 0);
                row("q8_0", int(DType::Q8_0), 0.5 / 127 + 1e-3);
                row("q4_0", int(DType::Q4_0), 1.0 / 8 + 1e-3);
            }
        }
    }
    void everyTensorKeepsItsValues() {
        QFETCH(QString, family);
        QFETCH(QString, sourceType);
        QFETCH(int, dtype);
        QFETCH(double, tolerance);
        TinyOptions o;
        o.family = family.toStdString();
        o.bias = family == "olmoe";
        if (family == "qwen3_moe") {
            o.layers = 3;
            o.denseLayers = {1};
        }
        const Tensors tensors = tinyTensors(o);
        const fs::path source = fresh(), target = fresh();
        writeCheckpoint(source, tinyConfig(o), tensors, 1, true, sourceType.toStdString());
        std::optional<DType> asked;
        if (dtype >= 0) asked = DType(dtype);
        Result<ContainerInfo> info = convert(source, target, asked);
        QVERIFY2(info.ok(), info.status().text().c_str());
        QVERIFY(verifyContainer(*info, {}, nullptr).ok());

        const bool mixtral = family == "mixtral";
        auto check = [&](const std::vector<float>& got, const std::string& name, double limit) {
            const double d = difference(got, tensors.at(name).values);
            if (!(d <= limit)) qWarning("%s: off by %g", name.c_str(), d);
            return d <= limit;
        };
        const bool q4 = asked == DType::Q4_0;
        const double keep = q4 ? 0.5 / 127 + 1e-3 : tolerance;
        QVERIFY(check(containerValues(*info, "embed"), "model.embed_tokens.weight", keep));
        QVERIFY(check(containerValues(*info, "head"), "lm_head.weight", keep));
        QVERIFY(check(containerValues(*info, "norm"), "model.norm.weight", 0));
        for (int64_t layer = 0; layer < o.layers; ++layer) {
            const std::string l = std::to_string(layer) + ".";
            const std::string p = "model.layers." + l;
            QVERIFY(
                check(containerValues(*info, l + "q"), p + "self_attn.q_proj.weight", tolerance));
            QVERIFY(
                check(containerValues(*info, l + "k"), p + "self_attn.k_proj.weight", tolerance));
            QVERIFY(
                check(containerValues(*info, l + "v"), p + "self_attn.v_proj.weight", tolerance));
            QVERIFY(
                check(containerValues(*info, l + "o"), p + "self_attn.o_proj.weight", tolerance));
            QVERIFY(
                check(containerValues(*info, l + "attn_norm"), p + "input_layernorm.weight", 0));
            QVERIFY(check(containerValues(*info, l + "ffn_norm"),
                          p + "post_attention_layernorm.weight", 0));
            if (!mixtral) {
                QVERIFY(
                    check(containerValues(*info, l + "q_norm"), p + "self_attn.q_norm.weight", 0));
                QVERIFY(
                    check(containerValues(*info, l + "k_norm"), p + "self_attn.k_norm.weight", 0));
            }
            if (o.bias) {
                for (std::string x : {"q", "k", "v", "o"}) {
                    QVERIFY(check(containerValues(*info, l + x + "_bias"),
                                  p + "self_attn." + x + "_proj.bias", 0));
                }
            }
            if (!info->config.moeLayer[size_t(layer)]) {
                QVERIFY(check(containerValues(*info, l + "gate"), p + "mlp.gate_proj.weight",
                              tolerance));
                QVERIFY(
                    check(containerValues(*info, l + "up"), p + "mlp.up_proj.weight", tolerance));
                QVERIFY(check(containerValues(*info, l + "down"), p + "mlp.down_proj.weight",
                              tolerance));
                continue;
            }
            const std::string m = p + (mixtral ? "block_sparse_moe." : "mlp.");
            QVERIFY(check(containerValues(*info, l + "router"), m + "gate.weight", 0));
            for (int64_t e = 0; e < o.experts; ++e) {
                const std::string x = m + "experts." + std::to_string(e) + ".";
                QVERIFY(check(expertValues(*info, layer, e, "w1"),
                              x + (mixtral ? "w1.weight" : "gate_proj.weight"), tolerance));
                QVERIFY(check(expertValues(*info, layer, e, "w3"),
                              x + (mixtral ? "w3.weight" : "up_proj.weight"), tolerance));
                QVERIFY(check(expertValues(*info, layer, e, "w2"),
                              x + (mixtral ? "w2.weight" : "down_proj.weight"), tolerance));
            }
        }
    }

    void everyLayoutGivesTheSameContainer() {
        for (const char* family : {"olmoe", "qwen3_moe", "mixtral"}) {
            TinyOptions o;
            o.family = family;
            const Tensors tensors = tinyTensors(o);
            const fs::path plain = fresh(), sharded = fresh(), bare = fresh(), stack = fresh();
            writeCheckpoint(plain, tinyConfig(o), tensors);
            writeCheckpoint(sharded, tinyConfig(o), tensors, 5, true);
            writeCheckpoint(bare, tinyConfig(o), tensors, 3, false);
            writeCheckpoint(stack, tinyConfig(o), stacked(tensors, o), 2);
            // Configs of both major versions of the library are read.
            nlohmann::json newer = tinyConfig(o);
            newer["rope_parameters"] = {{"rope_type", "default"}, {"rope_theta", 10000.0}};
            newer.erase("rope_theta");
            if (newer.contains("num_experts")) {
                newer["num_local_experts"] = newer["num_experts"];
                newer.erase("num_experts");
            }
            writeFile(stack / "config.json", newer.dump());
            const fs::path reference = fresh();
            Result<ContainerInfo> first = convert(plain, reference, DType::Q8_0);
            QVERIFY2(first.ok(), first.status().text().c_str());
            const auto expected = withoutSource(reference);
            for (const fs::path& source : {sharded, bare, stack, plain / "model.safetensors",
                                           sharded / "model-00002-of-00005.safetensors"}) {
                const fs::path target = fresh();
                Result<ContainerInfo> info = convert(source, target, DType::Q8_0);
                QVERIFY2(info.ok(), info.status().text().c_str());
                QVERIFY(withoutSource(target) == expected);
            }
        }
    }

    void goldenModels_data() {
        QTest::addColumn<QString>("name");
        const fs::path index = fs::path(COLIBRI_GOLDEN_DIR) / "models" / "index.json";
        for (auto& m : nlohmann::json::parse(readFile(index))) {
            const QString name = QString::fromStdString(m["name"]);
            QTest::newRow(qPrintable(name)) << name;
        }
    }
    void goldenModels() {
        QFETCH(QString, name);
        const fs::path source = fs::path(COLIBRI_GOLDEN_DIR) / "models" / name.toStdString();
        const fs::path target = fresh();
        Result<SourceInfo> seen = inspectSource(source);
        QVERIFY2(seen.ok(), seen.status().text().c_str());
        QVERIFY(seen->hasTokenizer && seen->hasTemplate);
        Result<ContainerInfo> planned = plannedContainer(source, DType::F32);
        QVERIFY(planned.ok());
        Result<ContainerInfo> info = convert(source, target, DType::F32, "");
        QVERIFY2(info.ok(), info.status().text().c_str());
        QCOMPARE(containerBytes(*info), containerBytes(*planned));
        QCOMPARE(QString::fromStdString(info->config.name), name);
        QVERIFY(readFile(target / "tokenizer.json") == readFile(source / "tokenizer.json"));
        QVERIFY(readFile(target / "chat_template.jinja") ==
                readFile(source / "chat_template.jinja"));
        QVERIFY(!info->config.eosIds.empty());
        QVERIFY(std::abs(info->config.temperature - 0.7f) < 1e-6f);
        // Each parameter of the source occurs once in the container.
        QVERIFY(verifyContainer(*info, {}, nullptr).ok());
    }

    void faultsAreListed() {
        TinyOptions o;
        const fs::path source = fresh();
        Tensors tensors = tinyTensors(o);
        tensors.erase("model.layers.1.self_attn.v_proj.weight");
        tensors.erase("model.layers.0.mlp.experts.2.up_proj.weight");
        tensors["model.norm.weight"].shape = {32};
        tensors["model.norm.weight"].values.resize(32);
        tensors["model.layers.0.mlp.shared_expert.gate_proj.weight"] = {{1}, {1.0f}};
        writeCheckpoint(source, tinyConfig(o), tensors);
        const fs::path target = fresh();
        Result<ContainerInfo> info = convert(source, target);
        QVERIFY(!info.ok());
        QCOMPARE(int(info.status().code()), int(Code::BadInput));
        const std::string text = info.status().message();
        for (const char* part :
             {"missing (2)", "model.layers.1.self_attn.v_proj.weight",
              "model.layers.0.mlp.experts.2.up_proj.weight", "of the wrong shape (1)",
              "model.norm.weight [32], expected [64]", "unknown (1)",
              "model.layers.0.mlp.shared_expert.gate_proj.weight F32 [1]"}) {
            QVERIFY2(text.find(part) != std::string::npos, (part + (" not in " + text)).c_str());
        }
        QVERIFY(!fs::exists(target) && !fs::exists(target.string() + ".partial"));
    }

    void transposedExpertsAreRefused() {
        TinyOptions o;
        Tensors tensors = stacked(tinyTensors(o), o);
        std::swap(tensors["model.layers.0.mlp.experts.gate_up_proj"].shape[1],
                  tensors["model.layers.0.mlp.experts.gate_up_proj"].shape[2]);
        const fs::path source = fresh();
        writeCheckpoint(source, tinyConfig(o), tensors);
        Result<ContainerInfo> info = convert(source, fresh());
        QVERIFY(!info.ok());
        QVERIFY(info.status().message().find("[4, 64, 80], expected [4, 80, 64]") !=
                std::string::npos);
    }

    void valuesThatAreNotNumbers() {
        TinyOptions o;
        Tensors tensors = tinyTensors(o);
        tensors["model.layers.0.self_attn.q_proj.weight"].values[7] = NAN;
        tensors["model.layers.1.self_attn.k_proj.weight"].values[0] = -INFINITY;
        const fs::path source = fresh();
        writeCheckpoint(source, tinyConfig(o), tensors);
        for (std::optional<DType> dtype : {std::optional<DType>(), {DType::Q4_0}, {DType::F16}}) {
            const fs::path target = fresh();
            Result<ContainerInfo> info = convert(source, target, dtype);
            QCOMPARE(int(info.status().code()), int(Code::BadInput));
            const std::string text = info.status().message();
            QVERIFY(text.find("model.layers.0.self_attn.q_proj.weight") != std::string::npos);
            QVERIFY(text.find("model.layers.1.self_attn.k_proj.weight") != std::string::npos);
            QVERIFY(!fs::exists(target) && !fs::exists(target.string() + ".partial"));
        }
        Tensors expert = tinyTensors(o);
        expert["model.layers.1.mlp.experts.3.down_proj.weight"].values[1] = NAN;
        writeCheckpoint(source, tinyConfig(o), expert);
        Result<ContainerInfo> info = convert(source, fresh(), DType::Q8_0);
        QVERIFY(info.status().message().find("model.layers.1.mlp.experts.3.down_proj.weight") !=
                std::string::npos);
    }

    void tooLargeForHalf() {
        TinyOptions o;
        Tensors tensors = tinyTensors(o);
        tensors["model.layers.0.mlp.experts.1.up_proj.weight"].values[3] = 70000.0f;
        const fs::path source = fresh();
        writeCheckpoint(source, tinyConfig(o), tensors, 1, true, "BF16");
        Result<ContainerInfo> half = convert(source, fresh(), DType::F16);
        QCOMPARE(int(half.status().code()), int(Code::BadInput));
        QVERIFY(half.status().text().find("mlp.experts.1.up_proj.weight") != std::string::npos);
        QVERIFY(half.status().text().find("bf16") != std::string::npos);
        QVERIFY(convert(source, fresh(), DType::BF16).ok());
        QVERIFY(convert(source, fresh(), DType::Q8_0).ok());
    }

    void ignorableTensors() {
        TinyOptions o;
        o.tied = true;
        Tensors tensors = tinyTensors(o);
        tensors["model.layers.0.self_attn.rotary_emb.inv_freq"] = {{2}, {1, 2}};
        tensors["lm_head.weight"] = tensors["model.embed_tokens.weight"];  // the tied copy
        tensors["model.layers.2.mlp.anything.weight"] = {{1}, {1}};        // after the last layer
        const fs::path source = fresh();
        nlohmann::json config = tinyConfig(o);
        writeCheckpoint(source, config, tensors);
        Result<ContainerInfo> refused = convert(source, fresh());
        QVERIFY(!refused.ok());
        QVERIFY(refused.status().message().find("unknown (1)") != std::string::npos);
        config["num_nextn_predict_layers"] = 1;
        writeFile(source / "config.json", config.dump());
        Result<ContainerInfo> info = convert(source, fresh());
        QVERIFY2(info.ok(), info.status().text().c_str());
        QVERIFY(info->config.tiedEmbeddings && !info->find("head"));
    }

    void singleMatricesHaveTheTypeThatIsAskedFor() {
        TinyOptions o;
        const fs::path source = fresh(), target = fresh();
        writeCheckpoint(source, tinyConfig(o), tinyTensors(o));
        ConvertOptions options{source, target, DType::Q4_0};
        options.types = {{"head", DType::F16}, {"v", DType::Q8_0}, {"w2", DType::Q8_0}};
        Result<ContainerInfo> info = convertModel(options, {}, nullptr);
        QVERIFY2(info.ok(), info.status().text().c_str());
        QCOMPARE(info->find("head")->dtype, DType::F16);
        QCOMPARE(info->find("embed")->dtype, DType::Q8_0);
        QCOMPARE(info->find("1.v")->dtype, DType::Q8_0);
        QCOMPARE(info->find("1.q")->dtype, DType::Q4_0);
        QCOMPARE(info->expertLayers[0].types.w1, DType::Q4_0);
        QCOMPARE(info->expertLayers[0].types.w2, DType::Q8_0);
        options.target = fresh();
        options.types = {{"w4", DType::F16}};
        const Status refused = convertModel(options, {}, nullptr).status();
        QCOMPARE(int(refused.code()), int(Code::InvalidArgument));
        QVERIFY(refused.text().find("embed, q, k, v, o") != std::string::npos);
        QVERIFY(!fs::exists(options.target));
    }

    // A bug applied the scaling once for each spelling in the config.
    void bothSpellingsOfARotationCountOnce() {
        for (const char* name : {"deepseekv3", "phimoe"}) {
            const fs::path file = fs::path(COLIBRI_GOLDEN_DIR) / "models" / name / "config.json";
            nlohmann::json config = nlohmann::json::parse(readFile(file));
            const Result<HfConfig> one = readHfConfig(config, {}, "config.json");
            config["rope_scaling"] = config["rope_parameters"];
            const Result<HfConfig> both = readHfConfig(config, {}, "config.json");
            QVERIFY2(one.ok(), one.status().text().c_str());
            QVERIFY2(both.ok(), both.status().text().c_str());
            QCOMPARE(both->config.attentionScale, one->config.attentionScale);
            QCOMPARE(both->config.rope.divisors, one->config.rope.divisors);
        }
    }

    void absentTieIsDecidedByTheHead() {
        for (bool tied : {true, false}) {
            TinyOptions o;
            o.tied = tied;
            nlohmann::json config = tinyConfig(o);
            config.erase("tie_word_embeddings");
            const fs::path source = fresh();
            writeCheckpoint(source, config, tinyTensors(o));
            Result<ContainerInfo> info = convert(source, fresh());
            QVERIFY2(info.ok(), info.status().text().c_str());
            QCOMPARE(info->config.tiedEmbeddings, tied);
        }
    }

    void unsupportedIsNamed_data() {
        QTest::addColumn<QString>("patch");
        QTest::addColumn<QString>("named");
        auto row = [](const char* name, const char* patch, const char* named) {
            QTest::newRow(name) << QString(patch) << QString(named);
        };
        row("family", R"({"model_type": "jamba"})", "jamba");
        row("activation", R"({"hidden_act": "gelu"})", "gelu");
        row("rotation", R"({"rope_scaling": {"rope_type": "proportional", "factor": 4}})",
            "proportional");
        row("old key", R"({"rope_scaling": {"type": "mrope", "factor": 4}})", "mrope");
        row("per layer type",
            R"({"rope_parameters": {"full_attention": {"rope_type": "default"}}})",
            "per layer type");
        row("fp8", R"({"quantization_config": {"quant_method": "fp8"}})", "fp8");
        for (const char* method :
             {"gptq", "awq", "bitsandbytes", "compressed-tensors", "modelopt"}) {
            row(method,
                qPrintable(
                    QString(R"({"quantization_config": {"quant_method": "%1"}})").arg(method)),
                method);
        }
        row("soft cap", R"({"final_logit_softcapping": 30})", "final_logit_softcapping");
        row("partial rotary", R"({"partial_rotary_factor": 0.5})", "partial_rotary_factor");
        row("layer types", R"({"layer_types": ["full_attention", "linear_attention"]})",
            "layer_types");
    }
    void unsupportedIsNamed() {
        QFETCH(QString, patch);
        QFETCH(QString, named);
        TinyOptions o;
        nlohmann::json config = tinyConfig(o);
        config.update(nlohmann::json::parse(patch.toStdString()));
        const fs::path source = fresh();
        writeCheckpoint(source, config, tinyTensors(o));
        Result<ContainerInfo> info = convert(source, fresh());
        QCOMPARE(int(info.status().code()), int(Code::Unsupported));
        QVERIFY2(info.status().message().find(named.toStdString()) != std::string::npos,
                 info.status().message().c_str());
    }

    void senselessConfigs_data() {
        QTest::addColumn<QString>("patch");
        for (
            const char* patch :
            {R"({"num_experts_per_tok": 5})", R"({"num_experts_per_tok": 0})",
             R"({"num_key_value_heads": 3})", R"({"hidden_size": -4})", R"({"hidden_size": 1e18})",
             R"({"hidden_size": "64"})", R"({"num_hidden_layers": 9223372036854775807})",
             R"({"num_hidden_layers": 0})", R"({"vocab_size": 18446744073709551615})",
             R"({"head_dim": 15})", R"({"rms_norm_eps": -1})", R"({"rope_theta": 0})",
             R"({"num_experts": 4000000000})", R"({"eos_token_id": "x"})",
             R"({"num_experts": 65535, "num_hidden_layers": 4096, "intermediate_size": 4194304})"}) {
            QTest::newRow(patch) << QString(patch);
        }
    }
    void senselessConfigs() {
        QFETCH(QString, patch);
        TinyOptions o;
        nlohmann::json config = tinyConfig(o);
        config.update(nlohmann::json::parse(patch.toStdString()));
        const fs::path source = fresh();
        writeCheckpoint(source, config, tinyTensors(o));
        Result<ContainerInfo> info = convert(source, fresh());
        QVERIFY(!info.ok());
        QCOMPARE(int(info.status().code()), int(Code::BadInput));
    }

    void incompleteDownloads() {
        TinyOptions o;
        const fs::path source = fresh();
        writeCheckpoint(source, tinyConfig(o), tinyTensors(o), 4, true);
        fs::remove(source / "model-00003-of-00004.safetensors");
        Result<ContainerInfo> info = convert(source, fresh());
        QVERIFY(info.status().message().find("model-00003-of-00004.safetensors") !=
                std::string::npos);
        fs::remove(source / "model.safetensors.index.json");
        info = convert(source, fresh());
        QVERIFY(info.status().message().find("shard 3 of 4") != std::string::npos);
        for (auto& e : fs::directory_iterator(source)) {
            if (e.path().extension() == ".safetensors") fs::remove(e.path());
        }
        writeFile(source / "pytorch_model.bin", "x");
        info = convert(source, fresh());
        QCOMPARE(int(info.status().code()), int(Code::Unsupported));
        fs::remove(source / "config.json");
        QVERIFY(!convert(source, fresh()).ok());
        QVERIFY(!convert(source / "nothing", fresh()).ok());
    }

    void anIndexCannotLeaveItsFolder() {
        TinyOptions o;
        const fs::path source = fresh();
        writeCheckpoint(source, tinyConfig(o), tinyTensors(o), 2, true);
        writeFile(source / "model.safetensors.index.json",
                  R"({"weight_map": {"a": "../model.safetensors"}})");
        Result<ContainerInfo> info = convert(source, fresh());
        QVERIFY(info.status().message().find("plain file name") != std::string::npos);
    }

    void optionsReachTheContainer() {
        TinyOptions o;
        o.family = "qwen3_moe";
        nlohmann::json config = tinyConfig(o);
        config["use_sliding_window"] = false;
        config["sliding_window"] = 128;
        config["max_window_layers"] = 1;
        config["eos_token_id"] = {5, 6};
        config["rope_scaling"] = {{"type", "linear"}, {"factor", 2.0}};
        config.erase("norm_topk_prob");
        const fs::path source = fresh();
        writeCheckpoint(source, config, tinyTensors(o));
        writeFile(source / "generation_config.json",
                  R"({"eos_token_id": [7, 8, 9], "temperature": 0.6, "top_p": 0.95, "top_k": 20})");
        Result<ContainerInfo> info = convert(source, fresh());
        QVERIFY2(info.ok(), info.status().text().c_str());
        const ModelConfig& c = info->config;
        QCOMPARE(c.slidingWindow, 0);
        QVERIFY(c.eosIds == (std::vector<int32_t>{7, 8, 9}));
        QCOMPARE(c.bosId, -1);
        QCOMPARE(c.rope.factor, 2.0);
        QCOMPARE(c.rope.type, std::string("linear"));
        QVERIFY(!c.routing.renorm);  // an absent key means false
        QCOMPARE(c.temperature, 0.6f);
        QCOMPARE(c.topP, 0.95f);
        QCOMPARE(c.topKSampling, 20);
        config["use_sliding_window"] = true;
        config["norm_topk_prob"] = true;
        writeFile(source / "config.json", config.dump());
        info = convert(source, fresh());
        QVERIFY(info.ok());
        QCOMPARE(info->config.slidingWindow, 128);
        QVERIFY(info->config.routing.renorm);
    }

    void fingerprintsTellFineTunesApart() {
        TinyOptions o;
        const fs::path a = fresh(), copy = fresh(), other = fresh();
        writeCheckpoint(a, tinyConfig(o), tinyTensors(o));
        writeCheckpoint(copy, tinyConfig(o), tinyTensors(o));
        o.seed = 2;
        writeCheckpoint(other, tinyConfig(o), tinyTensors(o));
        QCOMPARE(inspectSource(a)->fingerprint, inspectSource(copy)->fingerprint);
        QVERIFY(inspectSource(a)->fingerprint != inspectSource(other)->fingerprint);
    }
};

QTEST_GUILESS_MAIN(TestCheckpoints)
#include "test_checkpoints.moc"
