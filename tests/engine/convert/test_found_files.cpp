// SPDX-License-Identifier: GPL-3.0-or-later
// Paths that users really give: each is read, or the error says what it is and what to do.
#include <QTemporaryDir>
#include <QTest>

#include "engine/convert/converter.h"
#include "engine/convert/inspect.h"
#include "engine/convert/open_source.h"
#include "tests/engine/convert/checkpoint_maker.h"

using namespace colibri;
using namespace colibri::test;
namespace fs = std::filesystem;

namespace {

constexpr const char* kCommit = "0123456789abcdef0123456789abcdef01234567";
const std::string kPointer =
    "version https://git-lfs.github.com/spec/v1\noid sha256:" + std::string(64, 'a') +
    "\nsize 4976698672\n";

bool has(const std::string& text, const std::string& part) {
    if (text.find(part) != std::string::npos) return true;
    qWarning("\"%s\" is not in: %s", part.c_str(), text.c_str());
    return false;
}

bool hasNote(const SourceInfo& info, const std::string& part) {
    for (const std::string& note : info.notes) {
        if (note.find(part) != std::string::npos) return true;
    }
    for (const std::string& note : info.notes) qWarning("note: %s", note.c_str());
    return false;
}

// A folder of the Hugging Face cache: snapshots of links into blobs.
fs::path makeHubFolder(const fs::path& where, const Tensors& tensors, const TinyOptions& o) {
    const fs::path folder = where / "models--some-org--tiny-moe";
    const fs::path snapshot = folder / "snapshots" / kCommit, blobs = folder / "blobs";
    fs::create_directories(snapshot);
    fs::create_directories(blobs);
    fs::create_directories(folder / "refs");
    writeFile(folder / "refs" / "main", kCommit);
    const fs::path plain = where / "plain";
    writeCheckpoint(plain, tinyConfig(o), tensors);
    int number = 0;
    for (const char* name : {"config.json", "model.safetensors"}) {
        const std::string blob = "blob" + std::to_string(number++);
        fs::rename(plain / name, blobs / blob);
        fs::create_symlink(fs::path("../../blobs") / blob, snapshot / name);
    }
    return folder;
}

}  // namespace

class TestFoundFiles : public QObject {
    Q_OBJECT

    QTemporaryDir m_dir;
    int m_number = 0;
    TinyOptions m_options;
    Tensors m_tensors = tinyTensors(m_options);

    fs::path fresh() {
        const fs::path path = fs::path(m_dir.path().toStdString()) / std::to_string(m_number++);
        fs::create_directories(path);
        return path;
    }
    fs::path checkpoint() {
        const fs::path folder = fresh();
        writeCheckpoint(folder, tinyConfig(m_options), m_tensors);
        return folder;
    }
    std::string faultOf(const fs::path& path, Code code) {
        const Result<SourceInfo> info = inspectSource(path);
        if (info.ok()) return "it was read";
        if (info.status().code() != code) return "another code: " + info.status().text();
        if (info.status().hint().empty()) return "no remedy: " + info.status().text();
        return info.status().text();
    }

private slots:
    void aHubCacheFolderIsItsSnapshot() {
        const fs::path folder = makeHubFolder(fresh(), m_tensors, m_options);
        QVERIFY(sourceKindOf(folder) == SourceKind::HuggingFace);
        for (const fs::path& path : {folder, folder / "snapshots" / kCommit,
                                     folder / "snapshots" / kCommit / "model.safetensors"}) {
            const Result<SourceInfo> info = inspectSource(path);
            QVERIFY2(info.ok(), info.status().text().c_str());
            QCOMPARE(info->config.name, "some-org/tiny-moe");
        }
        // Without the ref the newest snapshot is used, with a note.
        fs::remove(folder / "refs" / "main");
        fs::create_directories(folder / "snapshots" / "0000");
        fs::last_write_time(folder / "snapshots" / "0000", fs::file_time_type::min());
        const Result<SourceInfo> info = inspectSource(folder);
        QVERIFY2(info.ok(), info.status().text().c_str());
        QVERIFY(hasNote(*info, kCommit));
        // A cache with only this model is accepted too. With several models the error lists them.
        QVERIFY(inspectSource(folder.parent_path()).ok());
        fs::create_directories(folder.parent_path() / "models--other--moe");
        QVERIFY(has(faultOf(folder.parent_path(), Code::BadInput), "models--some-org--tiny-moe"));
        fs::remove_all(folder / "snapshots");
        fs::create_directories(folder / "snapshots");
        QVERIFY(has(faultOf(folder, Code::BadInput), "without a snapshot"));
    }

