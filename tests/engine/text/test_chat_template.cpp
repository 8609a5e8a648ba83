// SPDX-License-Identifier: GPL-3.0-or-later
// Hostile and broken templates: each ends with an error or a text, and never with a crash.
#include <QtTest>
#include <atomic>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>
#include <random>
#include <thread>

#include "engine/text/chat_template.h"
#include "engine/text/known_templates.h"

using namespace colibri;
using nlohmann::ordered_json;

namespace {

Result<std::string> render(const std::string& source,
                           const ordered_json& context = ordered_json::object()) {
    const auto parsed = ChatTemplate::parse(source, "t");
    if (!parsed) return parsed.status();
    return (*parsed)->render(context);
}

std::string repeated(const std::string& what, int times) {
    std::string out;
    for (int i = 0; i < times; ++i) out += what;
    return out;
}

std::string messageOf(const Result<std::string>& result) {
    return result ? "no error: " + result->substr(0, 200) : result.status().message();
}

std::string readAll(const std::string& path) {
    std::ifstream in(path, std::ios::binary);
    return {std::istreambuf_iterator<char>(in), {}};
}

}  // namespace

class TestChatTemplate : public QObject {
    Q_OBJECT

private slots:
    void hostile_data() {
        QTest::addColumn<QString>("source");
        QTest::addColumn<QString>("message");  // a part of it; empty: a text is also allowed
        const auto row = [](const char* name, const std::string& source, const char* message) {
            QTest::newRow(name) << QString::fromStdString(source) << QString(message);
        };
        row("deep parentheses", "{{ " + repeated("(", 5000) + "1" + repeated(")", 5000) + " }}",
            "too deep");
        row("deep lists", "{{ " + repeated("[", 5000) + repeated("]", 5000) + " }}", "too deep");
        row("deep dicts", "{{ " + repeated("{1:", 5000) + "1" + repeated("}", 5000) + " }}",
            "too deep");
        row("deep subscripts", "{{ x" + repeated("[x", 5000) + repeated("]", 5000) + " }}",
            "too deep");
        row("deep calls", "{{ " + repeated("f(", 5000) + repeated(")", 5000) + " }}", "too deep");
        row("deep if", repeated("{% if 1 %}", 5000) + repeated("{% endif %}", 5000), "too deep");
        row("deep for", repeated("{% for a in [1] %}", 5000) + repeated("{% endfor %}", 5000),
            "too deep");
        row("deep not", "{{ " + repeated("not ", 5000) + "1 }}", "too deep");
        row("deep minus", "{{ " + repeated("-", 5000) + "1 }}", "too deep");
        row("deep inline if", "{{ " + repeated("1 if 1 else ", 5000) + "1 }}", "too deep");
        row("long sum", "{{ " + repeated("1+", 50000) + "1 }}", "too long");
        row("long chain of filters", "{{ 1" + repeated("|string", 50000) + " }}", "too long");
        row("long chain of attributes", "{{ x" + repeated(".x", 50000) + " }}", "too long");
        row("long chain of calls", "{{ x" + repeated("()", 50000) + " }}", "too long");
        row("long chain of or", "{{ " + repeated("1 or ", 50000) + "1 }}", "too long");
        row("many elif", "{% if 0 %}" + repeated("{% elif 0 %}", 20000) + "{% endif %}", "");
        row("macro that calls itself", "{% macro m() %}{{ m() }}{% endmacro %}{{ m() }}",
            "recursion");
        row("two macros that call each other",
            "{% macro a() %}{{ b() }}{% endmacro %}{% macro b() %}{{ a() }}{% endmacro %}{{ a() }}",
            "recursion");
        row("caller that calls itself",
            "{% macro m() %}{% call m() %}{{ caller() }}{% endcall %}{% endmacro %}{{ m() }}",
            "recursion");
        row("loop that calls itself",
            "{% set x = namespace(v=[1]) %}{% for i in x.v recursive %}{{ loop(x.v) }}{% endfor %}",
            "recursion");
        row("endless work",
            "{% for a in range(100000) %}{% for b in range(100000) %}{% endfor %}{% endfor %}",
            "too much work");
        row("endless output",
            "{% for a in range(100000) %}" + repeated("0123456789", 100) + "{% endfor %}",
            "too long");
        row("text times a million", "{{ 'x' * 1000000000000 }}", "too large");
        row("doubling text",
            "{% set n = namespace(s='xxxxxxxxxxxxxxxx') %}{% for i in range(60) %}{% set n.s = n.s "
            "+ n.s %}{% endfor %}",
            "too large");
        row("doubling by ~",
            "{% set n = namespace(s='xxxxxxxxxxxxxxxx') %}{% for i in range(60) %}{% set n.s = n.s "
            "~ n.s %}{% endfor %}",
            "too large");
        row("doubling list",
            "{% set n = namespace(s=[1]) %}{% for i in range(60) %}{% set n.s = n.s + n.s %}{% "
            "endfor %}",
            "too large");
        row("doubling by replace",
            "{% set n = namespace(s='xx') %}{% for i in range(60) %}{% set n.s = n.s|replace('x', "
            "'xx') %}{% endfor %}",
            "too ");
        row("doubling by join",
            "{% set n = namespace(s='xx') %}{% for i in range(60) %}{% set n.s = [n.s, "
            "n.s]|join(n.s) %}{% endfor %}",
            "too ");
        row("wide format", "{{ '%1000000000s' % 'x' }}", "too large");
        row("wide brace format", "{{ '{:1000000000}'.format('x') }}", "too large");
        row("wide ljust", "{{ 'x'.ljust(100000000000) }}", "too large");
        row("wide center", "{{ 'x'|center(100000000000) }}", "too large");
        row("wide strftime", "{{ strftime_now('%1000000000d') }}", "too long");
        row("large power", "{{ 10 ** 100000000000 }}", "too large");
        row("large product", "{{ 170141183460469231731687303715884105727 * 2 }}", "too large");
        row("large sum", "{{ 170141183460469231731687303715884105727 + 1 }}", "too large");
        row("large literal", "{{ 999999999999999999999999999999999999999999 }}", "too large");
        row("large from text", "{{ '999999999999999999999999999999999999999999'|int }}",
            "too large");
        row("large from float", "{{ 1e300|int }}", "too large");
        row("large range", "{{ range(100001) }}", "Range too big");
        row("range to the end of numbers",
            "{{ range(-170141183460469231731687303715884105727, "
            "170141183460469231731687303715884105727) }}",
            "too large");
        row("step zero", "{{ range(1, 2, 0) }}", "must not be zero");
        row("slice step zero", "{{ [1][::0] }}", "zero");
        row("huge slice",
            "{{ "
            "'abc'[-170141183460469231731687303715884105727:"
            "170141183460469231731687303715884105727:170141183460469231731687303715884105727] }}",
            "");
        row("division by zero", "{{ 1 // 0 }}", "by zero");
        row("modulo by zero", "{{ 1 % 0 }}", "by zero");
        row("least number by minus one",
            "{{ (-170141183460469231731687303715884105727 - 1) // -1 }}", "too large");
        row("nesting values",
            "{% set n = namespace(s=[]) %}{% for i in range(5000) %}{% set n.s = [n.s] %}{% endfor "
            "%}{{ n.s }}",
            "too deep");
        row("namespace that holds itself", "{% set n = namespace() %}{% set n.n = n %}{{ n }}",
            "recursion");
        row("list within its namespace",
            "{% set n = namespace() %}{% set n.n = [n] %}{{ n.n == [n] }}{{ n|string }}",
            "recursion");
        row("chain of namespaces",
            "{% set n = namespace(p=none) %}{% for i in range(50000) %}{% set n.p = "
            "namespace(p=n.p) %}{% endfor %}x",
            "");
        row("chain of generators",
            "{% set n = namespace(s=[1]) %}{% for i in range(20000) %}{% set n.s = "
            "n.s|map('string') %}{% endfor %}",
            "");
        row("generators within generators",
            "{% set n = namespace(s=[1]) %}{% for i in range(200000) %}{% set n.s = [n.s]|map('d') "
            "%}{% endfor %}",
            "");
        row("cyclers within cyclers",
            "{% set n = namespace(s=1) %}{% for i in range(200000) %}{% set n.s = cycler(n.s) %}{% "
            "endfor %}",
            "");
        row("methods within methods",
            "{% set n = namespace(s=joiner()) %}{% for i in range(200000) %}{% set n.s = "
            "joiner(n.s) %}{% endfor %}",
            "");
        row("loops within loops",
            "{% set n = namespace(s=1) %}{% for i in range(100000) %}{% for x in [n.s] %}{% set "
            "n.s = loop %}{% endfor %}{% endfor %}",
            "");
        row("macros within macros",
            "{% set n = namespace(m=1) %}{% for i in range(50000) %}{% set old = n.m %}{% macro "
            "m() %}{{ old }}{% endmacro %}{% set n.m = m %}{% endfor %}",
            "");
        row("macro in its own scope",
            "{% for i in range(1000) %}{% macro m() %}{{ m }}{% endmacro %}{% set k = m %}{% "
            "endfor %}",
            "");
        row("NUL and control characters", std::string("a\0b{{ '\0' }}", 12), "");
        row("only an opening", "{{", "unexpected 'end of template'");
        row("only a block's opening", "{%", "tag name expected");
        row("lonely percent", "{{ '%' % 1 }}", "incomplete format");
    }

