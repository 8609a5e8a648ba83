// SPDX-License-Identifier: GPL-3.0-or-later
// The colibri command as other programs see it: exit codes, standard output, JSON keys.
#include <signal.h>

#include <QtTest>

#include "tests/app/cli/cli_run.h"

using namespace cli_test;

class TestCli : public QObject {
    Q_OBJECT

    QTemporaryDir m_dir;
    QString m_model;  // qwen3moe, f32
    QJsonObject m_expected;

    QString write(const QString& name, const QByteArray& content) {
        QFile file(m_dir.filePath(name));
        if (!file.open(QIODevice::WriteOnly)) qFatal("cannot write");
        file.write(content);
        return file.fileName();
    }
    QString prompt() const {
        QStringList ids;
        for (const QJsonValue& id : m_expected["prompt"].toArray()) {
            ids << QString::number(id.toInt());
        }
        return ids.join(',');
    }

private slots:
    void initTestCase() {
        m_model = m_dir.filePath("model");
        const Run run = colibri(
            {"convert", kGolden + "/models/qwen3moe", "-o", m_model, "--dtype", "f32", "--json"});
        QVERIFY2(run.code == 0, run.err);
        QVERIFY(hasKeys(run.json(), {"target", "name", "family", "dtype", "bytes"}));
        QFile file(kGolden + "/models/qwen3moe/expected.json");
        QVERIFY(file.open(QIODevice::ReadOnly));
        m_expected = QJsonDocument::fromJson(file.readAll()).object();
    }

    void helpAndVersion() {
        const Run help = colibri({"--help"});
        QCOMPARE(help.code, 0);
        for (const char* verb :
             {"convert",  "info",  "chat",       "generate", "logits", "tokenize", "detokenize",
              "template", "bench", "perplexity", "compare",  "config", "diagnose", "synth",
              "serve",    "load",  "export",     "explain",  "diff",   "simulate"}) {
            QVERIFY2(help.out.contains(verb), verb);
        }
        QCOMPARE(colibri({"--version"}).code, 0);
        QVERIFY(colibri({"generate", "--help"}).out.contains("--expert-cache-size"));
    }

    void usageErrors_data() {
        QTest::addColumn<QStringList>("arguments");
        QTest::newRow("nothing") << QStringList{};
        QTest::newRow("no such verb") << QStringList{"fly"};
        QTest::newRow("no such option") << QStringList{"info", "M", "--loud"};
        QTest::newRow("no prompt") << QStringList{"generate", "M"};
        QTest::newRow("two prompts")
            << QStringList{"generate", "M", "--prompt", "a", "--tokens", "1"};
        QTest::newRow("no such knob")
            << QStringList{"generate", "M", "--prompt", "a", "--expert-cash-size", "3"};
        QTest::newRow("knob not a number")
            << QStringList{"generate", "M", "--prompt", "a", "--expert-cache-size", "many"};
        QTest::newRow("knob too large")
            << QStringList{"generate", "M", "--prompt", "a", "--expert-cache-size", "9"};
        QTest::newRow("knob too small")
            << QStringList{"generate", "M", "--prompt", "a", "--compute-threads", "0"};
        QTest::newRow("no such choice")
            << QStringList{"generate", "M", "--prompt", "a", "--cache-policy", "fifo"};
        QTest::newRow("logprobs without --json")
            << QStringList{"generate", "M", "--prompt", "a", "--logprobs", "2"};
        QTest::newRow("too many logprobs")
            << QStringList{"generate", "M", "--prompt", "a", "--json", "--logprobs", "21"};
        QTest::newRow("bad ids") << QStringList{"generate", "M", "--tokens", "1,two"};
        QTest::newRow("id outside") << QStringList{"generate", "M", "--tokens", "1,99999"};
        QTest::newRow("no tokens") << QStringList{"generate", "M", "--tokens", ""};
        QTest::newRow("bad temperature")
            << QStringList{"generate", "M", "--prompt", "a", "--temperature", "-1"};
        const auto generate = [](const QStringList& more) {
            return QStringList{"generate", "M", "--prompt", "a"} + more;
        };
        QTest::newRow("long seed") << generate({"--seed", QString("9").repeated(400)});
        QTest::newRow("seed below 0") << generate({"--seed=-1"});
        QTest::newRow("long count") << generate({"--max-tokens", QString("9").repeated(400)});
        for (const char* option : {"--temperature", "--stop", "--seed", "--expert-cache-size",
                                   "--config", "--session", "--router-table"}) {
            QTest::addRow("empty %s", option) << generate({option, ""});
        }
        QTest::newRow("no such isa") << QStringList{"logits", "M", "--tokens", "1", "--isa", "mmx"};
        QTest::newRow("bad dtype") << QStringList{"convert", "x", "-o", "y", "--dtype", "f8"};
        QTest::newRow("prompt over context")
            << QStringList{"generate",         "M", "--tokens", QString("1,").repeated(40) + "1",
                           "--context-length", "32"};
    }
    void usageErrors() {
        QFETCH(QStringList, arguments);
        arguments.replaceInStrings(QRegularExpression("^M$"), m_model);
        const Run run = colibri(arguments);
        QCOMPARE(run.code, 2);
        QVERIFY(run.out.isEmpty());
        QVERIFY(!run.err.isEmpty());
    }

