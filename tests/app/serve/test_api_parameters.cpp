// SPDX-License-Identifier: GPL-3.0-or-later
// Parameters as clients send them, and the errors that clients get.
#include <QtTest>

#include "tests/app/serve/serve_fixture.h"

using namespace colibri;
using namespace colibri::test;

class TestApiParameters : public QObject {
    Q_OBJECT

    static constexpr const char* kChat = "/v1/chat/completions";
    static constexpr const char* kCompletion = "/v1/completions";

    std::unique_ptr<Served> m_served;

    static Json bodyFor(const std::string& path, const char* patch) {
        Json body = chatBody("hello", 2);
        if (path == kCompletion) {
            body.erase("messages");
            body["prompt"] = "hello";
        }
        // Not a merge patch, which would drop null values.
        const Json changes = Json::parse(patch);
        for (const auto& [key, value] : changes.items()) body[key] = value;
        return body;
    }
    static std::string nameIn(const std::string& patch) {
        const Json json = Json::parse(patch);
        return json.begin().key();
    }
    std::pair<int, Json> post(const std::string& path, const Json& body) {
        httplib::Client client = m_served->client();
        const auto reply = client.Post(path, body.dump(), "application/json");
        return {reply->status, Json::parse(reply->body)};
    }
    std::string textOf(const char* patch) {
        return post(kCompletion, bodyFor(kCompletion, patch)).second["choices"][0]["text"];
    }

private slots:
    void initTestCase() {
        m_served = std::make_unique<Served>(Knobs{{KnobId::ContextLength, 128}});
    }

    void whatLeavesTheReplyAsItIsIsAccepted_data() {
        QTest::addColumn<QByteArray>("patch");
        for (const char* patch :
             {R"({"max_tokens":null})", R"({"top_k":-1})", R"({"top_k":null})",
              R"({"n":1,"best_of":1,"echo":false,"logit_bias":{},"logit_bias":null})",
              R"({"presence_penalty":0,"frequency_penalty":0.0,"repetition_penalty":1})",
              R"({"response_format":{"type":"text"}})", R"({"user":"me","store":true})",
              R"({"metadata":{"a":"b"},"service_tier":"auto","seed":-1})",
              R"({"stream_options":null,"stop":null,"suffix":null,"stream":null})",
              R"({"stream_options":{"include_usage":true}})",
              R"({"prediction":{"type":"content","content":"x"},"parallel_tool_calls":true})",
              R"({"min_tokens":0,"use_beam_search":false,"skip_special_tokens":true})",
              R"({"stop_token_ids":[],"guided_json":null,"length_penalty":1.0})",
              R"({"mirostat":0,"mirostat_tau":5,"typical_p":1,"cache_prompt":true,"grammar":""})",
              R"({"xtc_probability":0,"dry_multiplier":0.0,"n_probs":0,"id_slot":-1})",
              R"({"tools":null,"something_new":null})"}) {
            QTest::newRow(patch) << QByteArray(patch);
        }
    }
    void whatLeavesTheReplyAsItIsIsAccepted() {
        QFETCH(QByteArray, patch);
        for (const char* path : {kChat, kCompletion}) {
            const auto [status, reply] = post(path, bodyFor(path, patch));
            QVERIFY2(status == 200, reply.dump().c_str());
        }
        if (patch.contains("tools")) {
            QCOMPARE(post(kChat, bodyFor(kChat, R"({"tools":[],"tool_choice":"auto",
                "function_call":"none","modalities":["text"],"verbosity":"medium",
                "reasoning_format":"auto"})"))
                         .first,
                     200);
        }
    }