    void hostile() {
        QFETCH(QString, source);
        QFETCH(QString, message);
        const Result<std::string> result = render(source.toStdString());
        if (message.isEmpty()) {
            QVERIFY2(result || result.status().code() == Code::BadInput, messageOf(result).c_str());
        } else {
            QVERIFY2(!result, messageOf(result).c_str());
            QVERIFY(result.status().code() == Code::BadInput);
            QVERIFY2(result.status().message().find(message.toStdString()) != std::string::npos,
                     messageOf(result).c_str());
        }
    }

    void everyTruncationOfATemplate() {
        int parsed = 0, failed = 0;
        for (const char* name : {"qwen3", "llama3", "mistral_tools", "macros"}) {
            const std::string whole =
                readAll(std::string(COLIBRI_GOLDEN_DIR) + "/templates/" + name + ".jinja");
            QVERIFY(whole.size() > 500);
            for (size_t size = 0; size < whole.size(); size += 3) {
                const auto result = ChatTemplate::parse(whole.substr(0, size), "t");
                (result ? parsed : failed)++;
                if (!result) QVERIFY(result.status().message().starts_with("t:"));
            }
        }
        QVERIFY(parsed > 10);
        QVERIFY(failed > 100);
    }

    // Random concatenations of pieces of syntax.
    void randomTemplates() {
        const char* pieces[] = {"{{",
                                "}}",
                                "{%",
                                "%}",
                                "{#",
                                "#}",
                                "-",
                                "+",
                                " ",
                                "\n",
                                "if",
                                "else",
                                "elif",
                                "endif",
                                "for",
                                "in",
                                "endfor",
                                "set",
                                "endset",
                                "x",
                                "y.z",
                                "loop",
                                "|",
                                "length",
                                "map",
                                "join",
                                "is",
                                "defined",
                                "not",
                                "and",
                                "or",
                                "(",
                                ")",
                                "[",
                                "]",
                                "{",
                                "}",
                                ":",
                                ",",
                                "1",
                                "2.5",
                                "'s'",
                                "\"",
                                "~",
                                "**",
                                "//",
                                "%",
                                "=",
                                "==",
                                "macro",
                                "endmacro",
                                "call",
                                "endcall",
                                "raw",
                                "endraw",
                                "namespace()",
                                "range(3)",
                                "{{ x }}",
                                "{% if x %}",
                                "{% endif %}",
                                "{% for i in x %}",
                                "{% endfor %}",
                                "\xff",
                                "é",
                                "\\"};
        std::mt19937 random(7);
        const ordered_json context = {{"x", {1, "a", nullptr, {{"k", 2.5}}}},
                                      {"y", {{"z", "text"}}}};
        int rendered = 0;
        for (int i = 0; i < 20000; ++i) {
            std::string source;
            const int count = int(random() % 12);
            for (int n = 0; n < count; ++n) source += pieces[random() % std::size(pieces)];
            rendered += render(source, context) ? 1 : 0;
        }
        QVERIFY(rendered > 100);
    }

