// SPDX-License-Identifier: GPL-3.0-or-later
// GGUF import: the same container as from the original checkpoint, blocks kept bit for bit.
#include <QTemporaryDir>
#include <QTest>

#include "engine/convert/converter.h"
#include "engine/convert/gguf_tokenizer.h"
#include "engine/convert/inspect.h"
#include "tests/engine/convert/checkpoint_maker.h"

using namespace colibri;
using namespace colibri::test;
namespace fs = std::filesystem;

class TestGguf : public QObject {
    Q_OBJECT

    QTemporaryDir m_dir;
    int m_number = 0;
    fs::path fresh() {
        return fs::path(m_dir.path().toStdString()) / std::to_string(m_number++);
    }
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
    // What the file holds as blocks is what this program makes of the original values itself.
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
        QCOMPARE(int(a->find("embed")->dtype), int(DType::Q4_0));   // as it is in the file
        for (const char* name : {"embed", "0.q", "1.k", "1.o", "head"}) {
            QVERIFY(containerValues(*a, name) == containerValues(*b, name));
        }
        for (const char* m : {"w1", "w3", "w2"}) {
            QVERIFY(expertValues(*a, 1, 2, m) == expertValues(*b, 1, 2, m));
        }
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
        QVERIFY(info.status().message().find("cut short") != std::string::npos);
    }

    void scalesThatAreNotNumbers() {
        const TinyOptions o = options("olmoe");
        std::string bytes = ggufBytes(o, tinyTensors(o), 8);
        bytes[bytes.size() - 33] = 0x7e;     // the last block's scale becomes NaN
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
        std::string last;
        Result<ContainerInfo> info = convertModel(
            {file, fresh(), {}, ""}, [&](const Progress& p) { last = p.stage; }, nullptr);
        QVERIFY(info.ok());
        QVERIFY(!info->hasTokenizer);
        QVERIFY(last.find("no tokenizer") != std::string::npos);
        QCOMPARE(inspectSource(file)->notes.size(), size_t(1));
    }
};

QTEST_GUILESS_MAIN(TestGguf)
#include "test_gguf.moc"