    void badInput_data() {
        QTest::addColumn<QStringList>("arguments");
        QTest::newRow("info") << QStringList{"info", "/nonexistent"};
        QTest::newRow("generate") << QStringList{"generate", "/nonexistent", "--prompt", "a"};
        QTest::newRow("logits") << QStringList{"logits", "/nonexistent", "--tokens", "1"};
        QTest::newRow("tokenize") << QStringList{"tokenize", "/nonexistent", "--text", "a"};
        QTest::newRow("convert") << QStringList{"convert", "/nonexistent", "-o", "OUT"};
        QTest::newRow("config") << QStringList{"config", "check", "/nonexistent"};
        QTest::newRow("template") << QStringList{"template", "/nonexistent", "--messages", "/none"};
        QTest::newRow("prompt file") << QStringList{"generate", "M", "--file", "/nonexistent"};
    }
    void badInput() {
        QFETCH(QStringList, arguments);
        arguments.replaceInStrings(QRegularExpression("^M$"), m_model);
        arguments.replaceInStrings(QRegularExpression("^OUT$"), m_dir.filePath("out"));
        const Run run = colibri(arguments);
        QCOMPARE(run.code, 3);
        QVERIFY(run.out.isEmpty());
        QVERIFY2(run.err.contains("/non"), run.err);
    }

    void checkpointIsNotAModelFolder() {
        const Run run = colibri({"generate", kGolden + "/models/qwen3moe", "--tokens", "1"});
        QCOMPARE(run.code, 3);
        QVERIFY2(run.err.contains("Convert a downloaded checkpoint first"), run.err);
    }

    void info() {
        const Run run = colibri({"info", m_model, "--json"});
        QCOMPARE(run.code, 0);
        const QJsonObject json = run.json();
        QVERIFY(hasKeys(json, {"name", "family", "parameters", "active_parameters", "num_experts",
                               "dense_bytes", "expert_bytes", "memory"}));
        QCOMPARE(json["num_experts"].toInt(), 8);
        QVERIFY(hasKeys(json["memory"].toObject(), {"dense", "expert_cache", "kv_cache", "total"}));
        QCOMPARE(colibri({"info", m_model, "--verify"}).code, 0);
        const auto cache = [&](const char* size) {
            const Run r = colibri({"info", m_model, "--json", "--expert-cache-size", size});
            return r.json()["memory"].toObject()["expert_cache"].toDouble();
        };
        QVERIFY(cache("2") < cache("8"));
    }

