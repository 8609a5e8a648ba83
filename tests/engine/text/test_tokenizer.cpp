// SPDX-License-Identifier: GPL-3.0-or-later
// Broken and hostile tokenizer files and texts; components that the golden tokenizers do not use.
#include <QtTest>
#include <atomic>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>
#include <random>
#include <thread>

#include "engine/text/tokenizer.h"
#include "engine/unicode/utf8_assembler.h"

using namespace colibri;
using nlohmann::json;

namespace {

using Ids = std::vector<int32_t>;

std::string readAll(const std::string& path) {
    std::ifstream in(path, std::ios::binary);
    return {std::istreambuf_iterator<char>(in), {}};
}

const std::string kFolder = std::string(COLIBRI_GOLDEN_DIR) + "/tokenizers/";

// A small tokenizer that the tests below change.
json base() {
    return json::parse(
        "{\"added_tokens\": [], \"normalizer\": null, \"pre_tokenizer\": null, \"post_processor\": "
        "null, \"decoder\": null, \"model\": {\"type\": \"BPE\", \"vocab\": {\"a\": 0, \"b\": 1, "
        "\"c\": 2, \"ab\": 3, \"abc\": 4}, \"merges\": [\"a b\", [\"ab\", \"c\"]]}}");
}

json addedToken(int id, const std::string& content) {
    return {{"id", id}, {"content", content}, {"special", false}, {"normalized", false}};
}

Result<std::unique_ptr<Tokenizer>> parse(const json& file) {
    return Tokenizer::parse(file.dump(), "t.json");
}

std::string errorOf(const json& file) {
    const auto result = parse(file);
    return result ? "no error" : result.status().message();
}

std::unique_ptr<Tokenizer> golden(const std::string& name) {
    auto tokenizer = Tokenizer::load(kFolder + name);
    return tokenizer ? std::move(*tokenizer) : nullptr;
}

std::string replaced(int count) {
    std::string out;
    for (int i = 0; i < count; ++i) out += "\xef\xbf\xbd";
    return out;
}

}  // namespace

