// SPDX-License-Identifier: GPL-3.0-or-later
// GGUF import: the container equals that of the original checkpoint, and blocks are kept bit by
// bit.
#include <QTemporaryDir>
#include <QTest>

#include "engine/convert/converter.h"
#include "engine/convert/gguf/gguf_tokenizer.h"
#include "engine/convert/inspect.h"
#include "tests/engine/convert/checkpoint_maker.h"

using namespace colibri;
using namespace colibri::test;
namespace fs = std::filesystem;

class TestGguf : public QObject {
    Q_OBJECT

    QTemporaryDir m_dir;
    int m_number = 0;
    fs::path fresh() { return fs::path(m_dir.path().toStdString()) / std::to_string(m_number++); }
    static TinyOptions options(const std::string& family) {
        TinyOptions o;
        o.family = family;
        o.expertSize = 96;
        return o;
    }

private slots:
    void equalsTheOriginal_data() {
        QTest::addColumn<QString>("family");
        QTest::addColumn<int>("ggmlType");
        QTest::addColumn<int>("dtype");
        for (const char* family : {"olmoe", "qwen3_moe", "mixtral"}) {
            for (auto [type, dtype] : {std::pair{0, DType::F32}, std::pair{1, DType::F16},
                                       std::pair{30, DType::BF16}, std::pair{8, DType::Q8_0}}) {
                QTest::addRow("%s type %d", family, type) << QString(family) << type << int(dtype);
            }
        }
    }
    // The file's blocks equal those that this program encodes from the original values.
    void equalsTheOriginal() {
        QFETCH(QString, family);
        QFETCH(int, ggmlType);
        QFETCH(int, dtype);
        const TinyOptions o = options(family.toStdString());
        const Tensors tensors = tinyTensors(o);
        const fs::path source = fresh(), file = fresh(), fromHf = fresh(), fromGguf = fresh();
        writeCheckpoint(source, tinyConfig(o), tensors);
        writeFile(file, ggufBytes(o, tensors, uint32_t(ggmlType)));
        Result<ContainerInfo> a = convertModel({source, fromHf, DType(dtype), "t"}, {}, nullptr);
        Result<ContainerInfo> b = convertModel({file, fromGguf, {}, "t"}, {}, nullptr);
        QVERIFY2(a.ok(), a.status().text().c_str());
        QVERIFY2(b.ok(), b.status().text().c_str());
        auto x = folderContent(fromHf), y = folderContent(fromGguf);
        QVERIFY(x["dense.bin"] == y["dense.bin"]);
        QVERIFY(x["experts/layer_000.bin"] == y["experts/layer_000.bin"]);
        QVERIFY(x["experts/layer_001.bin"] == y["experts/layer_001.bin"]);
        QCOMPARE(b->config.routing.renorm, family != "olmoe");
        QCOMPARE(int(b->config.qkNorm), int(a->config.qkNorm));
        QVERIFY(!b->config.rope.interleaved);
        QVERIFY(verifyContainer(*b, {}, nullptr).ok());
    }

    void q4KeepsItsBlocks() {
        const TinyOptions o = options("mixtral");
        const Tensors tensors = tinyTensors(o);
        const fs::path file = fresh(), kept = fresh(), wide = fresh();
        writeFile(file, ggufBytes(o, tensors, 2));
        Result<ContainerInfo> a = convertModel({file, kept, {}, "t"}, {}, nullptr);
        Result<ContainerInfo> b = convertModel({file, wide, DType::F32, "t"}, {}, nullptr);
        QVERIFY2(a.ok(), a.status().text().c_str());
        QVERIFY2(b.ok(), b.status().text().c_str());
        QCOMPARE(int(a->expertType), int(DType::Q4_0));
        QCOMPARE(int(a->find("embed")->dtype), int(DType::Q4_0));  // the type in the file
        for (const char* name : {"embed", "0.q", "1.k", "1.o", "head"}) {
            QVERIFY(containerValues(*a, name) == containerValues(*b, name));
        }
        for (const char* m : {"w1", "w3", "w2"}) {
            QVERIFY(expertValues(*a, 1, 2, m) == expertValues(*b, 1, 2, m));
        }
    }

