// SPDX-License-Identifier: GPL-3.0-or-later
// Broken and hostile Unigram models and compiled character maps. The golden tokenizers have valid
// ones.
#include <QtTest>
#include <nlohmann/json.hpp>

#include "engine/text/tokenizer.h"

using namespace colibri;
using nlohmann::json;

namespace {

using Ids = std::vector<int32_t>;

Result<std::unique_ptr<Tokenizer>> parse(const json& file) {
    return Tokenizer::parse(file.dump(), "t.json");
}

std::string errorOf(const json& file) {
    const auto result = parse(file);
    return result ? "no error" : result.status().message();
}

// Tokens "a", "b" and "ab", after a character map.
json withCharsmap(const std::string& base64) {
    return {{"model",
             {{"type", "BPE"},
              {"vocab", {{"a", 0}, {"b", 1}, {"ab", 3}}},
              {"merges", json::array({"a b"})}}},
            {"normalizer", {{"type", "Precompiled"}, {"precompiled_charsmap", base64}}}};
}

}  // namespace

class TestSentencePiece : public QObject {
    Q_OBJECT

private slots:
    // The previous token of the best path starts within the longest token's length.
    void unigramOfManyOverlappingTokens() {
        json vocab = json::array({{"<unk>", 0.0}});
        for (int length = 1; length <= 64; ++length) {
            vocab.push_back({std::string(length, 'a'), -1.0 - length * 0.9});
        }
        const auto tokenizer =
            parse({{"model", {{"type", "Unigram"}, {"unk_id", 0}, {"vocab", vocab}}}});
        QVERIFY2(bool(tokenizer), tokenizer.status().message().c_str());
        QCOMPARE((*tokenizer)->encode(std::string(64 * 4096, 'a')), Ids(4096, 64));
    }

    void brokenUnigram_data() {
        QTest::addColumn<QString>("model");
        QTest::addColumn<QString>("message");
        const auto row = [](const char* model, const char* message) {
            QTest::newRow(model) << model << message;
        };
        row(R"({"vocab": {"a": 0}})", "model.vocab");
        row(R"({"vocab": [["a"]]})", "token 0 is not a string and a score");
        row(R"({"vocab": [["a", 0], ["b", "1"]]})", "token 1 is not a string and a score");
        row(R"({"vocab": [["a", 0]], "unk_id": 1})", "unk_id 1 is not in the vocabulary");
        row(R"({"vocab": [["a", 0]], "unk_id": -1})", "unk_id -1 is not in the vocabulary");
        row(R"({"vocab": [["a", 0]], "byte_fallback": 1})", "model.byte_fallback");
    }
    void brokenUnigram() {
        QFETCH(QString, model);
        QFETCH(QString, message);
        json file = {{"model", json::parse(model.toStdString())}};
        file["model"]["type"] = "Unigram";
        const std::string error = errorOf(file);
        QVERIFY2(error.find(message.toStdString()) != std::string::npos, error.c_str());
    }

    void longUnigramTokensAreRefused() {
        json file = {{"model", {{"type", "Unigram"}}}};
        file["model"]["vocab"] = json::array({json::array({std::string(5000, 'a'), 0.0})});
        QVERIFY(errorOf(file).find("of more than 4096 bytes") != std::string::npos);
    }

    void brokenCharsmap_data() {
        QTest::addColumn<QString>("base64");
        QTest::addColumn<QString>("message");
        const auto row = [](const char* base64, const char* message) {
            QTest::newRow(base64) << base64 << message;
        };
        row("A!==", "not base64");
        row("AAA=", "truncated");
        row("/////w==", "truncated");
        row("AgAAAAAA", "truncated");  // half a unit
        row("AAAAAMM=", "not UTF-8");  // no tree, half a character
    }
    void brokenCharsmap() {
        QFETCH(QString, base64);
        QFETCH(QString, message);
        const std::string error = errorOf(withCharsmap(base64.toStdString()));
        QVERIFY2(error.find(message.toStdString()) != std::string::npos, error.c_str());
    }

    // A tree with units that point outside it, and into a character.
    void charsmapThatLeadsAstray() {
        for (uint32_t root : {0u, 0xFFFFFFFFu, 0x41u << 10, 0x40u << 10}) {
            for (uint32_t leaf : {0u, 1u, 2u, 0x7FFFFFFFu}) {
                std::string map(4, '\0');
                const auto add = [&](uint32_t unit) {
                    for (int shift : {0, 8, 16, 24}) map += char(unit >> shift & 0xFF);
                };
                add(root);
                add('a' | 0x100 | 3u << 10);  // at 1: its end unit is at 2
                add(leaf);
                map[0] = char(map.size() - 4);
                map += "\xc3\xa9";
                const auto tokenizer =
                    parse(withCharsmap(QByteArray::fromStdString(map).toBase64().toStdString()));
                QVERIFY2(bool(tokenizer), tokenizer.status().message().c_str());
                const Ids ids = (*tokenizer)->encode("ab");
                QVERIFY(ids == Ids{3} || ids == Ids{1});  // "ab", or the replacement and "b"
            }
        }
    }
};

QTEST_GUILESS_MAIN(TestSentencePiece)
#include "test_sentencepiece.moc"