    void whatWouldChangeTheReplyIsRefusedByName_data() {
        QTest::addColumn<QByteArray>("patch");
        for (const char* patch : {R"({"n":2})",
                                  R"({"best_of":3})",
                                  R"({"echo":true})",
                                  R"({"response_format":{"type":"json_object"}})",
                                  R"({"response_format":{"type":"json_schema","json_schema":{}}})",
                                  R"({"guided_json":{}})",
                                  R"({"guided_regex":"a+"})",
                                  R"({"guided_choice":["a"]})",
                                  R"({"guided_grammar":"root ::= a"})",
                                  R"({"structured_outputs":{"json":{}}})",
                                  R"({"grammar":"root ::= a"})",
                                  R"({"json_schema":{}})",
                                  R"({"min_tokens":5})",
                                  R"({"mirostat":2})",
                                  R"({"typical_p":0.5})",
                                  R"({"stop_token_ids":[3]})",
                                  R"({"use_beam_search":true})",
                                  R"({"skip_special_tokens":false})",
                                  R"({"prompt_logprobs":1})",
                                  R"({"bad_words":["x"]})",
                                  R"({"samplers":["top_k"]})",
                                  R"({"truncate_prompt_tokens":5})",
                                  R"({"xtc_probability":0.5})",
                                  R"({"dry_multiplier":0.8})",
                                  R"({"repeat_last_n":64})",
                                  R"({"lora":[{"id":0}]})"}) {
            QTest::newRow(patch) << QByteArray(patch);
        }
    }
    void whatWouldChangeTheReplyIsRefusedByName() {
        QFETCH(QByteArray, patch);
        const std::string name = nameIn(patch.toStdString());
        for (const char* path : {kChat, kCompletion}) {
            const auto [status, reply] = post(path, bodyFor(path, patch));
            const Json& error = reply["error"];
            QVERIFY2(status == 400, reply.dump().c_str());
            QCOMPARE(error["type"], "invalid_request_error");
            QCOMPARE(error["code"], "unsupported_parameter");
            QCOMPARE(error["param"], name);
            QVERIFY(error["message"].get<std::string>().find(name) != std::string::npos);
        }
    }

    void whatOnlyOneOfTheTwoHasIsRefusedAtTheOther() {
        for (const char* patch :
             {R"({"tools":[{"type":"function"}]})", R"({"tool_choice":"required"})",
              R"({"functions":[{}]})", R"({"audio":{"voice":"x"}})", R"({"verbosity":"low"})",
              R"({"modalities":["text","audio"]})", R"({"web_search_options":{}})",
              R"({"chat_template":"x"})", R"({"continue_final_message":true})",
              R"({"add_generation_prompt":false})", R"({"reasoning_format":"none"})",
              R"({"prompt":"x"})", R"({"suffix":"x"})"}) {
            const std::string name = nameIn(patch);
            const auto [status, reply] = post(kChat, bodyFor(kChat, patch));
            QVERIFY2(status == 400, reply.dump().c_str());
            QCOMPARE(reply["error"]["param"], name);
        }
        for (const char* patch : {R"({"messages":[]})", R"({"suffix":"x"})", R"({"tools":[{}]})"}) {
            const std::string name = nameIn(patch);
            const auto [status, reply] = post(kCompletion, bodyFor(kCompletion, patch));
            QVERIFY2(status == 400, reply.dump().c_str());
            QCOMPARE(reply["error"]["param"], name);
        }
    }

    void whatNobodyKnowsIsRefusedByName() {
        for (const char* path : {kChat, kCompletion}) {
            const auto [status, reply] = post(path, bodyFor(path, R"({"temprature":0.5})"));
            QCOMPARE(status, 400);
            QCOMPARE(reply["error"]["code"], "unknown_parameter");
            QCOMPARE(reply["error"]["param"], "temprature");
            QVERIFY(reply["error"]["message"].get<std::string>().find("temprature") !=
                    std::string::npos);
        }
        const std::string option =
            post(kChat, bodyFor(kChat, R"({"stream":true,"stream_options":{"x":1}})"))
                .second.dump();
        QVERIFY2(option.find("stream_options: x") != option.npos, option.c_str());
    }