    // Rows are reordered one by one, which reads single values of blocks of 32. A bug used
    // uninitialised memory.
    void quantisedBiasesAreReadByValue() {
        TinyOptions o = options("mixtral");
        o.bias = true;
        const Tensors tensors = tinyTensors(o);
        const fs::path plain = fresh(), blocks = fresh(), want = fresh(), got = fresh();
        writeFile(plain, ggufBytes(o, tensors, 0));
        o.quantisedBias = true;
        writeFile(blocks, ggufBytes(o, tensors, 0));
        Result<ContainerInfo> a = convertModel({plain, want, {}, "t"}, {}, nullptr);
        Result<ContainerInfo> b = convertModel({blocks, got, {}, "t"}, {}, nullptr);
        QVERIFY2(a.ok(), a.status().text().c_str());
        QVERIFY2(b.ok(), b.status().text().c_str());
        for (const char* name : {"0.q_bias", "0.k_bias", "1.q_bias", "1.v_bias"}) {
            const auto x = containerValues(*a, name), y = containerValues(*b, name);
            float largest = 0;
            for (const float v : x) largest = std::max(largest, std::abs(v));
            QVERIFY(largest > 0);
            for (size_t i = 0; i < x.size(); ++i) {
                QVERIFY2(std::abs(x[i] - y[i]) <= largest / 127, name);
            }
        }
    }

    // Each tensor, and each matrix of an expert, has its own type. The values equal those of the
    // decoded blocks, also after writing and reading model.json.
    void mixedTypesKeepTheirBlocks() {
        const TinyOptions o = wideOptions();
        const Tensors tensors = tinyTensors(o);
        const fs::path file = fresh(), kept = fresh(), wide = fresh();
        writeFile(file, ggufParts(o, tensors, mixedType).front());
        Result<ContainerInfo> a = convertModel({file, kept, {}, "t"}, {}, nullptr);
        Result<ContainerInfo> b = convertModel({file, wide, DType::F32, "t"}, {}, nullptr);
        QVERIFY2(a.ok(), a.status().text().c_str());
        QVERIFY2(b.ok(), b.status().text().c_str());
        a = openContainer(kept);
        QVERIFY2(a.ok(), a.status().text().c_str());
        QCOMPARE(a->find("embed")->dtype, DType::Q6_K);
        QCOMPARE(a->find("0.q")->dtype, DType::Q4_K);
        QCOMPARE(a->find("1.o")->dtype, DType::Q5_0);
        const ExpertTypes first = a->expertLayers[0].types, second = a->expertLayers[1].types;
        QVERIFY(first.w1 == DType::Q4_K && first.w3 == DType::Q4_K && first.w2 == DType::Q6_K);
        QVERIFY(second.w1 == DType::Q5_1 && second.w3 == DType::Q4_1 && second.w2 == DType::MXFP4);
        QCOMPARE(a->expertTypeNames().substr(0, 10), std::string("q4_k, q6_k"));
        QCOMPARE(a->expertType, DType::Q4_K);
        for (const TensorInfo& t : b->tensors) {
            QVERIFY2(containerValues(*a, t.name) == containerValues(*b, t.name), t.name.c_str());
        }
        for (int64_t layer = 0; layer < o.layers; ++layer) {
            for (const char* m : {"w1", "w3", "w2"}) {
                QVERIFY(expertValues(*a, layer, 3, m) == expertValues(*b, layer, 3, m));
            }
        }
        QVERIFY(verifyContainer(*a, {}, nullptr).ok());
    }

    // A type with blocks of 256 columns does not suit rows of 64.
    void rowsThatAreNotWholeBlocks() {
        const TinyOptions o = options("olmoe");
        const fs::path file = fresh(), target = fresh();
        writeFile(file, ggufBytes(o, tinyTensors(o), 8));
        QVERIFY(convertModel({file, target, {}, ""}, {}, nullptr).ok());
        const std::string json = readFile(target / "model.json");
        for (const size_t at : {json.find("\"q8_0\""), json.rfind("\"q8_0\"")}) {
            std::string changed = json;
            writeFile(target / "model.json", changed.replace(at, 6, "\"q4_k\""));
            const Status status = openContainer(target).status();
            QCOMPARE(int(status.code()), int(Code::BadInput));
            QVERIFY2(status.message().find("rows of 64 are not whole blocks of q4_k") !=
                         std::string::npos,
                     status.text().c_str());
        }
    }

