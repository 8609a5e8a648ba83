// SPDX-License-Identifier: GPL-3.0-or-later
// Log-probabilities of the OpenAI-compatible server, in both formats, whole and streamed.
#include <QtTest>
#include <cmath>

#include "app/serve/logprobs_json.h"
#include "engine/unicode/utf8_assembler.h"
#include "tests/app/serve/serve_fixture.h"

using namespace colibri;
using namespace colibri::test;

class TestApiLogprobs : public QObject {
    Q_OBJECT

    std::unique_ptr<Served> m_served;

    std::string post(const std::string& path, const Json& body) {
        const auto reply = m_served->client().Post(path, body.dump(), "application/json");
        return reply ? reply->body : std::string();
    }
    Json choice(const std::string& path, const Json& body) {
        return Json::parse(post(path, body))["choices"][0];
    }
    // The text includes special tokens, because this model's reasoning tags are special.
    static std::string bytesOf(const Json& content) {
        std::string bytes;
        for (const Json& token : content) {
            if (token["bytes"].is_null()) continue;
            for (const Json& b : token["bytes"]) bytes += char(b.get<int>());
        }
        return bytes;
    }
    static std::string assembled(const std::string& bytes) {
        Utf8Assembler text;
        return text.push(bytes) + text.finish();
    }
    // The engine's own result for the same request.
    RequestResult engineResult(std::vector<int32_t> prompt, int tokens, int logprobs) {
        Request request = greedyRequest(std::move(prompt), tokens);
        request.logprobs = logprobs;
        return Pending(*m_served->engine, request).wait();
    }

private slots:
    void initTestCase() { m_served = std::make_unique<Served>(); }

    void wholeChat() {
        Json body = chatBody("hello", 16);
        QVERIFY(choice("/v1/chat/completions", body)["logprobs"].is_null());
        const std::string plain = choice("/v1/chat/completions", body)["message"]["content"];
        body["logprobs"] = true;
        body["top_logprobs"] = 4;
        const Json answer = choice("/v1/chat/completions", body);
        QCOMPARE(answer["message"]["content"].get<std::string>(), plain);
        QVERIFY(answer["logprobs"]["refusal"].is_null());
        const Json& content = answer["logprobs"]["content"];
        QCOMPARE(content.size(), size_t(16));
        QCOMPARE(assembled(bytesOf(content)), plain);
        const auto prompt = m_served->engine->encodeChat(
            nlohmann::ordered_json::parse(R"([{"role":"user","content":"hello"}])"));
        const RequestResult r = engineResult(*prompt, 16, 4);
        for (size_t i = 0; i < content.size(); ++i) {
            const Json& token = content[i];
            QCOMPARE(token.size(), size_t(4));
            QCOMPARE(token["logprob"].get<float>(), r.logprobs[i][0].value);
            QCOMPARE(token["top_logprobs"].size(), size_t(4));
            for (size_t n = 0; n < 4; ++n) {
                const Json& likely = token["top_logprobs"][n];
                QCOMPARE(likely.size(), size_t(3));
                QCOMPARE(likely["logprob"].get<float>(), r.logprobs[i][n + 1].value);
            }
            QCOMPARE(token["top_logprobs"][0]["token"], token["token"]);  // greedy
        }
        body.erase("top_logprobs");
        const Json bare = choice("/v1/chat/completions", body);
        QVERIFY(!bare["logprobs"]["content"].empty());
        for (const Json& token : bare["logprobs"]["content"]) {
            QVERIFY(token["top_logprobs"].empty());
        }
    }

    // The entries of all chunks equal those of the whole reply. Each comes with its text or after
    // it.
    void streamedChat() {
        Json body = chatBody("hello", 24);
        body["logprobs"] = true;
        body["top_logprobs"] = 2;
        const Json whole = choice("/v1/chat/completions", body);
        body["stream"] = true;
        Json content = Json::array();
        std::string text;
        for (const std::string& e : eventsOf(post("/v1/chat/completions", body))) {
            if (e == "[DONE]") continue;
            const Json part = Json::parse(e)["choices"][0];
            text += part["delta"].value("content", "");
            if (part["logprobs"].is_null()) continue;
            for (const Json& token : part["logprobs"]["content"]) content.push_back(token);
            QVERIFY(assembled(bytesOf(content)).starts_with(text));
        }
        QCOMPARE(content, whole["logprobs"]["content"]);
        QCOMPARE(text, whole["message"]["content"].get<std::string>());
    }