    void generate() {
        const Run run = colibri({"generate", m_model, "--tokens", prompt(), "--max-tokens", "64",
                                 "--ignore-eos", "--kv-dtype", "f32", "--cold-start", "--json"});
        QVERIFY2(run.code == 0, run.err);
        QCOMPARE(run.out.count('\n'), 1);
        const QJsonObject json = run.json();
        QVERIFY(hasKeys(json, {"tokens", "text", "stop", "stats"}));
        QCOMPARE(json["tokens"].toArray(), m_expected["greedy"].toArray());
        QCOMPARE(json["stop"].toString(), QString("length"));
        const QJsonObject stats = json["stats"].toObject();
        QVERIFY(hasKeys(stats, {"prompt_tokens", "generated_tokens", "ttft_ms", "prompt_tok_s",
                                "decode_tok_s", "itl_ms", "experts", "peak_rss_bytes"}));
        QCOMPARE(stats["prompt_tokens"].toInt(), 24);
        QCOMPARE(stats["generated_tokens"].toInt(), 64);
        const QJsonObject itl = stats["itl_ms"].toObject();
        QVERIFY(hasKeys(itl, {"p50", "p99", "max", "n"}));
        QCOMPARE(itl["n"].toInt(), 63);
        QVERIFY(itl["p50"].toDouble() <= itl["p99"].toDouble());
        const QJsonObject experts = stats["experts"].toObject();
        QVERIFY(hasKeys(
            experts, {"lookups", "hits", "misses", "prefetch_useful", "bytes_loaded", "load_ms"}));
        QCOMPARE(experts["hits"].toInt() + experts["misses"].toInt(), experts["lookups"].toInt());
        QVERIFY(experts["bytes_loaded"].toDouble() > 0);
        QVERIFY(hasKeys(experts["load_ms"].toObject(), {"p50", "p99"}));
    }

    // The reference's logits define the expected values.
    void generateLogprobs() {
        const QStringList command{"generate",     m_model, "--tokens",   prompt(),
                                  "--max-tokens", "3",     "--kv-dtype", "f32",
                                  "--logprobs",   "2",     "--json"};
        const Run run = colibri(command);
        QVERIFY2(run.code == 0, run.err);
        const QJsonArray tokens = run.json()["tokens"].toArray();
        const QJsonArray logprobs = run.json()["logprobs"].toArray();
        QCOMPARE(logprobs.size(), tokens.size());
        const QJsonObject last = m_expected["logits"].toArray().last().toObject();
        const double total = m_expected["logsumexp"].toArray().last().toDouble();
        const double value = last["values"].toArray()[tokens[0].toInt()].toDouble() - total;
        const QJsonObject first = logprobs[0].toObject();
        QVERIFY(hasKeys(first, {"token", "logprob", "bytes", "top_logprobs"}));
        QVERIFY2(std::abs(first["logprob"].toDouble() - value) < 1e-3,
                 qPrintable(QString::number(first["logprob"].toDouble())));
        const QJsonArray top = first["top_logprobs"].toArray();
        QCOMPARE(top.size(), 2);
        QCOMPARE(top[0].toObject()["token"], first["token"]);
        QVERIFY(!colibri(command.mid(0, 8) + QStringList{"--json"}).json().contains("logprobs"));
    }

    void generateText() {
        const QStringList common{"generate",     m_model, "--prompt",    "hello world",
                                 "--max-tokens", "12",    "--ignore-eos"};
        const Run text = colibri(common);
        QCOMPARE(text.code, 0);
        QVERIFY(text.err.contains("hit rate"));
        const Run json = colibri(common + QStringList{"--json"});
        QCOMPARE(QString::fromUtf8(text.out), json.json()["text"].toString() + "\n");
        const Run file = colibri({"generate", m_model, "--file", write("p.txt", "hello world"),
                                  "--max-tokens", "12", "--ignore-eos"});
        QCOMPARE(file.out, text.out);
        // With sampling, the seed determines the text.
        const QStringList warm = common + QStringList{"--temperature", "1", "--json", "--seed"};
        QCOMPARE(colibri(warm + QStringList{"5"}).json()["tokens"],
                 colibri(warm + QStringList{"5"}).json()["tokens"]);
        QVERIFY(colibri(warm + QStringList{"5"}).json()["tokens"] !=
                colibri(warm + QStringList{"6"}).json()["tokens"]);
    }