    void aFolderOfOneGgufIsThatModel() {
        const fs::path folder = fresh();
        writeFile(folder / "tiny-f16.gguf", ggufBytes(m_options, m_tensors, 1));
        writeFile(folder / "mmproj-tiny.gguf", "GGUF");
        QVERIFY(sourceKindOf(folder) == SourceKind::Gguf);
        const Result<SourceInfo> info = inspectSource(folder);
        QVERIFY2(info.ok(), info.status().text().c_str());
        writeFile(folder / "tiny-q8.gguf", ggufBytes(m_options, m_tensors, 8));
        const std::string fault = faultOf(folder, Code::BadInput);
        QVERIFY(has(fault, "tiny-f16.gguf") && has(fault, "tiny-q8.gguf"));
    }

    void filesThatAreSomethingElseAreNamed_data() {
        QTest::addColumn<QString>("file");
        QTest::addColumn<QByteArray>("content");
        QTest::addColumn<int>("code");
        QTest::addColumn<QString>("said");
        const QByteArray pointer = QByteArray::fromStdString(kPointer);
        const QByteArray html =
            "\n<!DOCTYPE html>\n<html><head><title>Log in</title>" + QByteArray(9000, ' ');
        const int bad = int(Code::BadInput), unsupported = int(Code::Unsupported);
        for (const char* file : {"model.safetensors", "config.json"}) {
            QTest::addRow("pointer as %s", file)
                << QString(file) << pointer << bad << "git lfs pull";
            QTest::addRow("page as %s", file) << QString(file) << html << bad << "HTML page";
            QTest::addRow("empty %s", file) << QString(file) << QByteArray() << bad << "is empty";
        }
        QTest::newRow("error text")
            << "model.safetensors" << QByteArray("Entry not found") << bad << "\"Entry not found\"";
        QTest::newRow("pickle by another name")
            << "model.safetensors"
            << QByteArray("PK\3\4archive/data.pkl", 20) + QByteArray(600, 'x') << unsupported
            << "PyTorch pickle";
        QTest::newRow("gguf by another name")
            << "model.safetensors"
            << "GGUF" + QByteArray(600, '\3') << bad << "GGUF file";
    }
    void filesThatAreSomethingElseAreNamed() {
        QFETCH(QString, file);
        QFETCH(QByteArray, content);
        QFETCH(int, code);
        QFETCH(QString, said);
        const fs::path folder = checkpoint();
        writeFile(folder / file.toStdString(), content.toStdString());
        const std::string fault = faultOf(folder, Code(code));
        QVERIFY(has(fault, file.toStdString()));
        QVERIFY(has(fault, said.toStdString()));
    }

    void singleFilesThatAreNoGgufAreNamed_data() {
        QTest::addColumn<QString>("file");
        QTest::addColumn<QByteArray>("content");
        QTest::addColumn<QString>("said");
        QTest::newRow("pointer") << "m.gguf" << QByteArray::fromStdString(kPointer)
                                 << "git lfs pull";
        QTest::newRow("page") << "m.gguf" << QByteArray("<html>\n<body>no") << "HTML page";
        QTest::newRow("empty") << "m.gguf" << QByteArray() << "is empty";
        QTest::newRow("bin") << "pytorch_model.bin" << QByteArray(600, '\1') << "PyTorch pickle";
        QTest::newRow("pt") << "model.pt" << QByteArray("PK\3\4", 4) + QByteArray(99, 'x')
                            << "PyTorch pickle";
    }
    void singleFilesThatAreNoGgufAreNamed() {
        QFETCH(QString, file);
        QFETCH(QByteArray, content);
        QFETCH(QString, said);
        const fs::path path = fresh() / file.toStdString();
        writeFile(path, content.toStdString());
        QVERIFY(!sourceKindOf(path));
        const Result<SourceInfo> info = inspectSource(path);
        QVERIFY(!info.ok() && !info.status().hint().empty());
        QVERIFY(has(info.status().text(), said.toStdString()));
        QVERIFY(has(notASource(path).text(), said.toStdString()));
    }