    void completion() {
        Json body = {{"prompt", "hello"},
                     {"max_tokens", 12},
                     {"temperature", 0},
                     {"ignore_eos", true},
                     {"logprobs", 3}};
        const Json answer = choice("/v1/completions", body);
        const Json& logprobs = answer["logprobs"];
        QCOMPARE(logprobs.size(), size_t(4));
        for (const char* key : {"tokens", "token_logprobs", "top_logprobs", "text_offset"}) {
            QVERIFY2(logprobs[key].size() == 12, key);
        }
        const auto prompt = m_served->engine->tokenizer()->encode("hello", {.bos = true});
        const RequestResult r = engineResult(prompt, 12, 3);
        int64_t offset = 0;
        for (size_t i = 0; i < 12; ++i) {
            const Json& top = logprobs["top_logprobs"][i];
            const std::string name = logprobs["tokens"][i];
            QCOMPARE(logprobs["token_logprobs"][i].get<float>(), r.logprobs[i][0].value);
            QCOMPARE(top[name], logprobs["token_logprobs"][i]);
            QCOMPARE(top.size(), size_t(3));
            QVERIFY(logprobs["text_offset"][i] >= offset);
            offset = logprobs["text_offset"][i];
        }
        const QString text = QString::fromStdString(answer["text"].get<std::string>());
        QVERIFY(offset > 0 && offset <= text.toUcs4().size());

        body["stream"] = true;
        Json joined = {{"tokens", Json::array()}, {"text_offset", Json::array()}};
        for (const std::string& e : eventsOf(post("/v1/completions", body))) {
            if (e == "[DONE]") continue;
            const Json part = Json::parse(e)["choices"][0]["logprobs"];
            for (auto& [key, list] : joined.items()) {
                if (!part.is_null()) list.insert(list.end(), part[key].begin(), part[key].end());
            }
        }
        QCOMPARE(joined["tokens"], logprobs["tokens"]);
        QCOMPARE(joined["text_offset"], logprobs["text_offset"]);

        // Without alternatives only the token itself is listed.
        body["stream"] = false;
        body["logprobs"] = 0;
        QCOMPARE(choice("/v1/completions", body)["logprobs"]["top_logprobs"][0].size(), size_t(1));
        body["top_logprobs"] = 2;
        QVERIFY(Json::parse(post("/v1/completions", body)).contains("error"));
    }

    // The tokens of a stop string are listed although their text is not returned.
    void stopStrings() {
        Json body = chatBody("hello", 30);
        const std::string text = choice("/v1/chat/completions", body)["message"]["content"];
        size_t at = text.size() / 2;
        while ((uint8_t(text[at]) & 0xc0) == 0x80) ++at;
        size_t end = at + 1;
        while (end < text.size() && (uint8_t(text[end]) & 0xc0) == 0x80) ++end;
        body["stop"] = text.substr(at, end - at);
        body["logprobs"] = true;
        const Json reply = Json::parse(post("/v1/chat/completions", body));
        const Json& cut = reply["choices"][0];
        QCOMPARE(cut["finish_reason"], "stop");
        QCOMPARE(cut["logprobs"]["content"].size(),
                 reply["usage"]["completion_tokens"].get<size_t>());
    }

    void namesOfTokens() {
        const Tokenizer& tokenizer = *m_served->engine->tokenizer();
        // A two-byte character from tokens of one byte each, neither of which is text by itself.
        int32_t half = -1;
        for (int32_t id = 0; id < tokenizer.vocabSize() && half < 0; ++id) {
            if (tokenizer.tokenBytes(id) == "\xc3") half = id;
        }
        QVERIFY(half >= 0);
        const float infinity = std::numeric_limits<float>::infinity();
        const serve::TokenLogprobs token{{half, -0.5f}, {1 << 20, -infinity}};
        QCOMPARE(serve::chatLogprob(&tokenizer, token).dump(),
                 std::string(R"({"token":"\\xc3","logprob":-0.5,"bytes":[195],"top_logprobs":)"
                             R"([{"token":"token_id:1048576","logprob":-9999.0,"bytes":null}]})"));
        serve::CompletionLogprobs completion(&tokenizer);
        QCOMPARE(completion.next({&token, 1})["tokens"].dump(), std::string(R"(["bytes:\\xc3"])"));
        QCOMPARE(serve::chatLogprob(nullptr, {{7, -1.0f}})["token"], "token_id:7");
    }
};

QTEST_GUILESS_MAIN(TestApiLogprobs)
#include "test_api_logprobs.moc"