    void oddContexts() {
        QVERIFY(!render("x", ordered_json::array()));
        QVERIFY(!render("x", {{"messages", ordered_json::array()}}));
        QCOMPARE(*render("{{ messages }}", {{"messages", {1, "two", nullptr}}}),
                 std::string("[1, 'two', None]"));
        QCOMPARE(*render("{{ messages }}", {{"messages", "text"}}), std::string("text"));
        QCOMPARE(*render("{{ n }}", {{"n", 18446744073709551615u}}),
                 std::string("18446744073709551615"));
        ordered_json deep;
        for (int i = 0; i < 2000; ++i) deep = ordered_json::array({std::move(deep)});
        QVERIFY(!render("{{ deep }}", {{"deep", deep}}));
    }

    void invalidUtf8BecomesReplacementCharacters() {
        QCOMPARE(*render("a\xff\xe4\xb8z"), std::string("a\xef\xbf\xbd\xef\xbf\xbdz"));
    }

    void errorsNameTheirPlace() {
        QCOMPARE(messageOf(render("a\n  {{ 1 +  }}")),
                 std::string("t:2:11: unexpected 'end of print statement'"));
        QCOMPARE(messageOf(render("a\nb {{ nope.x }}")),
                 std::string("t:2:10: 'nope' is undefined"));
        QCOMPARE(messageOf(render("é{{ raise_exception('no') }}")), std::string("t:1:20: no"));
    }