    void logits() {
        for (const char* isa : {"scalar", ""}) {
            QStringList arguments{"logits", m_model, "--tokens", prompt(), "--kv-dtype", "f32"};
            if (*isa) arguments << "--isa" << isa;
            const Run run = colibri(arguments);
            QVERIFY2(run.code == 0, run.err);
            const QJsonObject json = run.json();
            QVERIFY(hasKeys(json, {"logits_last", "argmax", "logsumexp", "routing"}));
            QCOMPARE(json["argmax"].toArray(), m_expected["argmax"].toArray());
            const QJsonArray want = m_expected["logits"].toArray().last()["values"].toArray();
            const QJsonArray got = json["logits_last"].toArray();
            QCOMPARE(got.size(), want.size());
            double top = 0, worst = 0;
            for (int i = 0; i < want.size(); ++i) {
                top = std::max(top, std::abs(want[i].toDouble()));
                worst = std::max(worst, std::abs(want[i].toDouble() - got[i].toDouble()));
            }
            QVERIFY(worst / top < 1e-4);
            const QJsonArray sums = m_expected["logsumexp"].toArray();
            for (int i = 0; i < sums.size(); ++i) {
                QVERIFY(std::abs(sums[i].toDouble() - json["logsumexp"][i].toDouble()) < 1e-3);
            }
            const QJsonArray routing = m_expected["routing"].toArray();
            QCOMPARE(json["routing"].toArray().size(), routing.size());
            for (int i = 0; i < routing.size(); ++i) {
                QCOMPARE(json["routing"][i]["layer"], routing[i]["layer"]);
                QCOMPARE(json["routing"][i]["experts"], routing[i]["experts"]);
                QVERIFY(json["routing"][i]["weights"].isArray());
            }
        }
    }

    void tokenizeAndBack() {
        const QString text = "Grüße, <|im_end|> it's 42 日本";
        const Run run = colibri({"tokenize", m_model, "--text", text});
        QCOMPARE(run.code, 0);
        QCOMPARE(keys(run.json()), QStringList{"ids"});
        QStringList ids;
        for (const QJsonValue& id : run.json()["ids"].toArray()) ids << QString::number(id.toInt());
        const Run back = colibri({"detokenize", m_model, "--ids", ids.join(',')});
        QCOMPARE(back.code, 0);
        QCOMPARE(back.out, text.toUtf8());
        const Run json = colibri({"detokenize", m_model, "--ids", ids.join(','), "--json"});
        QCOMPARE(json.json()["text"].toString(), text);
        const Run file = colibri({"tokenize", kGolden + "/models/qwen3moe/tokenizer.json", "--file",
                                  write("t.txt", text.toUtf8())});
        QCOMPARE(file.out, run.out);
        QCOMPARE(colibri({"tokenize", m_model}).code, 2);
        QCOMPARE(colibri({"detokenize", m_model, "--ids", "1,x"}).code, 2);
    }

    void renderTemplate() {
        const QString messages =
            write("m.json", R"({"messages": [{"role": "user", "content": "hello"}]})");
        const Run run = colibri({"template", m_model, "--messages", messages});
        QVERIFY2(run.code == 0, run.err);
        QVERIFY(run.out.contains("hello"));
        const Run closed =
            colibri({"template", m_model, "--messages", messages, "--no-generation-prompt"});
        QVERIFY(closed.out.size() < run.out.size());
        const Run json = colibri({"template", m_model, "--messages", messages, "--json"});
        QCOMPARE(json.json()["text"].toString().toUtf8(), run.out);
        const QString jinja = write("t.jinja", "{{ messages[0].content }}|{{ bos_token }}");
        const QString more = write(
            "b.json", R"({"messages": [{"role": "user", "content": "é"}], "bos_token": "<s>"})");
        QCOMPARE(colibri({"template", jinja, "--messages", more}).out, QByteArray("é|<s>"));
        QCOMPARE(colibri({"template", jinja, "--messages", write("x.json", "{")}).code, 3);
        QCOMPARE(colibri({"template", write("x.jinja", "{% if %}"), "--messages", more}).code, 3);
    }