    void aValueOutOfItsRangeIsToldWithItsName() {
        for (const char* patch :
             {R"({"temperature":-1})", R"({"top_p":2})", R"({"top_k":-2})", R"({"min_p":"x"})",
              R"({"max_tokens":0})", R"({"max_completion_tokens":-7})", R"({"seed":0.5})",
              R"({"presence_penalty":1000})", R"({"logit_bias":{"7":101}})", R"({"stop":[1]})",
              R"({"stream":1})", R"({"stream_options":{"x":1}})", R"({"ignore_eos":"yes"})"}) {
            for (const char* path : {kChat, kCompletion}) {
                const auto [status, reply] = post(path, bodyFor(path, patch));
                QVERIFY2(status == 400, patch);
                QCOMPARE(reply["error"]["param"], nameIn(patch));
            }
        }
        QCOMPARE(post(kChat, {{"messages", Json::array()}}).second["error"]["param"], "messages");
        QCOMPARE(post(kChat, {{"max_tokens", 1}}).second["error"]["param"], "messages");
        QCOMPARE(post(kCompletion, {{"prompt", {-1, 2}}}).second["error"]["param"], "prompt");
        QCOMPARE(
            post(kChat, bodyFor(kChat, R"({"chat_template_kwargs":[]})")).second["error"]["param"],
            "chat_template_kwargs");
    }

    void numbersThatJsonDoesNotHaveAreRefused() {
        httplib::Client client = m_served->client();
        for (const char* number : {"NaN", "Infinity", "-Infinity", "1e999"}) {
            for (const char* key : {"temperature", "user", "chat_template_kwargs"}) {
                Json patched = bodyFor(kChat, "{}");
                patched[key] = key[0] == 'c' ? Json{{"a", {"?"}}} : Json("?");
                const std::string body =
                    QString::fromStdString(patched.dump()).replace("\"?\"", number).toStdString();
                const auto reply = client.Post(kChat, body, "application/json");
                QVERIFY2(reply->status == 400, body.c_str());
            }
        }
    }

    void minusOneTokenIsNoLimit_data() {
        QTest::addColumn<QByteArray>("name");
        for (const char* name : {"max_tokens", "max_completion_tokens", "n_predict"}) {
            QTest::newRow(name) << QByteArray(name);
        }
    }
    void minusOneTokenIsNoLimit() {
        QFETCH(QByteArray, name);
        for (const char* path : {kChat, kCompletion}) {
            Json body = bodyFor(path, "{}");
            body.erase("max_tokens");
            body[name.toStdString()] = -1;
            const auto [status, reply] = post(path, body);
            QVERIFY2(status == 200, reply.dump().c_str());
            QCOMPARE(reply["choices"][0]["finish_reason"], "length");
            QVERIFY(reply["usage"]["total_tokens"].get<int>() >= 128);  // the context is full
            for (const Json& wrong : {Json(0), Json(-2), Json("5"), Json(1.5)}) {
                body[name.toStdString()] = wrong;
                const auto [code, answer] = post(path, body);
                QCOMPARE(code, 400);
                const std::string message = answer["error"]["message"];
                QVERIFY2(message.find(name.toStdString()) != message.npos, message.c_str());
            }
        }
    }

    void aTopKOfMinusOneIsOff() {
        const std::string off = textOf(R"({"max_tokens":20,"temperature":1,"seed":5,"top_k":0})");
        QCOMPARE(textOf(R"({"max_tokens":20,"temperature":1,"seed":5,"top_k":-1})"), off);
        QVERIFY(textOf(R"({"max_tokens":20,"temperature":1,"seed":5,"top_k":1})") != off);
    }

    void aSeedOfMinusOneIsRandom() {
        const char* body = R"({"max_tokens":20,"temperature":2,"seed":-1})";
        std::set<std::string> texts;
        for (int i = 0; i < 4; ++i) texts.insert(textOf(body));
        QVERIFY(texts.size() > 1);
    }

    void namesOfOtherServersMeanTheSame() {
        QCOMPARE(textOf(R"({"max_tokens":12,"repeat_penalty":1.7})"),
                 textOf(R"({"max_tokens":12,"repetition_penalty":1.7})"));
        QVERIFY(textOf(R"({"max_tokens":12,"repeat_penalty":1.7})") !=
                textOf(R"({"max_tokens":12})"));
    }