    void aPointerAsTokenizerIsNamedBeforeAConversion() {
        const fs::path folder = checkpoint();
        writeFile(folder / "tokenizer.json", kPointer);
        const Result<SourceInfo> info = inspectSource(folder);
        QVERIFY2(info.ok(), info.status().text().c_str());
        QVERIFY(has(info->tokenizerProblem, "git-lfs pointer"));
        QVERIFY(hasNote(*info, "A conversion would fail here"));
        const fs::path target = fresh() / "target";
        const Status status =
            convertModel({.source = folder, .target = target}, {}, nullptr).status();
        QVERIFY(status.code() == Code::BadInput && has(status.text(), "git lfs pull"));
        QVERIFY(!fs::exists(target));
    }

    void picklesAreNamedWithTheRemedy() {
        for (const char* name : {"pytorch_model.bin", "model.pt", "consolidated.00.pth"}) {
            const fs::path folder = checkpoint();
            fs::rename(folder / "model.safetensors", folder / name);
            const std::string fault = faultOf(folder, Code::Unsupported);
            QVERIFY(has(fault, name) && has(fault, "safetensors version"));
        }
    }

    void aLoraAdapterIsNamed() {
        const fs::path folder = fresh();
        writeFile(folder / "adapter_config.json",
                  R"({"peft_type": "LORA", "base_model_name_or_path": "org/base"})");
        writeFile(folder / "adapter_model.safetensors", safetensorsBytes({}));
        QVERIFY(sourceKindOf(folder) == SourceKind::HuggingFace);
        for (const fs::path& path : {folder, folder / "adapter_model.safetensors"}) {
            const std::string fault = faultOf(path, Code::Unsupported);
            QVERIFY(has(fault, "LoRA adapter for org/base") && has(fault, "Merge"));
        }
        writeFile(folder / "config.json", tinyConfig(m_options).dump());  // some savers add it
        QVERIFY(has(faultOf(folder, Code::Unsupported), "LoRA adapter"));
    }

    void ggufAdaptersAndProjectorsAreNamed() {
        const auto withType = [&](const char* type) {
            const fs::path path = fresh() / "other.gguf";
            writeFile(path, ggufBytes(m_options, m_tensors, 1, {{"general.type", type}}));
            return path;
        };
        QVERIFY(has(faultOf(withType("adapter"), Code::Unsupported), "LoRA adapter"));
        QVERIFY(has(faultOf(withType("mmproj"), Code::Unsupported), "projector"));
        QVERIFY(inspectSource(withType("model")).ok());
    }

    void aLeftOverIndexIsPassedOver() {
        const fs::path reference = checkpoint(), folder = checkpoint();
        const auto index = [](const std::string& file) {
            return nlohmann::json{{"weight_map", {{"model.norm.weight", file}}}}.dump();
        };
        for (const std::string& content :
             {index("model-00001-of-00004.safetensors"), kPointer, std::string("{")}) {
            writeFile(folder / "model.safetensors.index.json", content);
            const Result<SourceInfo> info = inspectSource(folder);
            QVERIFY2(info.ok(), info.status().text().c_str());
            QCOMPARE(info->tensors, inspectSource(reference)->tensors);
            QVERIFY(hasNote(*info, "model.safetensors.index.json"));
        }
        // Incomplete shards without another complete set are an error as before.
        const fs::path torn = fresh();
        writeCheckpoint(torn, tinyConfig(m_options), m_tensors, 3, true);
        fs::remove(torn / "model-00002-of-00003.safetensors");
        QVERIFY(has(faultOf(torn, Code::BadInput), "model-00002-of-00003.safetensors"));
    }