    void typesThatAreNotReadAreNamed() {
        const TinyOptions o = wideOptions();
        for (auto [type, name] :
             {std::pair{10u, "Q2_K"}, {16u, "IQ2_XXS"}, {35u, "TQ2_0"}, {99u, "type 99"}}) {
            const fs::path file = fresh();
            writeFile(file, ggufParts(o, tinyTensors(o), [&](const std::string& tensor) {
                                return tensor == "blk.1.attn_v.weight" ? type : 8u;
                            }).front());
            const Status status = convertModel({file, fresh(), {}, ""}, {}, nullptr).status();
            QCOMPARE(int(status.code()), int(Code::Unsupported));
            const std::string line = std::string("blk.1.attn_v.weight ") + name;
            QVERIFY2(status.message().find(line) != std::string::npos, status.text().c_str());
        }
    }

    void typesThatAreOnlyReadAreNotMade() {
        const TinyOptions o = options("olmoe");
        const fs::path file = fresh();
        writeFile(file, ggufBytes(o, tinyTensors(o), 8));
        const Status status = convertModel({file, fresh(), DType::Q4_K, ""}, {}, nullptr).status();
        QCOMPARE(int(status.code()), int(Code::InvalidArgument));
        QVERIFY(status.text().find("mxfp4") != std::string::npos);
        Result<ContainerInfo> made = convertModel({file, fresh(), DType::MXFP4, ""}, {}, nullptr);
        QVERIFY2(made.ok(), made.status().text().c_str());
        QCOMPARE(made->expertType, DType::MXFP4);
        QCOMPARE(made->find("embed")->dtype, DType::Q8_0);
    }

    // The path of any part opens the whole model.
    void splitFiles() {
        const TinyOptions o = wideOptions();
        const Tensors tensors = tinyTensors(o);
        const fs::path folder = fresh(), whole = fresh();
        fs::create_directories(folder);
        writeFile(folder / "whole.gguf", ggufParts(o, tensors, mixedType).front());
        Result<ContainerInfo> expected =
            convertModel({folder / "whole.gguf", whole, {}, "t"}, {}, nullptr);
        QVERIFY2(expected.ok(), expected.status().text().c_str());
        const std::vector<std::string> parts = ggufParts(o, tensors, mixedType, 3);
        const auto partPath = [&](size_t i) {
            return folder / ("tiny-0000" + std::to_string(i + 1) + "-of-00003.gguf");
        };
        for (size_t i = 0; i < 3; ++i) writeFile(partPath(i), parts[i]);
        for (size_t i = 0; i < 3; ++i) {
            const fs::path target = fresh();
            Result<ContainerInfo> info = convertModel({partPath(i), target, {}, "t"}, {}, nullptr);
            QVERIFY2(info.ok(), info.status().text().c_str());
            auto x = folderContent(whole), y = folderContent(target);
            QVERIFY(x["dense.bin"] == y["dense.bin"]);
            QVERIFY(x["experts/layer_001.bin"] == y["experts/layer_001.bin"]);
        }
        QCOMPARE(inspectSource(partPath(0))->files, 3);

        fs::remove(partPath(1));
        Status status = convertModel({partPath(2), fresh(), {}, "t"}, {}, nullptr).status();
        QCOMPARE(int(status.code()), int(Code::BadInput));
        QVERIFY(status.message().find("tiny-00002-of-00003.gguf") != std::string::npos);
        writeFile(partPath(1), parts[2]);  // a part with the name of another
        status = convertModel({partPath(0), fresh(), {}, "t"}, {}, nullptr).status();
        QCOMPARE(int(status.code()), int(Code::BadInput));
        QVERIFY(status.message().find("not part 2 of 3") != std::string::npos);
        writeFile(folder / "renamed.gguf", parts[0]);
        status = convertModel({folder / "renamed.gguf", fresh(), {}, "t"}, {}, nullptr).status();
        QVERIFY(status.message().find("-00001-of-00003") != std::string::npos);
    }

    void requantised() {
        const TinyOptions o = options("olmoe");
        const fs::path file = fresh();
        writeFile(file, ggufBytes(o, tinyTensors(o), 8));
        Result<ContainerInfo> info = convertModel({file, fresh(), DType::Q4_0, ""}, {}, nullptr);
        QVERIFY2(info.ok(), info.status().text().c_str());
        QCOMPARE(int(info->expertType), int(DType::Q4_0));
        QCOMPARE(int(info->find("embed")->dtype), int(DType::Q8_0));
        QCOMPARE(info->config.name, std::string("tiny"));
    }

