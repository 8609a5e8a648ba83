// SPDX-License-Identifier: GPL-3.0-or-later
// Tokenizers in GGUF metadata: the ids equal those of the original tokenizer.json.
#include <QTest>
#include <fstream>
#include <nlohmann/json.hpp>

#include "engine/convert/gguf/gguf_scores.h"
#include "engine/convert/gguf/gguf_tokenizer.h"
#include "engine/text/tokenizer.h"

using namespace colibri;
using nlohmann::json;

namespace {

using Ids = std::vector<int32_t>;
using Texts = std::vector<std::string>;
const std::string kFolder = std::string(COLIBRI_GOLDEN_DIR) + "/tokenizers/";

json readJson(const std::string& path) {
    std::ifstream in(path);
    return json::parse(in);
}

enum { Normal = 1, Unknown, Control, UserDefined, Unused, Byte };

// The metadata that the conversion writes for this tokenizer.json.
GgufHeader headerOf(const json& file, const json& entry) {
    GgufHeader header;
    const size_t count = entry["vocab_size"];
    Texts tokens(count);
    std::vector<double> types(count, Unused);
    const json& vocab = file["model"]["vocab"];
    for (size_t i = 0; vocab.is_array() && i < vocab.size(); ++i) {
        tokens[i] = vocab[i][0];
        types[i] = Normal;
    }
    for (const auto& [token, id] : vocab.items()) {
        if (vocab.is_array()) break;
        tokens[id.get<size_t>()] = token;
        types[id.get<size_t>()] = Normal;
    }
    for (size_t i = 0; i < count; ++i) {
        if (tokens[i].size() == 6 && tokens[i].starts_with("<0x")) types[i] = Byte;
    }
    for (const json& token : file["added_tokens"]) {
        tokens[token["id"].get<size_t>()] = token["content"];
        const int type = token["special"] ? Control : UserDefined;
        types[token["id"].get<size_t>()] = token["content"] == "<unk>" ? int(Unknown) : type;
    }
    header.metadata["tokenizer.ggml.tokens"] = tokens;
    header.metadata["tokenizer.ggml.token_type"] = types;
    if (entry.contains("scores")) {
        header.metadata["tokenizer.ggml.scores"] = entry["scores"].get<std::vector<double>>();
    }
    return header;
}

// Added tokens with the properties that GGUF files can store.
json withPlainAddedTokens(json file) {
    for (json& token : file["added_tokens"]) {
        for (const char* flag : {"lstrip", "rstrip", "single_word", "normalized"}) {
            token[flag] = false;
        }
    }
    return file;
}

std::unique_ptr<Tokenizer> parse(const std::string& text) {
    auto tokenizer = Tokenizer::parse(text, "tokenizer.json");
    if (!tokenizer) qWarning("%s", tokenizer.status().text().c_str());
    return tokenizer ? std::move(*tokenizer) : nullptr;
}

std::unique_ptr<Tokenizer> fromGguf(const GgufHeader& header) {
    const Result<std::string> text = ggufTokenizerJson(header);
    if (!text) qWarning("%s", text.status().text().c_str());
    return text ? parse(*text) : nullptr;
}

// The number of golden strings with different ids; `shown` receives the first.
int differences(const Tokenizer& a, const Tokenizer& b, const json& cases, bool frame,
                std::string& shown) {
    int count = 0;
    for (const json& item : cases["encode"]) {
        const std::string text = item["text"];
        const Ids x = a.encode(text, {.bos = frame}), y = b.encode(text, {.bos = frame});
        if (x == y && a.decode(x) == b.decode(x)) continue;
        if (count++ == 0) {
            shown = item["text"].dump() + "\n  " + json(x).dump() + "\n  " + json(y).dump();
        }
    }
    return count;
}

GgufHeader small(const std::string& model, const Texts& tokens) {
    GgufHeader header;
    header.metadata["tokenizer.ggml.model"] = model;
    header.metadata["tokenizer.ggml.tokens"] = tokens;
    return header;
}

std::string errorOf(const GgufHeader& header) {
    return ggufTokenizerJson(header).status().message();
}

}  // namespace