    void oneTemplateOnManyThreads() {
        const auto parsed = ChatTemplate::parse(
            "{% macro m(x) %}[{{ x }}]{% endmacro %}{% for i in range(50) %}{{ m(i ~ who) }}{% "
            "endfor %}",
            "t");
        QVERIFY(bool(parsed));
        std::atomic<int> wrong = 0;
        std::vector<std::thread> threads;
        for (int t = 0; t < 4; ++t) {
            threads.emplace_back([&, t] {
                for (int i = 0; i < 50; ++i) {
                    const auto out = (*parsed)->render({{"who", t}});
                    if (!out || !out->starts_with("[0" + std::to_string(t) + "]")) ++wrong;
                }
            });
        }
        for (std::thread& thread : threads) thread.join();
        QCOMPARE(wrong.load(), 0);
    }

    void knownTemplatesRenderAChat_data() {
        QTest::addColumn<QString>("text");
        QTest::addColumn<QString>("end");
        QTest::newRow("ChatML")
            << "<|im_start|>system\nS<|im_end|>\n<|im_start|>user\nQ<|im_end|>\n<|im_start|>"
               "assistant\nA<|im_end|>\n<|im_start|>user\nR<|im_end|>\n<|im_start|>assistant\n"
            << "<|im_end|>";
        QTest::newRow("Llama 3")
            << "<s><|start_header_id|>system<|end_header_id|>\n\nS<|eot_id|><|start_header_id|>"
               "user<|end_header_id|>"
               "\n\nQ<|eot_id|><|start_header_id|>assistant<|end_header_id|>\n\nA<|eot_id|><|start_"
               "header_id|>user"
               "<|end_header_id|>\n\nR<|eot_id|><|start_header_id|>assistant<|end_header_id|>\n\n"
            << "<|eot_id|>";
        QTest::newRow("Mistral") << "<s>[INST] S\n\nQ [/INST] A</s>[INST] R [/INST]"
                                 << "</s>";
        QTest::newRow("Alpaca")
            << "S\n\n### Instruction:\nQ\n\n### Response:\nA\n\n### Instruction:\nR\n\n### "
               "Response:\n"
            << "\n### Instruction:";
        QTest::newRow("User and Assistant")
            << "S\n\nUser: Q\n\nAssistant: A\n\nUser: R\n\nAssistant:"
            << "\nUser:";
    }
    void knownTemplatesRenderAChat() {
        QFETCH(QString, text);
        QFETCH(QString, end);
        const auto known =
            std::find_if(knownTemplates().begin(), knownTemplates().end(),
                         [](const KnownTemplate& t) { return t.name == QTest::currentDataTag(); });
        QVERIFY(known != knownTemplates().end());
        const auto parsed = ChatTemplate::parse(known->text, "t");
        QVERIFY2(bool(parsed), qPrintable(QString::fromStdString(parsed.status().text())));
        const auto out = (*parsed)->render({{"messages",
                                             {{{"role", "system"}, {"content", "S"}},
                                              {{"role", "user"}, {"content", "Q"}},
                                              {{"role", "assistant"}, {"content", "A"}},
                                              {{"role", "user"}, {"content", "R"}}}},
                                            {"add_generation_prompt", true},
                                            {"bos_token", "<s>"},
                                            {"eos_token", "</s>"}});
        QVERIFY2(bool(out), qPrintable(QString::fromStdString(out.status().text())));
        QCOMPARE(QString::fromStdString(*out), text);
        QCOMPARE(QString::fromStdString(replyEnd(**parsed, "<s>", "</s>")), end);
    }

    void localTimeWhereNoneIsGiven() {
        const auto out = render("{{ strftime_now('%Y-%m-%d') }}");
        QVERIFY(bool(out));
        QCOMPARE(out->size(), size_t(10));
        QVERIFY(out->starts_with("2"));
    }
};

QTEST_GUILESS_MAIN(TestChatTemplate)
#include "test_chat_template.moc"