    void cutFileIsRefused() {
        const TinyOptions o = options("olmoe");
        std::string bytes = ggufBytes(o, tinyTensors(o), 8);
        const fs::path file = fresh();
        writeFile(file, bytes.substr(0, bytes.size() - 1));
        Result<ContainerInfo> info = convertModel({file, fresh(), {}, ""}, {}, nullptr);
        QCOMPARE(int(info.status().code()), int(Code::BadInput));
        QVERIFY(info.status().message().find("truncated") != std::string::npos);
    }

    void scalesThatAreNotNumbers() {
        const TinyOptions o = options("olmoe");
        std::string bytes = ggufBytes(o, tinyTensors(o), 8);
        bytes[bytes.size() - 33] = 0x7e;  // the last block's scale becomes NaN
        const fs::path file = fresh();
        writeFile(file, bytes);
        Result<ContainerInfo> info = convertModel({file, fresh(), {}, ""}, {}, nullptr);
        QCOMPARE(int(info.status().code()), int(Code::BadInput));
        QVERIFY(info.status().message().find("blk.1.ffn_down_exps.weight") != std::string::npos);
    }

    void architecturesAreNamed() {
        const TinyOptions o = options("olmoe");
        std::string bytes = ggufBytes(o, tinyTensors(o), 8);
        bytes.replace(bytes.find("olmoe"), 5, "bloom");
        const fs::path file = fresh();
        writeFile(file, bytes);
        Result<ContainerInfo> info = convertModel({file, fresh(), {}, ""}, {}, nullptr);
        QCOMPARE(int(info.status().code()), int(Code::Unsupported));
        QVERIFY(info.status().message().find("bloom") != std::string::npos);
    }

    void tokenizerFromMetadata() {
        GgufHeader header;
        header.metadata["tokenizer.ggml.model"] = std::string("gpt2");
        header.metadata["tokenizer.ggml.pre"] = std::string("qwen2");
        header.metadata["tokenizer.ggml.tokens"] =
            std::vector<std::string>{"a", "b", "ab", "<|end|>", "<tool>"};
        header.metadata["tokenizer.ggml.merges"] = std::vector<std::string>{"a b"};
        header.metadata["tokenizer.ggml.token_type"] = std::vector<double>{1, 1, 1, 3, 4};
        header.metadata["tokenizer.ggml.bos_token_id"] = int64_t(3);
        header.metadata["tokenizer.ggml.add_bos_token"] = true;
        Result<std::string> text = ggufTokenizerJson(header);
        QVERIFY2(text.ok(), text.status().text().c_str());
        const auto json = nlohmann::json::parse(*text);
        QCOMPARE(json["model"]["vocab"]["ab"].get<int>(), 2);
        QCOMPARE(json["model"]["merges"][0].get<std::string>(), std::string("a b"));
        QCOMPARE(json["added_tokens"].size(), size_t(2));
        QVERIFY(json["added_tokens"][0]["special"].get<bool>());
        QVERIFY(!json["added_tokens"][1]["special"].get<bool>());
        QCOMPARE(json["normalizer"]["type"].get<std::string>(), std::string("NFC"));
        QCOMPARE(json["post_processor"]["single"][0]["SpecialToken"]["id"].get<std::string>(),
                 std::string("<|end|>"));
    }

    void aModelWithoutTokenizerSaysSo() {
        const TinyOptions o = options("olmoe");
        const fs::path file = fresh();
        writeFile(file, ggufBytes(o, tinyTensors(o), 8, {{"tokenizer.ggml.model", "none"}}));
        ConvertOptions options{.source = file, .target = fresh()};
        std::vector<std::string> notes;
        options.onNote = [&](const std::string& note) { notes.push_back(note); };
        Result<ContainerInfo> info = convertModel(options, {}, nullptr);
        QVERIFY(info.ok());
        QVERIFY(!info->hasTokenizer);
        QCOMPARE(notes.size(), size_t(2));  // the second note is about the missing template
        QVERIFY(notes[0].find("no tokenizer") != std::string::npos);
        QVERIFY(inspectSource(file)->notes == notes);
    }
};

QTEST_GUILESS_MAIN(TestGguf)
#include "test_gguf.moc"