    void everyPrefixOfTheNamesLoads_data() {
        QTest::addColumn<QString>("base");
        QTest::addColumn<QString>("head");
        QTest::newRow("bare base model") << ""
                                         << "lm_head.";
        QTest::newRow("language_model.model.") << "language_model.model."
                                               << "language_model.lm_head.";
        QTest::newRow("model.language_model.") << "model.language_model."
                                               << "lm_head.";
        QTest::newRow("transformer.") << "transformer."
                                      << "lm_head.";
        QTest::newRow("compiled") << "_orig_mod.model."
                                  << "_orig_mod.lm_head.";
        QTest::newRow("wrapped twice") << "base_model.model.model."
                                       << "base_model.model.lm_head.";
    }
    void everyPrefixOfTheNamesLoads() {
        QFETCH(QString, base);
        QFETCH(QString, head);
        Tensors renamed;
        for (const auto& [name, tensor] : m_tensors) {
            const bool isHead = name.starts_with("lm_head.");
            renamed[(isHead ? head : base).toStdString() + name.substr(isHead ? 8 : 6)] = tensor;
        }
        const fs::path folder = fresh();
        writeCheckpoint(folder, tinyConfig(m_options), renamed);
        const auto valuesOf = [&](const fs::path& source) {
            const Result<ContainerInfo> info =
                convertModel({.source = source, .target = fresh() / "target"}, {}, nullptr);
            if (!info.ok()) qWarning("%s", info.status().text().c_str());
            std::vector<std::vector<float>> values;
            if (!info.ok()) return values;
            for (const TensorInfo& t : info->tensors)
                values.push_back(containerValues(*info, t.name));
            values.push_back(expertValues(*info, 1, 3, "w2"));
            return values;
        };
        const auto values = valuesOf(folder);
        QVERIFY(!values.empty());
        QVERIFY(values == valuesOf(checkpoint()));
    }

    void numbersThatOnlyPythonWrites() {
        const fs::path folder = checkpoint();
        std::string config = readFile(folder / "config.json");
        config.insert(config.size() - 1,
                      R"(,"time_step_limit":[0.0,Infinity],"a":NaN,"b":-Infinity)"
                      ",\"c\":\"NaN, \\\"Infinity\",\"d\":null");
        writeFile(folder / "config.json", config);
        const Result<SourceInfo> info = inspectSource(folder);
        QVERIFY2(info.ok(), info.status().text().c_str());
        // The key is named if its number is used.
        config.insert(config.size() - 1, R"(,"rms_norm_eps":NaN)");
        config.erase(config.find("\"rms_norm_eps\""),
                     config.find(',', config.find("\"rms_norm_eps\"")) -
                         config.find("\"rms_norm_eps\"") + 1);
        writeFile(folder / "config.json", config);
        QVERIFY(has(inspectSource(folder).status().text(), "rms_norm_eps"));
    }

    void namesCannotActOnATerminal() {
        const std::string evil = "x\x1b[31m\xe2\x80\xaey\nz";
        const fs::path folder = fresh();
        Tensors tensors = m_tensors;
        tensors[evil] = {{1}, {0}};
        writeCheckpoint(folder, tinyConfig(m_options), tensors);
        std::string fault = inspectSource(folder).status().text();
        QVERIFY(has(fault, "x\\u001b[31m\\u202ey\\u000az"));
        nlohmann::json config = tinyConfig(m_options);
        config["model_type"] = evil;
        writeFile(folder / "config.json", config.dump());
        fault = inspectSource(folder).status().text();
        QVERIFY(has(fault, "x\\u001b[31m\\u202ey\\u000az"));
        const fs::path gguf = fresh() / "named.gguf";
        writeFile(gguf, ggufBytes(m_options, m_tensors, 1, {{"tokenizer.ggml.model", evil}}));
        const Result<SourceInfo> info = inspectSource(gguf);
        QVERIFY2(info.ok(), info.status().text().c_str());
        for (const std::string& note : info->notes) QVERIFY(note.find('\x1b') == std::string::npos);
        // The name of a model is shown in many messages.
        const fs::path target = fresh() / "target";
        const Result<ContainerInfo> made =
            convertModel({.source = gguf, .target = target, .name = evil}, {}, nullptr);
        QVERIFY2(made.ok(), made.status().text().c_str());
        QCOMPARE(made->config.name, "x\\u001b[31m\\u202ey\\u000az");
        std::string json = readFile(target / "model.json");
        // The escape as another program may write it.
        json.replace(json.find("x\\\\u001b"), 8, "\\u001b");
        writeFile(target / "model.json", json);
        const Result<ContainerInfo> opened = openContainer(target);
        QVERIFY2(opened.ok(), opened.status().text().c_str());
        QVERIFY(opened->config.name.find('\x1b') == std::string::npos);
    }
};

QTEST_GUILESS_MAIN(TestFoundFiles)
#include "test_found_files.moc"