class TestTokenizer : public QObject {
    Q_OBJECT

private slots:
    void brokenFiles_data() {
        QTest::addColumn<QString>("pointer");
        QTest::addColumn<QString>("value");
        QTest::addColumn<QString>("message");
        const auto row = [](const char* pointer, const char* value, const char* message) {
            QTest::newRow((std::string(pointer) + " = " + value).c_str())
                << pointer << value << message;
        };
        row("/model", "null", "\"model\" is missing");
        row("/model", "[]", "model");
        row("/model/type", "\"Unigramm\"", "model type \"Unigramm\"");
        row("/model/type", "7", "model.type");
        row("/model/vocab", "[]", "model.vocab");
        row("/model/vocab/a", "\"0\"", "token \"a\" has no id");
        row("/model/vocab/a", "-1", "token \"a\" has no id");
        row("/model/vocab/a", "1e10", "token \"a\" has no id");
        row("/model/vocab/a", "4000000000", "token \"a\" has no id");
        row("/model/vocab/a", "99999999999999999999", "token \"a\" has no id");
        row("/model/vocab/a", "1", "id 1 of another token");
        row("/model/merges", "{}", "model.merges");
        row("/model/merges/0", "\"a x\"", "not in the vocabulary");
        row("/model/merges/0", "\"b a\"", "produces a token that is not in the vocabulary");
        row("/model/merges/0", "\"ab\"", "not two tokens");
        row("/model/merges/0", "\"a b c\"", "not two tokens");
        row("/model/merges/0", "[\"a\"]", "not a pair");
        row("/model/merges/0", "3", "not a pair");
        row("/model/dropout", "0.5", "dropout");
        row("/model/byte_fallback", "\"yes\"", "model.byte_fallback");
        row("/added_tokens", "{}", "added_tokens");
        row("/added_tokens/0", "5", "added_tokens[0]");
        row("/added_tokens/0", "{\"id\": 9}", "added_tokens[0].content");
        row("/added_tokens/0", "{\"content\": \"x\"}", "added_tokens[0].id");
        row("/added_tokens/0", "{\"id\": -3, \"content\": \"x\"}", "added_tokens[0]");
        row("/added_tokens/0", "{\"id\": 2000000000, \"content\": \"x\"}", "added_tokens[0]");
        row("/added_tokens/0", "{\"id\": 0, \"content\": \"x\"}", "belongs to another token");
        row("/added_tokens/0", "{\"id\": 7, \"content\": \"a\"}", "differs from the vocabulary's");
        row("/added_tokens", "[{\"id\": 7, \"content\": \"x\"}, {\"id\": 7, \"content\": \"y\"}]",
            "another added token");
        row("/normalizer", "\"NFC\"", "normalizer");
        row("/normalizer", "{\"type\": \"Rot13\"}", "normalizer type \"Rot13\"");
        row("/normalizer",
            "{\"type\": \"Sequence\", \"normalizers\": [{\"type\": \"NFC\"}, {\"type\": "
            "\"Rot13\"}]}",
            "normalizers[1] type \"Rot13\"");
        row("/normalizer", "{\"type\": \"Replace\", \"pattern\": {}, \"content\": \"\"}",
            "pattern");
        std::string doubling;  // doubles the length seventeen times
        for (int i = 0; i < 17; ++i) {
            doubling += std::string(i ? "," : "") + "{\"type\": \"Replace\", \"pattern\": " +
                        "{\"String\": \"a\"}, \"content\": \"aa\"}";
        }
        row("/normalizer",
            ("{\"type\": \"Sequence\", \"normalizers\": [" + doubling + "]}").c_str(),
            "times as long");
        row("/pre_tokenizer", "{\"type\": \"Foo\"}", "pre_tokenizer type \"Foo\"");
        row("/pre_tokenizer",
            "{\"type\": \"Split\", \"pattern\": {\"Regex\": \"(\"}, \"behavior\": \"Isolated\"}",
            "pattern \"(\"");
        row("/pre_tokenizer",
            "{\"type\": \"Split\", \"pattern\": {\"Regex\": \"[a\"}, \"behavior\": \"Isolated\"}",
            "unterminated class");
        row("/pre_tokenizer",
            "{\"type\": \"Split\", \"pattern\": {\"Regex\": \"(*LIMIT_MATCH=1)a\"}, \"behavior\": "
            "\"Isolated\"}",
            "(*");
        row("/pre_tokenizer",
            "{\"type\": \"Split\", \"pattern\": {\"Regex\": \"a\"}, \"behavior\": \"Shredded\"}",
            "Shredded");
        row("/pre_tokenizer", "{\"type\": \"Metaspace\", \"replacement\": \"ab\"}", "replacement");
        row("/pre_tokenizer", "{\"type\": \"Metaspace\", \"replacement\": \"\"}", "replacement");
        row("/decoder", "{\"type\": \"CTC\"}", "decoder type \"CTC\"");
        row("/post_processor", "{\"type\": \"Foo\"}", "post_processor type \"Foo\"");
        row("/post_processor",
            "{\"type\": \"TemplateProcessing\", \"single\": [], \"special_tokens\": {}}",
            "text itself is missing");
        row("/post_processor",
            "{\"type\": \"TemplateProcessing\", \"single\": [{\"SpecialToken\": {\"id\": "
            "\"<s>\"}}, {\"Sequence\": {\"id\": \"A\"}}], \"special_tokens\": {}}",
            "special_tokens.<s>.ids");
        row("/post_processor",
            "{\"type\": \"TemplateProcessing\", \"single\": [{\"SpecialToken\": {\"id\": "
            "\"<s>\"}}, {\"Sequence\": {\"id\": \"A\"}}], \"special_tokens\": {\"<s>\": {\"ids\": "
            "[77]}}}",
            "no token with the id 77");
    }

