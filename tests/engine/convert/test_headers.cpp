// SPDX-License-Identifier: GPL-3.0-or-later
// Untrusted headers: safetensors, GGUF, model.json. Truncated at every byte and modified in many
// ways, they give an error and never a crash.
#include <QTemporaryDir>
#include <QTest>
#include <cstring>
#include <random>

#include "engine/convert/converter.h"
#include "engine/convert/gguf/gguf.h"
#include "engine/convert/hf/safetensors.h"
#include "engine/model/model_json.h"
#include "tests/engine/convert/checkpoint_maker.h"

using namespace colibri;
using namespace colibri::test;
namespace fs = std::filesystem;

namespace {

std::span<const std::byte> bytesOf(const std::string& text) {
    return std::as_bytes(std::span(text));
}

// A safetensors file with this header and `data` bytes after it.
std::string withHeader(const std::string& header, size_t data) {
    std::string out(8, '\0');
    const uint64_t length = header.size();
    std::memcpy(out.data(), &length, 8);
    return out + header + std::string(data, 'x');
}

Status parse(const std::string& file) {
    return parseSafetensorsHeader(bytesOf(file), int64_t(file.size()), "f").status();
}

}  // namespace

class TestHeaders : public QObject {
    Q_OBJECT

    QTemporaryDir m_dir;
    int m_number = 0;
    fs::path fresh() { return fs::path(m_dir.path().toStdString()) / std::to_string(m_number++); }
    static TinyOptions tiny() {
        TinyOptions o;
        o.layers = 1;
        o.hidden = 32;
        o.heads = 2;
        o.kvHeads = 1;
        o.experts = 2;
        o.topK = 1;
        o.expertSize = 32;
        o.vocab = 16;
        return o;
    }

private slots:
    void safetensorsCutAtEveryByte() {
        const std::string whole = safetensorsBytes(
            {{"a", {{2, 3}, std::vector<float>(6)}}, {"b", {{4}, std::vector<float>(4)}}});
        QVERIFY(parse(whole).ok());
        for (size_t n = 0; n < whole.size(); ++n) {
            QCOMPARE(int(parse(whole.substr(0, n)).code()), int(Code::BadInput));
            // Truncated, with the size of the complete file: a short read of the header.
            auto cut = parseSafetensorsHeader(bytesOf(whole).first(n), int64_t(whole.size()), "f");
            uint64_t header = 0;
            std::memcpy(&header, whole.data(), 8);
            QCOMPARE(cut.ok(), n >= 8 + header);
        }
    }

