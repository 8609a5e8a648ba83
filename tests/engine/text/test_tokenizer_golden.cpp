// SPDX-License-Identifier: GPL-3.0-or-later
// Compares all golden strings and id sequences with the output of the reference library.
#include <QtTest>
#include <fstream>
#include <nlohmann/json.hpp>

#include "engine/text/tokenizer.h"
#include "engine/unicode/utf8_assembler.h"

using namespace colibri;
using nlohmann::json;

namespace {

const std::string kFolder = std::string(COLIBRI_GOLDEN_DIR) + "/tokenizers/";

json readJson(const std::string& path) {
    std::ifstream in(path);
    return json::parse(in);
}

using Ids = std::vector<int32_t>;

std::string show(const Ids& ids) {
    return json(ids).dump();
}

std::string show(const std::string& text) {
    return json(text).dump(-1, ' ', true, json::error_handler_t::replace);
}

std::string hex(const std::string& bytes) {
    return QByteArray::fromStdString(bytes).toHex().toStdString();
}

// Counts differences and keeps the first few for the message.
class Differences {
public:
    template <typename T>
    void compare(const std::string& which, const T& got, const T& wanted) {
        ++m_compared;
        if (got == wanted) return;
        if (++m_count <= 10)
            m_shown +=
                "\n  " + which + "\n    got    " + show(got) + "\n    wanted " + show(wanted);
    }
    int compared() const { return m_compared; }
    int count() const { return m_count; }
    std::string text() const {
        return std::to_string(m_count) + " of " + std::to_string(m_compared) + " differ:" + m_shown;
    }

private:
    int m_compared = 0, m_count = 0;
    std::string m_shown;
};

std::string assembled(const Tokenizer& tokenizer, const Ids& ids, bool skipSpecial) {
    Utf8Assembler assembler;
    std::string out;
    for (int32_t id : ids) out += assembler.push(tokenizer.tokenBytes(id, skipSpecial));
    return out + assembler.finish();
}

std::string whole(const std::string& bytes) {
    Utf8Assembler assembler;
    const std::string out = assembler.push(bytes);
    return out + assembler.finish();
}

}  // namespace

class TestTokenizerGolden : public QObject {
    Q_OBJECT

private:
    void addRows() {
        QTest::addColumn<QString>("name");
        for (const json& entry : readJson(kFolder + "index.json")) {
            const std::string name = entry["name"];
            QTest::newRow(name.c_str()) << QString::fromStdString(name);
        }
    }

    std::unique_ptr<Tokenizer> load(const std::string& name) {
        auto tokenizer = Tokenizer::load(kFolder + name);
        if (!tokenizer) qWarning("%s", tokenizer.status().text().c_str());
        return tokenizer ? std::move(*tokenizer) : nullptr;
    }

private slots:
    void encode_data() { addRows(); }
    void encode() {
        QFETCH(QString, name);
        const auto tokenizer = load(name.toStdString());
        QVERIFY(tokenizer);
        Differences ids, plain, bos, decoded, skipped, streamed;
        int index = 0;
        const json cases = readJson(kFolder + name.toStdString() + "/cases.json");
        for (const json& item : cases["encode"]) {
            const std::string text = item["text"];
            const std::string which = "encode[" + std::to_string(index++) + "] " + show(text);
            const Ids wanted = item["ids"].get<Ids>();
            ids.compare(which, tokenizer->encode(text), wanted);
            plain.compare(which + " plain", tokenizer->encode(text, {.special = false}),
                          item.value("plain", item["ids"]).get<Ids>());
            bos.compare(which + " with_bos", tokenizer->encode(text, {.bos = true}),
                        item.value("with_bos", item["ids"]).get<Ids>());
            const std::string whole = item.value("decoded", text);
            decoded.compare(which + " decoded", tokenizer->decode(wanted), whole);
            skipped.compare(which + " decoded_skip", tokenizer->decode(wanted, true),
                            item.value("decoded_skip", whole));
            streamed.compare(which + " streamed", assembled(*tokenizer, wanted, false),
                             item.value("streamed", whole));
        }
        QVERIFY(ids.compared() > 100);
        for (const Differences* part : {&ids, &plain, &bos, &decoded, &skipped, &streamed}) {
            QVERIFY2(part->count() == 0, part->text().c_str());
        }
    }

    void decode_data() { addRows(); }
    void decode() {
        QFETCH(QString, name);
        const auto tokenizer = load(name.toStdString());
        QVERIFY(tokenizer);
        Differences bytes, texts, skipped;
        int index = 0;
        const json cases = readJson(kFolder + name.toStdString() + "/cases.json");
        for (const json& item : cases["decode"]) {
            const Ids ids = item["ids"].get<Ids>();
            const std::string which = "decode[" + std::to_string(index++) + "] " + show(ids);
            const std::string raw = tokenizer->decode(ids);
            bytes.compare(which + " hex", hex(raw), item["hex"].get<std::string>());
            const std::string text = item["text"];
            texts.compare(which + " text", whole(raw), text);
            skipped.compare(which + " text_skip", whole(tokenizer->decode(ids, true)),
                            item.value("text_skip", text));
        }
        QVERIFY(bytes.compared() > 100);
        for (const Differences* part : {&bytes, &texts, &skipped}) {
            QVERIFY2(part->count() == 0, part->text().c_str());
        }
    }

    void vocabulary_data() { addRows(); }
    void vocabulary() {
        QFETCH(QString, name);
        const auto tokenizer = load(name.toStdString());
        QVERIFY(tokenizer);
        for (const json& entry : readJson(kFolder + "index.json")) {
            if (entry["name"] != name.toStdString()) continue;
            QCOMPARE(tokenizer->vocabSize(), entry["vocab_size"].get<int>());
            const Ids empty = tokenizer->encode("", {.bos = true});
            QCOMPARE(empty, entry["frame"].get<Ids>());
        }
        const json file = readJson(kFolder + name.toStdString() + "/tokenizer.json");
        json vocab = file["model"]["vocab"];
        if (vocab.is_array()) {  // Unigram: pieces and scores in the order of ids
            json ids = json::object();
            for (size_t i = 0; i < vocab.size(); ++i) ids[vocab[i][0].get<std::string>()] = i;
            vocab = std::move(ids);
        }
        for (const auto& [token, id] : vocab.items()) {
            QCOMPARE(tokenizer->tokenToId(token), std::optional<int32_t>(id.get<int32_t>()));
            QCOMPARE(tokenizer->idToToken(id.get<int32_t>()), token);
        }
        for (const json& token : file["added_tokens"]) {
            QCOMPARE(tokenizer->tokenToId(token["content"].get<std::string>()),
                     std::optional<int32_t>(token["id"].get<int32_t>()));
            QCOMPARE(tokenizer->isSpecial(token["id"]), token["special"].get<bool>());
        }
    }
};

QTEST_GUILESS_MAIN(TestTokenizerGolden)
#include "test_tokenizer_golden.moc"