    void brokenFiles() {
        QFETCH(QString, pointer);
        QFETCH(QString, value);
        QFETCH(QString, message);
        json file = base();
        file[json::json_pointer(pointer.toStdString())] = json::parse(value.toStdString());
        const auto result = parse(file);
        QVERIFY(!result);
        QVERIFY(result.status().code() == Code::BadInput ||
                result.status().code() == Code::Unsupported);
        const std::string text = result.status().message();
        QVERIFY2(text.starts_with("t.json: "), text.c_str());
        QVERIFY2(text.find(message.toStdString()) != std::string::npos, text.c_str());
    }

    void everyTruncationIsRefused() {
        for (const char* name : {"qwen2", "gpt2_prefix_space"}) {
            const std::string whole = readAll(kFolder + name + "/tokenizer.json");
            QVERIFY(whole.size() > 10000);
            for (size_t size = 0; size + 2 < whole.size(); size += 97) {
                const auto result =
                    Tokenizer::parse(std::string_view(whole).substr(0, size), "t.json");
                QVERIFY(!result);
                QVERIFY(result.status().code() == Code::BadInput);
            }
        }
    }

    void changedBytesNeverCrash() {
        const std::string whole = readAll(kFolder + "llama3/tokenizer.json");
        const size_t head = whole.find("\"vocab\"");  // after it, most changes are accepted
        QVERIFY(head != std::string::npos);
        std::mt19937 random(3);
        int accepted = 0;
        for (int i = 0; i < 300; ++i) {
            std::string changed = whole;
            for (int n = 0; n < 2; ++n)
                changed[random() % (i % 4 ? head : whole.size())] = char(' ' + random() % 95);
            const auto result = Tokenizer::parse(changed, "t.json");
            if (!result) continue;
            ++accepted;
            (void)(*result)->decode((*result)->encode("Hello <|eot_id|> w\xc3\xb6rld 123"));
        }
        QVERIFY(accepted > 0);
    }

    void nestedTooDeep() {
        json inner = {{"type", "NFC"}};
        for (int i = 0; i < 1000; ++i) inner = {{"type", "Sequence"}, {"normalizers", {inner}}};
        json file = base();
        file["normalizer"] = inner;
        QVERIFY2(errorOf(file).find("too deep") != std::string::npos, errorOf(file).c_str());
        const std::string brackets = std::string(1000000, '[');
        QVERIFY(!Tokenizer::parse(brackets, "t.json"));
    }

    void missingFile() {
        const auto result = Tokenizer::load(kFolder + "no_such_folder");
        QVERIFY(!result);
        QVERIFY(result.status().message().find("no_such_folder") != std::string::npos);
    }

    // A megabyte that the patterns cannot split. If the merge loop were quadratic, this would take
    // hours.
    void aMegabyteInOnePiece_data() {
        QTest::addColumn<QString>("unit");
        for (const char* unit : {"a", "\u7684", "\u0301\u0316", " ", " \n", "7"})
            QTest::newRow(unit) << unit;
    }
    void aMegabyteInOnePiece() {
        QFETCH(QString, unit);
        std::string text;
        while (text.size() < (1 << 20)) text += unit.toStdString();
        for (const char* name : {"qwen2", "gpt2", "deepseek_v3", "mixtral", "unigram_bytes"}) {
            const auto tokenizer = golden(name);
            QVERIFY(tokenizer);
            const Ids ids = tokenizer->encode(text);
            QVERIFY(!ids.empty());
            QVERIFY(ids.size() <= text.size() + 1);  // and the added space
            if (unit != "\u0301\u0316") QVERIFY(tokenizer->decode(ids) == text);
        }
    }

    void aMegabyteOfAddedTokens() {
        json file = base();
        file["added_tokens"] = {addedToken(5, "  "), addedToken(6, "x"),
                                addedToken(7, std::string(3000, 'y') + "z")};
        file["added_tokens"][0]["rstrip"] = true;
        file["added_tokens"][1]["lstrip"] = true;
        const auto tokenizer = parse(file);
        QVERIFY(bool(tokenizer));
        QVERIFY((*tokenizer)->encode(std::string(1 << 20, ' ')).size() > 1);
        QCOMPARE((*tokenizer)->encode(std::string(1 << 20, 'x')).size(), size_t(1 << 20));
        QVERIFY((*tokenizer)->encode(std::string(1 << 20, 'y')).empty());
    }