    void safetensorsHostile_data() {
        QTest::addColumn<QByteArray>("file");
        QTest::addColumn<QString>("named");
        auto row = [](const char* name, const std::string& file, const char* named) {
            QTest::newRow(name) << QByteArray(file.data(), qsizetype(file.size()))
                                << QString(named);
        };
        row("huge length", std::string("\xff\xff\xff\xff\xff\xff\xff\x7f", 8), "header of");
        row("length past the end", withHeader("{}", 0).substr(0, 9), "truncated");
        row("not json", withHeader("{\"a\":", 0), "not valid JSON");
        row("not an object", withHeader("[1]", 0), "not a JSON object");
        row("deep", withHeader(std::string(100000, '['), 0), "");
        row("deep and closed", withHeader(std::string(300, '[') + std::string(300, ']'), 0),
            "nested deeper");
        row("name twice",
            withHeader(R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]},)"
                       R"("a":{"dtype":"F32","shape":[1],"data_offsets":[4,8]}})",
                       8),
            "duplicate");
        row("overlap",
            withHeader(R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]},)"
                       R"("b":{"dtype":"F32","shape":[1],"data_offsets":[4,8]}})",
                       8),
            "overlaps");
        row("hole", withHeader(R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[4,8]}})", 8),
            "gap");
        row("rest", withHeader(R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}})", 9),
            "after the last tensor");
        row("past the end",
            withHeader(R"({"a":{"dtype":"F32","shape":[4],"data_offsets":[0,16]}})", 8),
            "truncated");
        row("product overflow",
            withHeader(R"({"a":{"dtype":"F32","shape":[4294967296,4294967296,16],)"
                       R"("data_offsets":[0,0]}})",
                       0),
            "too large");
        row("negative size",
            withHeader(R"({"a":{"dtype":"F32","shape":[-1],"data_offsets":[0,4]}})", 4),
            "whole number");
        row("offset over 63 bits",
            withHeader(
                R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[0,18446744073709551615]}})", 4),
            "not a range");
        row("backwards", withHeader(R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[4,0]}})", 4),
            "not a range");
        row("dtype", withHeader(R"({"a":{"dtype":"F31","shape":[1],"data_offsets":[0,4]}})", 4),
            "F31");
        row("dtype type", withHeader(R"({"a":{"dtype":7,"shape":[1],"data_offsets":[0,4]}})", 4),
            "dtype");
        row("bytes", withHeader(R"({"a":{"dtype":"F16","shape":[1],"data_offsets":[0,4]}})", 4),
            "do not match");
        row("no shape", withHeader(R"({"a":{"dtype":"F32","data_offsets":[0,4]}})", 4), "shape");
        row("nine dimensions",
            withHeader(R"({"a":{"dtype":"F32","shape":[1,1,1,1,1,1,1,1,1],"data_offsets":[0,4]}})",
                       4),
            "8 dimensions");
        row("entry no object", withHeader(R"({"a":3})", 0), "");
    }
    void safetensorsHostile() {
        QFETCH(QByteArray, file);
        QFETCH(QString, named);
        const Status status = parse(file.toStdString());
        QCOMPARE(int(status.code()), int(Code::BadInput));
        QVERIFY2(status.message().find(named.toStdString()) != std::string::npos,
                 status.message().c_str());
    }

    void unreadTypesAreNamed() {
        TinyOptions o = tiny();
        Tensors tensors = tinyTensors(o);
        std::string file = safetensorsBytes(tensors, "F16");
        const std::string from = "\"F16\"", to = "\"I16\"";
        size_t at = file.find(from);
        file.replace(at, from.size(), to);
        const fs::path source = fresh();
        fs::create_directories(source);
        writeFile(source / "config.json", tinyConfig(o).dump());
        writeFile(source / "model.safetensors", file);
        Result<ContainerInfo> info = convertModel({source, fresh(), {}, ""}, {}, nullptr);
        QCOMPARE(int(info.status().code()), int(Code::Unsupported));
        QVERIFY(info.status().message().find("lm_head.weight I16") != std::string::npos);
    }

    void ggufCutAtEveryByte() {
        const TinyOptions o = tiny();
        const std::string whole =
            ggufBytes(o, tinyTensors(o), 8, {{"tokenizer.ggml.model", "none"}});
        bool more = false;
        QVERIFY(parseGgufHeader(bytesOf(whole), int64_t(whole.size()), "f", more).ok());
        for (size_t n = 0; n < whole.size(); ++n) {
            auto cut = parseGgufHeader(bytesOf(whole).first(n), int64_t(n), "f", more);
            QCOMPARE(int(cut.status().code()), int(Code::BadInput));
            QVERIFY(!more);  // the file has no more bytes
        }
        // The start of a longer file requests more.
        QVERIFY(!parseGgufHeader(bytesOf(whole).first(100), int64_t(whole.size()), "f", more).ok());
        QVERIFY(more);
    }

    void ggufBentBytes() {
        const TinyOptions o = tiny();
        const std::string whole = ggufBytes(o, tinyTensors(o), 8);
        std::mt19937 random(3);
        const fs::path source = fresh();
        int refused = 0;
        for (int i = 0; i < 3000; ++i) {
            std::string bent = whole;
            for (int k = 0; k < 1 + int(random() % 4); ++k) {
                bent[random() % 3000] = char(random() % 3 == 0 ? 0xff : random());
            }
            bool more = false;
            if (!parseGgufHeader(bytesOf(bent), int64_t(bent.size()), "f", more).ok()) ++refused;
        }
        QVERIFY(refused > 300);
    }

    void ggufVersions() {
        const TinyOptions o = tiny();
        std::string file = ggufBytes(o, tinyTensors(o), 8);
        bool more = false;
        file[4] = 2;
        QVERIFY(parseGgufHeader(bytesOf(file), int64_t(file.size()), "f", more).ok());
        file[4] = 1;
        QCOMPARE(
            int(parseGgufHeader(bytesOf(file), int64_t(file.size()), "f", more).status().code()),
            int(Code::Unsupported));
        file[4] = 0;
        file[7] = 3;
        const Status big = parseGgufHeader(bytesOf(file), int64_t(file.size()), "f", more).status();
        QVERIFY(big.message().find("big-endian") != std::string::npos);
        file[0] = 'X';
        QVERIFY(!parseGgufHeader(bytesOf(file), int64_t(file.size()), "f", more).ok());
    }

    // Truncated at every byte, and with hostile values instead of every number.
    void modelJson() {
        const TinyOptions o = tiny();
        const fs::path source = fresh(), target = fresh();
        writeCheckpoint(source, tinyConfig(o), tinyTensors(o));
        QVERIFY(convertModel({source, target, DType::Q8_0, "t"}, {}, nullptr).ok());
        const std::string whole = readFile(target / "model.json");
        Result<ContainerInfo> info = parseModelJson(whole, "model.json");
        QVERIFY2(info.ok(), info.status().text().c_str());
        QCOMPARE(writeModelJson(*info), whole);
        for (size_t n = 0; n < whole.size(); ++n) {
            QVERIFY(!parseModelJson(std::string_view(whole).substr(0, n), "model.json").ok());
        }
        for (const char* hostile : {"-1", "0", "1e300", "9223372036854775807", "\"x\"", "null",
                                    "[]", "18446744073709551616", "4611686018427387904", "{}"}) {
            bentNumbers(whole, hostile);
        }
    }

    void modelJsonFaults_data() {
        QTest::addColumn<QString>("from");
        QTest::addColumn<QString>("to");
        QTest::addColumn<QString>("named");
        auto row = [](const char* from, const char* to, const char* named) {
            QTest::newRow(to) << QString(from) << QString(to) << QString(named);
        };
        row("\"schema\": 2", "\"schema\": 7", "schema 7, this program reads up to 2");
        row("\"0.q\"", "\"0.qq\"", "\"0.q\" is missing");
        row("\"0.q\"", "\"0.k\"", "duplicate");
        row("\"num_experts_per_tok\": 1", "\"num_experts_per_tok\": 3", "num_experts_per_tok is 3");
        row("[32,32]", "[32,64]", "shape [32, 64], expected [32, 32]");
        row("\"file\":\"dense.bin\"", "\"file\":\"../../x\"", "not in dense.bin");
        row("experts/layer_000.bin", "experts/../x.bin", "expected experts/layer_000.bin");
        row("\"dtype\":\"q8_0\"", "\"dtype\":\"q9_9\"", "q9_9");
        row("\"softmax\"", "\"sparsemax\"", "sparsemax");
        row("\"scale_on\": \"output\"", "\"scale_on\": \"both\"", "both");
        row("\"rope_type\": \"default\"", "\"rope_type\": \"yarn\"",
            "yarn");  // needs further keys
        row("\"vocab_size\": 16", "\"vocab_size\": 16, \"vocab_size\": 16", "duplicate");
        row("\"moe_layers\": [\n  0", "\"moe_layers\": [\n  1", "moe_layers");
    }
    void modelJsonFaults() {
        QFETCH(QString, from);
        QFETCH(QString, to);
        QFETCH(QString, named);
        const TinyOptions o = tiny();
        const fs::path source = fresh(), target = fresh();
        writeCheckpoint(source, tinyConfig(o), tinyTensors(o));
        QVERIFY(convertModel({source, target, DType::Q8_0, "t"}, {}, nullptr).ok());
        std::string text = readFile(target / "model.json");
        const size_t at = text.find(from.toStdString());
        QVERIFY(at != std::string::npos);
        text.replace(at, size_t(from.size()), to.toStdString());
        writeFile(target / "model.json", text);
        Result<ContainerInfo> info = openContainer(target);
        QVERIFY(!info.ok());
        QVERIFY2(info.status().message().find(named.toStdString()) != std::string::npos,
                 info.status().message().c_str());
        QVERIFY(info.status().message().find("model.json") != std::string::npos);
    }

private:
    static void bentNumbers(const std::string& whole, const std::string& hostile) {
        size_t at = 0;
        while (true) {
            at = whole.find_first_of("0123456789", at);
            if (at == std::string::npos) return;
            const size_t end = whole.find_first_not_of("0123456789.e-", at);
            const bool value = std::strchr(" :[,", whole[at - 1]) != nullptr;
            if (value) {
                // Must return; the result may be an error.
                (void)parseModelJson(whole.substr(0, at) + hostile + whole.substr(end), "m").ok();
            }
            at = end;
        }
    }
};

QTEST_GUILESS_MAIN(TestHeaders)
#include "test_headers.moc"