class TestGgufTokenizer : public QObject {
    Q_OBJECT

private slots:
    void byteLevel_data() {
        QTest::addColumn<QString>("name");
        for (const json& entry : readJson(kFolder + "index.json")) {
            const std::string name = entry["name"];
            if (entry.contains("gguf_pre")) QTest::newRow(name.c_str()) << QString(name.c_str());
        }
    }
    void byteLevel() {
        QFETCH(QString, name);
        const std::string folder = kFolder + name.toStdString();
        json entry;
        for (const json& e : readJson(kFolder + "index.json")) {
            if (e["name"] == name.toStdString()) entry = e;
        }
        const json file = withPlainAddedTokens(readJson(folder + "/tokenizer.json"));
        GgufHeader header = headerOf(file, entry);
        header.metadata["tokenizer.ggml.model"] = std::string("gpt2");
        header.metadata["tokenizer.ggml.pre"] = entry["gguf_pre"].get<std::string>();
        Texts merges;
        for (const json& merge : file["model"]["merges"]) {
            merges.push_back(merge.is_string()
                                 ? merge.get<std::string>()
                                 : merge[0].get<std::string>() + " " + merge[1].get<std::string>());
        }
        header.metadata["tokenizer.ggml.merges"] = merges;
        const bool oneToken = entry["frame"].size() == 1;
        if (oneToken) {
            header.metadata["tokenizer.ggml.bos_token_id"] = entry["frame"][0].get<int64_t>();
            header.metadata["tokenizer.ggml.add_bos_token"] = true;
        }
        const auto original = parse(file.dump()), converted = fromGguf(header);
        QVERIFY(original && converted);
        std::string shown;
        QVERIFY2(differences(*original, *converted, readJson(folder + "/cases.json"), oneToken,
                             shown) == 0,
                 shown.c_str());
    }

    void scores_data() {
        QTest::addColumn<QString>("name");
        QTest::addColumn<bool>("prefix");
        QTest::addColumn<bool>("eos");
        QTest::newRow("mixtral") << QString("mixtral") << true << false;
        QTest::newRow("no_prefix") << QString("no_prefix") << false << true;
    }
    // The golden files list the merges that the reference's conversion computes from these scores.
    void scores() {
        QFETCH(QString, name);
        QFETCH(bool, prefix);
        QFETCH(bool, eos);
        const std::string folder = kFolder + name.toStdString();
        json entry;
        for (const json& e : readJson(kFolder + "index.json")) {
            if (e["name"] == name.toStdString()) entry = e;
        }
        const json file = readJson(folder + "/tokenizer.json");
        GgufHeader header = headerOf(file, entry);
        header.metadata["tokenizer.ggml.model"] = std::string("llama");
        header.metadata["tokenizer.ggml.bos_token_id"] = int64_t(1);
        header.metadata["tokenizer.ggml.eos_token_id"] = int64_t(2);
        if (eos) header.metadata["tokenizer.ggml.add_eos_token"] = true;
        if (!prefix) header.metadata["tokenizer.ggml.add_space_prefix"] = false;
        const Result<std::string> text = ggufTokenizerJson(header);
        QVERIFY2(text.ok(), text.status().text().c_str());
        QVERIFY(json::parse(*text)["model"]["merges"] == file["model"]["merges"]);
        const auto original = parse(file.dump()), converted = parse(*text);
        QVERIFY(original && converted);
        std::string shown;
        QVERIFY2(
            differences(*original, *converted, readJson(folder + "/cases.json"), true, shown) == 0,
            shown.c_str());
    }

    void unigram() {
        const json entry = [] {
            for (const json& e : readJson(kFolder + "index.json")) {
                if (e["name"] == "t5") return e;
            }
            return json();
        }();
        const json file = readJson(kFolder + "t5/tokenizer.json");
        GgufHeader header = headerOf(file, entry);
        header.metadata["tokenizer.ggml.model"] = std::string("t5");
        header.metadata["tokenizer.ggml.eos_token_id"] = int64_t(2);
        header.metadata["tokenizer.ggml.remove_extra_whitespaces"] = true;
        const json& map = file["normalizer"]["normalizers"][0]["precompiled_charsmap"];
        const QByteArray bytes = QByteArray::fromBase64(map.get<std::string>().c_str());
        QVERIFY(bytes.size() > 1000);
        std::vector<double> numbers;
        for (char c : bytes) numbers.push_back(static_cast<unsigned char>(c));
        header.metadata["tokenizer.ggml.precompiled_charsmap"] = numbers;
        const Result<std::string> text = ggufTokenizerJson(header);
        QVERIFY2(text.ok(), text.status().text().c_str());
        QVERIFY(json::parse(*text)["normalizer"] == file["normalizer"]);
        const auto original = parse(file.dump()), converted = parse(*text);
        QVERIFY(original && converted);
        std::string shown;
        QVERIFY2(differences(*original, *converted, readJson(kFolder + "t5/cases.json"), true,
                             shown) == 0,
                 shown.c_str());
    }