    // The reference's tables are from Unicode 9: later marks are neither composed nor stripped.
    void newerMarksAreNoMarks_data() {
        QTest::addColumn<QString>("type");
        QTest::addColumn<QString>("text");
        QTest::newRow("composed across") << "NFC"
                                         << "a\u07fd\u0301";
        QTest::newRow("decomposed") << "NFKC"
                                    << "a\U0001e030\u0301";
        QTest::newRow("stripped") << "StripAccents"
                                  << "a\u180f";
    }
    void newerMarksAreNoMarks() {
        QFETCH(QString, type);
        QFETCH(QString, text);
        json file = base();
        json& vocab = file["model"]["vocab"];
        vocab = {{"a", 0}, {"\u07fd", 1}, {"\u0301", 2}, {"\U0001e030", 3}, {"\u180f", 4}};
        file["model"]["merges"] = json::array();
        file["normalizer"] = {{"type", type.toStdString()}};
        const auto tokenizer = parse(file);
        QVERIFY2(bool(tokenizer), tokenizer.status().message().c_str());
        const Ids ids = (*tokenizer)->encode(text.toStdString());
        QCOMPARE(ids.size(), size_t(text.toUcs4().size()));
    }

    void chinesePunctuationIsNotChinese() {
        for (const char* pattern : {"\\p{Han}+", "[x\\p{Han}]+", "[^\\P{Han}]+"}) {
            json file = base();
            file["model"]["vocab"]["\u3001"] = 9;
            file["pre_tokenizer"] = {
                {"type", "Split"}, {"pattern", {{"Regex", pattern}}}, {"behavior", "Removed"}};
            const auto tokenizer = parse(file);
            QVERIFY2(bool(tokenizer), tokenizer.status().message().c_str());
            QCOMPARE((*tokenizer)->encode("\u65e5\u3001\u672ca"), (Ids{9, 0}));
        }
    }

    // Encoding cannot fail: if the pattern reaches its limit, the text is not split.
    void patternThatExplodes() {
        json file = base();
        file["pre_tokenizer"] = {{"type", "Split"},
                                 {"pattern", {{"Regex", "(a|aa|ab|ba)+$x"}}},
                                 {"behavior", "Isolated"}};
        const auto tokenizer = parse(file);
        QVERIFY(bool(tokenizer));
        std::string text;
        for (int i = 0; i < 5000; ++i) text += "ab";
        const Ids ids = (*tokenizer)->encode(text + "c");
        QCOMPARE(ids.size(), size_t(5000));
        QCOMPARE(ids.front(), 3);
        QCOMPARE(ids.back(), 4);
    }

    void invalidUtf8BecomesReplacementCharacters() {
        const auto tokenizer = golden("gpt2");
        QVERIFY(tokenizer);
        const std::string bad =
            "a\xff"
            "b\xe4\xb8"
            "c\xed\xa0\x80"
            "d\xf0\x9f\x98";
        const Ids ids = tokenizer->encode(bad);
        QCOMPARE(tokenizer->decode(ids),
                 "a" + replaced(1) + "b" + replaced(1) + "c" + replaced(3) + "d" + replaced(1));
        QCOMPARE(ids, tokenizer->encode(tokenizer->decode(ids)));
    }

    void idsOutOfRange() {
        const auto tokenizer = golden("gpt2");
        QVERIFY(tokenizer);
        for (int32_t id : {-1, INT32_MIN, INT32_MAX, tokenizer->vocabSize()}) {
            QCOMPARE(tokenizer->decode({id}), std::string());
            QCOMPARE(tokenizer->tokenBytes(id), std::string());
            QCOMPARE(tokenizer->idToToken(id), std::string());
            QVERIFY(!tokenizer->isSpecial(id));
        }
        QVERIFY(!tokenizer->tokenToId("no such token"));
    }