    void aBiasDecides() {
        const int32_t wanted = 7;
        const Json bias = {{"logit_bias", {{std::to_string(wanted), 100}}}, {"logprobs", 0}};
        const auto [status, reply] = post(kCompletion, bodyFor(kCompletion, bias.dump().c_str()));
        QVERIFY2(status == 200, reply.dump().c_str());
        const Json& tokens = reply["choices"][0]["logprobs"]["tokens"];
        QCOMPARE(tokens.size(), size_t(2));
        QCOMPARE(tokens[0], tokens[1]);
        for (const char* wrong :
             {R"({"logit_bias":{"x":1}})", R"({"logit_bias":{"7":101}})", R"({"logit_bias":[7]})",
              R"({"logit_bias":{"7":"a lot"}})", R"({"logit_bias":{"999999999":1}})",
              R"({"logit_bias":{"99999999999999":1}})", R"({"logit_bias":{"-1":1}})",
              R"({"logit_bias":{"012":1,"12":1}})", R"({"logit_bias":{"-0":1}})",
              R"({"logit_bias":{"":1}})", R"({"logit_bias":{"7 ":1}})"}) {
            const auto [code, answer] = post(kChat, bodyFor(kChat, wrong));
            QVERIFY2(code == 400, wrong);
            const std::string message = answer["error"]["message"];
            QVERIFY2(message.find("bias") != message.npos, message.c_str());
        }
    }

    void penaltiesOfRepetition() {
        const std::string plain = textOf(R"({"max_tokens":40})");
        QVERIFY(textOf(R"({"max_tokens":40,"frequency_penalty":2})") != plain);
        QVERIFY(textOf(R"({"max_tokens":40,"presence_penalty":2})") != plain);
        QCOMPARE(post(kChat, bodyFor(kChat, R"({"presence_penalty":"high"})")).first, 400);
    }

    void aPromptThatDoesNotFitHasItsCode() {
        for (const char* path : {kChat, kCompletion}) {
            for (const bool stream : {false, true}) {
                Json body = bodyFor(path, "{}");
                body["stream"] = stream;
                const std::string text(4000, 'x');
                if (path == std::string(kChat)) {
                    body["messages"][0]["content"] = {{{"type", "text"}, {"text", text}}};
                } else {
                    body["prompt"] = text;
                }
                const auto [status, reply] = post(path, body);
                QCOMPARE(status, 400);
                QCOMPARE(reply["error"]["code"], "context_length_exceeded");
                QCOMPARE(reply["error"]["type"], "invalid_request_error");
                QCOMPARE(reply["error"]["param"],
                         path == std::string(kChat) ? "messages" : "prompt");
            }
        }
    }

    // A damaged expert file is not an error of the client.
    void theServersOwnFaultsAreItsOwn() {
        QTemporaryDir folder;
        const std::filesystem::path model = folder.filePath("model").toStdString();
        std::filesystem::copy(goldenModel("qwen3moe"), model,
                              std::filesystem::copy_options::recursive);
        const Served served({{KnobId::ExpertCacheSize, 4}}, {}, model);
        for (const auto& entry : std::filesystem::directory_iterator(model / "experts")) {
            std::filesystem::resize_file(entry.path(), 0);
        }
        httplib::Client client = served.client();
        for (const char* path : {kChat, kCompletion}) {
            Json body = bodyFor(path, "{}");
            const auto whole = client.Post(path, body.dump(), "application/json");
            QCOMPARE(whole->status, 500);
            QCOMPARE(Json::parse(whole->body)["error"]["type"], "server_error");
            QVERIFY2(whole->body.find("layer_") != std::string::npos, whole->body.c_str());
            body["stream"] = true;
            const auto streamed = client.Post(path, body.dump(), "application/json");
            const Json last = Json::parse(eventsOf(streamed->body).back());
            QCOMPARE(last["error"]["type"], "server_error");
            QVERIFY(streamed->body.find("[DONE]") == std::string::npos);
        }
        QTRY_COMPARE(served.server->stats().failed, uint64_t(4));
    }
};

QTEST_GUILESS_MAIN(TestApiParameters)
#include "test_api_parameters.moc"