    void equalScoresMeanTheOrderOfIds() {
        const std::vector<ScoredToken> tokens = {{"a", 0, -1000},
                                                 {"b", 1, -1000},
                                                 {"bb", 2, -1000},
                                                 {"abb", 4, -1000},
                                                 {"ab", 3, -1000}};
        const std::vector<std::pair<std::string, std::string>> wanted = {
            {"b", "b"}, {"a", "b"}, {"a", "bb"}, {"ab", "b"}};
        QVERIFY(mergesFromScores(tokens) == wanted);
    }

    void charactersAreNotCutApart() {
        const std::vector<ScoredToken> tokens = {
            {"\u00e9", 0, -2}, {"e", 1, -1}, {"\u00e9e", 2, 0}, {"\xc3", 3, -5}};
        const std::vector<std::pair<std::string, std::string>> wanted = {{"\u00e9", "e"}};
        QVERIFY(mergesFromScores(tokens) == wanted);
    }

    void placeholdersAreNoTokens() {
        GgufHeader header = small("llama", {"<unk>", "\u2581", "a", "[PAD3]", "\u2581a"});
        header.metadata["tokenizer.ggml.token_type"] = std::vector<double>{2, 1, 1, 5, 1};
        const auto tokenizer = fromGguf(header);
        QVERIFY(tokenizer);
        QCOMPARE(tokenizer->encode("a a"), (Ids{4, 4}));
        QCOMPARE(tokenizer->decode({4, 3, 4}), std::string("a a"));
        QCOMPARE(tokenizer->encode("a?a"), (Ids{4, 0, 2}));
        QCOMPARE(tokenizer->vocabSize(), 5);
    }

    void bytesOnlyWhenAllAreThere() {
        const auto tokenizer = fromGguf(small("llama", {"<0x41>", "a", "b"}));
        QVERIFY(tokenizer);
        QCOMPARE(tokenizer->encode("aAb"), (Ids{1, 2}));
    }

    void addedTokensThatMergesMake() {
        GgufHeader header = small("gpt2", {"a", "b", "ab", "abab"});
        header.metadata["tokenizer.ggml.merges"] = Texts{"a b", "ab ab"};
        header.metadata["tokenizer.ggml.token_type"] = std::vector<double>{1, 1, 4, 1};
        const auto tokenizer = fromGguf(header);
        QVERIFY(tokenizer);
        QCOMPARE(tokenizer->encode("abab"), (Ids{2, 2}));
        QVERIFY(!tokenizer->isSpecial(2));
    }

    void beginningByDefault() {
        for (const auto& [pre, count] : {std::pair{"llama-bpe", 2}, std::pair{"qwen2", 1}}) {
            GgufHeader header = small("gpt2", {"a", "<s>"});
            header.metadata["tokenizer.ggml.merges"] = Texts{};
            header.metadata["tokenizer.ggml.pre"] = std::string(pre);
            header.metadata["tokenizer.ggml.token_type"] = std::vector<double>{1, 3};
            header.metadata["tokenizer.ggml.bos_token_id"] = int64_t(1);
            const auto tokenizer = fromGguf(header);
            QVERIFY(tokenizer);
            QCOMPARE(tokenizer->encode("a", {.bos = true}).size(), size_t(count));
        }
    }

    void refusedByName() {
        QVERIFY(errorOf(small("bert", {"a"})).find("\"bert\"") != std::string::npos);
        GgufHeader novel = small("gpt2", {"a"});
        novel.metadata["tokenizer.ggml.pre"] = std::string("novel");
        QVERIFY(errorOf(novel).find("\"novel\"") != std::string::npos);
        QVERIFY(errorOf(small("gpt2", {"a"})).find("merges") != std::string::npos);
        QVERIFY(errorOf(small("t5", {"a"})).find("scores") != std::string::npos);
        GgufHeader uneven = small("llama", {"a", "b"});
        uneven.metadata["tokenizer.ggml.token_type"] = std::vector<double>{1};
        QVERIFY(errorOf(uneven).find("2, 2 and 1 entries") != std::string::npos);
        GgufHeader nan = small("llama", {"a"});
        nan.metadata["tokenizer.ggml.scores"] = std::vector<double>{NAN};
        QVERIFY(errorOf(nan).find("scores") != std::string::npos);
        QVERIFY(errorOf(small("llama", {std::string(2000, 'a')})).find("1024 bytes") !=
                std::string::npos);
    }
};

QTEST_GUILESS_MAIN(TestGgufTokenizer)
#include "test_gguf_tokenizer.moc"