    void perplexityAndCompare() {
        const QString text =
            write("text.txt", "Once upon a time there was a fox. The fox found a key.");
        const QString demo = COLIBRI_SOURCE_DIR "/resources/demo-model/container";
        const Run one = colibri({"perplexity", demo, "--file", text, "--json"});
        QVERIFY2(one.code == 0, one.err);
        QVERIFY(
            hasKeys(one.json(), {"tokens", "perplexity", "mean_nll", "standard_error", "window"}));
        QVERIFY(one.json()["perplexity"].toDouble() > 1);
        const Run same = colibri({"compare", demo, demo, "--file", text, "--json"});
        QVERIFY2(same.code == 0, same.err);
        QCOMPARE(same.json()["top1_agreement"].toDouble(), 1.0);
        QCOMPARE(same.json()["kl"].toObject()["max"].toDouble(), 0.0);
        QCOMPARE(same.json()["a"].toObject()["perplexity"], one.json()["perplexity"]);
        QCOMPARE(colibri({"perplexity", demo, "--file", m_dir.filePath("none.txt")}).code, 3);
        QCOMPARE(colibri({"perplexity", demo, "--file", write("one.txt", "")}).code, 2);
        QCOMPARE(colibri({"perplexity", demo, "--file", text, "--window", "9999"}).code, 2);
    }

    void bench() {
        const Run run = colibri(
            {"bench", m_model, "-p", "20", "-n", "8", "-t", "1", "--repeat", "2", "--json"});
        QVERIFY2(run.code == 0, run.err);
        const QJsonObject json = run.json();
        QVERIFY(hasKeys(json, {"prompt_tok_s", "decode_tok_s", "bytes_per_token", "experts",
                               "peak_rss_bytes"}));
        for (const char* key : {"prompt_tok_s", "decode_tok_s"}) {
            QVERIFY(hasKeys(json[key].toObject(), {"mean", "sd"}));
            QVERIFY(json[key].toObject()["mean"].toDouble() > 0);
        }
        QCOMPARE(json["knobs"].toObject()["compute_threads"].toInt(), 1);
        QCOMPARE(colibri({"bench", m_model, "-p", "0", "-n", "0"}).code, 2);
    }

    void benchOfRecording() {
        const Run run =
            colibri({"bench", m_model, "-n", "40", "--repeat", "2", "--recording-cost", "--json"});
        QVERIFY2(run.code == 0, run.err);
        const QJsonObject cost = run.json()["recording"].toObject();
        QVERIFY(hasKeys(cost, {"itl_ms_without", "itl_ms_with", "relative", "low", "high",
                               "events_per_s", "file_bytes_per_s", "processor_share", "dropped"}));
        QVERIFY(cost["itl_ms_without"].toDouble() > 0 && cost["itl_ms_with"].toDouble() > 0);
        QVERIFY(cost["events_per_s"].toDouble() > 0 && cost["file_bytes_per_s"].toDouble() > 0);
        QCOMPARE(cost["dropped"].toInt(-1), 0);
        QCOMPARE(colibri({"bench", m_model, "-n", "4", "--repeat", "2", "--recording-cost"}).code,
                 2);
    }