    void assemblerHoldsIncompleteCharacters() {
        const std::string text = "a\u00e9\u7684\U0001F600z";
        for (size_t cut = 0; cut <= text.size(); ++cut) {
            Utf8Assembler assembler;
            std::string out = assembler.push(text.substr(0, cut));
            QVERIFY(QString::fromStdString(out).toStdString() == out);
            out += assembler.push(text.substr(cut));
            out += assembler.finish();
            QCOMPARE(out, text);
        }
        Utf8Assembler assembler;
        QCOMPARE(assembler.push("\xf0\x9f"), std::string());
        QCOMPARE(assembler.push("\x98"), std::string());
        QCOMPARE(assembler.push("x"), replaced(1) + "x");
        QCOMPARE(assembler.push("\xe0\x80\xff"), replaced(3));
        QCOMPARE(assembler.push("\xe4"), std::string());
        QCOMPARE(assembler.finish(), replaced(1));
        QCOMPARE(assembler.finish(), std::string());
    }

    // SentencePiece as in Mixtral: spaces as U+2581, unknown characters as bytes.
    void byteFallback() {
        json file = base();
        json& vocab = file["model"]["vocab"];
        vocab = {{"<unk>", 0}, {"<s>", 1},     {"\u2581", 2}, {"a", 3},
                 {"b", 4},     {"\u2581a", 5}, {"ab", 6}};
        for (int b = 0; b < 256; ++b)
            vocab[QString("<0x%1>")
                      .arg(b, 2, 16, QChar('0'))
                      .toUpper()
                      .replace("X", "x")
                      .toStdString()] = 10 + b;
        file["model"]["merges"] = {"\u2581 a", "a b"};
        file["model"]["byte_fallback"] = true;
        file["model"]["unk_token"] = "<unk>";
        file["model"]["fuse_unk"] = true;
        file["normalizer"] = {
            {"type", "Sequence"},
            {"normalizers",
             {{{"type", "Prepend"}, {"prepend", "\u2581"}},
              {{"type", "Replace"}, {"pattern", {{"String", " "}}}, {"content", "\u2581"}}}}};
        file["decoder"] = {
            {"type", "Sequence"},
            {"decoders",
             {{{"type", "Replace"}, {"pattern", {{"String", "\u2581"}}}, {"content", " "}},
              {{"type", "ByteFallback"}},
              {{"type", "Fuse"}},
              {{"type", "Strip"}, {"content", " "}, {"start", 1}, {"stop", 0}}}}};
        file["added_tokens"] = {
            {{"id", 1}, {"content", "<s>"}, {"special", true}, {"normalized", false}}};
        const auto tokenizer = parse(file);
        QVERIFY2(bool(tokenizer), tokenizer ? "" : tokenizer.status().text().c_str());
        const Tokenizer& t = **tokenizer;
        QCOMPARE(t.encode("ab a\u00e9"), (Ids{5, 4, 5, 10 + 0xC3, 10 + 0xA9}));
        QCOMPARE(t.encode("<s>ab"), (Ids{1, 5, 4}));
        QCOMPARE(t.decode({5, 4, 5, 10 + 0xC3, 10 + 0xA9}), std::string("ab a\u00e9"));
        QCOMPARE(t.tokenBytes(5), std::string(" a"));
        QCOMPARE(t.tokenBytes(10 + 0xC3), std::string("\xC3"));
    }

    void oneTokenizerOnManyThreads() {
        const auto tokenizer = golden("llama3");
        QVERIFY(tokenizer);
        const std::string text =
            "Hello there, it's 12345 o'clock.\n\n  <|eot_id|> d\u00e9j\u00e0 vu";
        const Ids wanted = tokenizer->encode(text);
        std::atomic<int> wrong = 0;
        std::vector<std::thread> threads;
        for (int t = 0; t < 4; ++t) {
            threads.emplace_back([&] {
                for (int i = 0; i < 200; ++i) {
                    if (tokenizer->encode(text) != wanted || tokenizer->decode(wanted) != text)
                        ++wrong;
                }
            });
        }
        for (std::thread& thread : threads) thread.join();
        QCOMPARE(wrong.load(), 0);
    }
};

QTEST_GUILESS_MAIN(TestTokenizer)
#include "test_tokenizer.moc"