    void configCheck() {
        const QString good = write("good.json", R"({"schema": 1, "knobs": {"expert_cache_size": 4,
            "cache_policy": "slru"}})");
        QCOMPARE(colibri({"config", "check", good}).code, 0);
        const Run json = colibri({"config", "check", good, "--model", m_model, "--json"});
        QCOMPARE(json.code, 0);
        QCOMPARE(json.json()["knobs"].toObject()["cache_policy"].toString(), QString("slru"));
        const auto check = [&](const char* knobs, const QStringList& more = {}) {
            const QByteArray text = QByteArray(R"({"schema": 1, "knobs": )") + knobs + "}";
            return colibri(QStringList{"config", "check", write("c.json", text)} + more);
        };
        const Run unknown = check(R"({"expert_cash_size": 4})");
        QCOMPARE(unknown.code, 3);
        QVERIFY(unknown.err.contains("expert_cash_size"));
        QCOMPARE(check(R"({"cache_policy": "fifo"})").code, 3);
        QCOMPARE(check(R"({"expert_cache_size": "four"})").code, 3);
        QCOMPARE(check(R"({"expert_cache_size": 400})").code, 0);
        QCOMPARE(check(R"({"expert_cache_size": 400})", {"--model", m_model}).code, 3);
        // A value that is in range but has no effect with this model is reported, and is not an
        // error.
        const Run table = check(R"({"router_mode": "table", "cache_policy": "lru"})",
                                {"--model", m_model, "--json"});
        QCOMPARE(table.code, 0);
        const QJsonObject problems = table.json()["problems"].toObject();
        QCOMPARE(problems.keys(), QStringList{"router_mode"});
        QCOMPARE(problems["router_mode"].toString(), QString("no router table in this model"));
        QVERIFY(table.err.contains("router_mode has no effect: no router table"));
        QCOMPARE(colibri({"config", "check", write("c.json", "{")}).code, 3);

        // A config file sets the knobs that the command line does not set.
        const Run used = colibri({"bench", m_model, "-p", "8", "-n", "2", "--repeat", "1", "--json",
                                  "--config", good, "--cache-policy", "lru"});
        QVERIFY2(used.code == 0, used.err);
        QCOMPARE(used.json()["knobs"].toObject()["expert_cache_size"].toInt(), 4);
        QCOMPARE(used.json()["knobs"].toObject()["cache_policy"].toString(), QString("lru"));
    }

    void diagnose() {
        const Run run = colibri({"diagnose", "--json", "--quick"});
        QCOMPARE(run.code, 0);
        const QJsonObject json = run.json();
        QVERIFY(hasKeys(json, {"version", "cpu", "memory", "disk", "gpu"}));
        QVERIFY(!json["cpu"].toObject()["isas"].toArray().isEmpty());
        if (!json["gpu"].toObject()["available"].toBool()) {
            QVERIFY(!json["gpu"].toObject()["reason"].toString().isEmpty());
            QVERIFY(colibri({"diagnose", "--quick"}).out.contains("GPU             n/a: "));
        }
        // Each source of GPU counters that is not used has a reason and a remedy.
        const QJsonArray sources = json["gpu"].toObject()["sources"].toArray();
        QCOMPARE(sources.size(), 4);
        for (const auto& value : sources) {
            const QJsonObject source = value.toObject();
            const QString state = source["state"].toString();
            if (state == "used" || state == "ready") continue;
            QVERIFY2(!source["reason"].toString().isEmpty(), qPrintable(source["name"].toString()));
            QVERIFY2(!source["remedy"].toString().isEmpty(), qPrintable(source["name"].toString()));
        }
    }

    void diskRateIsMeasured() {
        QTemporaryDir folder(m_dir.filePath("disk-XXXXXX"));
        const Run run = colibri({"diagnose", "--json", "--dir", folder.path()});
        QCOMPARE(run.code, 0);
        QVERIFY(run.json()["disk"].toObject()["read_bytes_per_s"].toDouble() > 0);
        QVERIFY(run.json()["memory"].toObject()["read_bytes_per_s"].toDouble() > 0);
        QVERIFY(
            QDir(folder.path()).isEmpty(QDir::AllEntries | QDir::Hidden | QDir::NoDotAndDotDot));
        QCOMPARE(colibri({"diagnose", "--dir", "/nonexistent"}).code, 3);
        // The folder of a model: measures its expert files with the engine's way of reading.
        const QJsonObject disk =
            colibri({"diagnose", "--json", "--dir", m_model}).json()["disk"].toObject();
        QVERIFY(disk["read_bytes_per_s"].toDouble() > 0);
        QVERIFY(!disk["reads"].toString().isEmpty());
        // Other programs also use this file name.
        QFile foreign(folder.filePath("model.json"));
        QVERIFY(foreign.open(QIODevice::WriteOnly));
        foreign.write("{}");
        foreign.close();
        QCOMPARE(colibri({"diagnose", "--dir", folder.path()}).code, 0);
    }

    void sessionFileIsWritten() {
        const QString file = m_dir.filePath("run.session");
        const Run run = colibri({"generate", m_model, "--prompt", "hello", "--max-tokens", "5",
                                 "--ignore-eos", "--session", file});
        QVERIFY2(run.code == 0, run.err);
        QVERIFY(QFileInfo(file).size() > 0);
        const Run refused = colibri({"generate", m_model, "--prompt", "hello", "--session",
                                     m_model + "/model.json/run.session"});
        QVERIFY(refused.code != 0);
        QVERIFY(refused.err.contains("model.json"));
    }

    void chatOverPipes() {
        const QByteArray input =
            "hello\n"
            "/set expert_cache_size 3\n"
            "/set expert_cache_size 99\n"
            "/set nonsense 3\n"
            "/stats\n"
            "/knobs\n"
            "/system Be brief.\n"
            "again\n"
            "/quit\n"
            "not read\n";
        const Run run = colibri({"chat", m_model, "--max-tokens", "6"}, input);
        QVERIFY2(run.code == 0, run.err);
        QCOMPARE(run.err.count("tok/s  decode"), 2);
        QVERIFY(run.err.contains("out of range"));
        QVERIFY(run.err.contains("nonsense"));
        QVERIFY(run.err.contains("lookups"));
        QVERIFY(run.err.contains("expert_cache_size = 3"));
        QVERIFY(!run.out.isEmpty());
        // The end of the input also ends the chat.
        QCOMPARE(colibri({"chat", m_model, "--max-tokens", "3"}, "hello").code, 0);
    }

    // head -1 closes its end early: the program must exit quietly, not be killed by a signal.
    void closedPipeIsNotACrash() {
        QProcess shell;
        shell.start("bash", {"-c", QString("'%1' generate '%2' --prompt hello --max-tokens 200 "
                                           "--ignore-eos --context-length 256 --link-limit 1 "
                                           "--expert-cache-size 1 | head -c 1 >/dev/null; "
                                           "echo ${PIPESTATUS[0]}")
                                       .arg(COLIBRI_BINARY, m_model)});
        QVERIFY(shell.waitForFinished(120000));
        QCOMPARE(shell.readAllStandardOutput().trimmed(), QByteArray("1"));
    }

    void interruptStopsGeneration() {
        QProcess process;
        process.start(COLIBRI_BINARY, {"generate", m_model, "--prompt", "hello", "--max-tokens",
                                       "240", "--ignore-eos", "--context-length", "256",
                                       "--link-limit", "1", "--expert-cache-size", "1", "--json"});
        QVERIFY(process.waitForStarted());
        QTest::qWait(700);
        QVERIFY(process.state() == QProcess::Running);
        ::kill(pid_t(process.processId()), SIGINT);
        QVERIFY(process.waitForFinished(60000));
        QCOMPARE(process.exitStatus(), QProcess::NormalExit);
        QCOMPARE(process.exitCode(), 1);
        const QByteArray out = process.readAllStandardOutput();
        if (!out.isEmpty()) {  // loaded by now
            QCOMPARE(QJsonDocument::fromJson(out).object()["stop"].toString(),
                     QString("cancelled"));
        }
    }

    void convertRefusesAnExistingTarget() {
        const Run run = colibri({"convert", kGolden + "/models/qwen3moe", "-o", m_model});
        QVERIFY(run.code == 2 || run.code == 3);
        QVERIFY(run.out.isEmpty());
        QCOMPARE(colibri({"info", m_model}).code, 0);  // still exists
    }

    void syntheticModelsAreMadeAndLoaded() {
        QTemporaryDir dir;
        const QString model = dir.filePath("tiny");
        const Run made = colibri({"synth", "tiny", "-o", model, "--quant", "q8_0", "--json"});
        QCOMPARE(made.code, 0);
        QVERIFY(hasKeys(made.json(), {"target", "name", "family", "source", "dtype", "bytes"}));
        QVERIFY(colibri({"info", model}).out.contains("synthetic"));
        QCOMPARE(colibri({"info", model, "--verify"}).code, 0);
        QCOMPARE(colibri({"synth", "tiny", "-o", model}).code, 2);
        const Run wrong = colibri({"synth", "huge", "-o", dir.filePath("huge")});
        QCOMPARE(wrong.code, 2);
        QVERIFY(wrong.err.contains("qwen3-30b-a3b"));

        const QString csv = dir.filePath("load.csv");
        const Run load = colibri({"load", model, "--users", "3", "--requests", "9", "--max-tokens",
                                  "5", "--ignore-eos", "--csv", csv, "--json"});
        QCOMPARE(load.code, 0);
        QVERIFY(load.err.contains("TTFT") && load.err.contains("p99"));
        const QJsonObject json = load.json();
        QVERIFY(hasKeys(json, {"users", "requests", "errors", "duration_s", "tokens", "throughput",
                               "ttft_ms", "itl_ms", "e2e_ms"}));
        QCOMPARE(json["requests"]["completed"].toInt(), 9);
        QCOMPARE(json["tokens"]["generated"].toInt(), 45);
        // The report is sufficient to repeat the test.
        QVERIFY(hasKeys(json, {"target", "version", "model", "fingerprint", "dense_dtype",
                               "expert_dtype", "context_length", "machine", "isa", "knobs"}));
        QVERIFY(hasKeys(json["knobs"].toObject(), {"expert_cache_size", "max_batch", "kv_dtype"}));
        QCOMPARE(json["knobs"]["context_length"], json["context_length"]);
        QCOMPARE(json["asked"]["max_tokens"].toInt(), 5);
        QCOMPARE(json["asked"]["ignore_eos"].toBool(), true);
        QFile file(csv);
        QVERIFY(file.open(QIODevice::ReadOnly));
        QCOMPARE(file.readAll().count('\n'), 10);
        QCOMPARE(colibri({"load", "http://127.0.0.1:1"}).code, 1);
        QCOMPARE(colibri({"load", "ftp://x"}).code, 2);
        // A session that cannot be recorded is reported.
        const Run session = colibri({"load", "http://127.0.0.1:1", "--session", csv + ".session"});
        QCOMPARE(session.code, 2);
        QVERIFY2(session.err.contains("--session"), session.err);
    }

    void serveAnswersAndEnds() {
        QCOMPARE(colibri({"serve", m_model, "--host", "0.0.0.0", "--port", "0"}).code, 2);
        QProcess server;
        server.setReadChannel(QProcess::StandardError);
        server.start(COLIBRI_BINARY, {"serve", m_model, "--port", "0", "--json"});
        QString said;
        while (!said.contains(QString(" at http://"))) {
            QVERIFY(server.waitForReadyRead(60000));
            said += server.readAllStandardError();
        }
        const QString url = QRegularExpression("http://[^,]+").match(said).captured();
        const Run load = colibri(
            {"load", url, "--rate", "50", "--requests", "6", "--max-tokens", "4", "--json"});
        QCOMPARE(load.code, 0);
        QCOMPARE(load.json()["requests"].toObject()["completed"].toInt(), 6);
        QVERIFY(hasKeys(load.json(), {"version", "model", "context_length", "asked"}));
        ::kill(pid_t(server.processId()), SIGTERM);
        QVERIFY(server.waitForFinished(60000));
        QCOMPARE(server.exitStatus(), QProcess::NormalExit);
        QCOMPARE(server.exitCode(), 0);
        const QByteArray out = server.readAllStandardOutput();
        QCOMPARE(QJsonDocument::fromJson(out).object()["completed"].toInt(), 6);
    }
};

QTEST_GUILESS_MAIN(TestCli)
#include "test_cli.moc"
