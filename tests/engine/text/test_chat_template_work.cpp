// SPDX-License-Identifier: GPL-3.0-or-later
// Templates with much work in single operations: each ends with an error, or quickly. If the work
// were not counted, they would run for hours.
#include <QtTest>

#include "engine/text/chat_template.h"

using namespace colibri;
using nlohmann::ordered_json;

class TestChatTemplateWork : public QObject {
    Q_OBJECT

private slots:
    void everyWalkOverValuesIsCounted_data() {
        QTest::addColumn<QString>("source");
        QTest::addColumn<QString>("error");
        const auto row = [](const char* name, const QString& source, const char* error) {
            QTest::newRow(name) << source << QString(error);
        };
        // A million lists of a million items: quick to create, slow to walk.
        const QString wide = "{% set x = [[1] * 1000000] * 1000000 %}";
        const QString twice = "{% set y = [[1] * 1000000] * 1000000 %}";
        // 2 ** 60 leaves in 60 lists.
        const QString deep =
            "{% set n = namespace(a=[1], b=[1]) %}{% for i in range(60) %}{% set n.a = [n.a, n.a] "
            "%}{% set n.b = [n.b, n.b] %}{% endfor %}";
        row("a wide list as text", "{{ [[1] * 1000000] * 1000000 }}", "too ");
        row("joined with ~", wide + "{{ 'a' ~ x }}", "too ");
        row("string", wide + "{{ x|string|length }}", "too ");
        row("pprint", wide + "{{ x|pprint|length }}", "too ");
        row("join", wide + "{{ x|join|length }}", "too ");
        row("%s", wide + "{{ '%s' % (x,) }}", "too ");
        row("%r", wide + "{{ '%r' % (x,) }}", "too ");
        row("format", wide + "{{ '{}'.format(x) }}", "too ");
        row("upper", wide + "{{ x|upper }}", "too ");
        row("urlencode", wide + "{{ {'a': x}|urlencode }}", "too ");
        row("xmlattr", wide + "{{ {'a': x}|xmlattr }}", "too ");
        row("a wide key that is missing", wide + "{{ {}[x]|string }}{{ 'a'.x }}{{ [][x] ~ 1 }}",
            "too ");
        row("index that is not there", wide + "{{ [1].index(x) }}", "too ");
        row("a deep list as text", deep + "{{ n.a }}", "too ");
        row("tojson", deep + "{{ n.a|tojson }}", "too ");
        row("empty text of a deep list",
            deep +
                "{% set n.c = '' %}{% for i in range(60) %}{% set n.c = [n.c, n.c] %}{% endfor "
                "%}{{ n.c }}",
            "too ");
        row("==", deep + "{{ n.a == n.b }}", "too much work");
        row("== of wide lists", wide + twice + "{{ x == y }}", "too much work");
        row("!=", deep + "{{ n.a != n.b }}", "too much work");
        row("<", deep + "{{ n.a < n.b }}", "too much work");
        row("is eq", deep + "{{ n.a is eq n.b }}", "too much work");
        row("is le", deep + "{{ n.a is le n.b }}", "too much work");
        row("in", wide + "{% set z = [[1] * 999999 + [2]][0] %}{{ z in x }}", "too much work");
        row("not in", wide + "{% set z = [[1] * 999999 + [2]][0] %}{{ z not in x }}",
            "too much work");
        row("is in", wide + "{% set z = [[1] * 999999 + [2]][0] %}{{ z is in x }}",
            "too much work");
        row("count", wide + "{{ x.count([1] * 1000000) }}", "too much work");
        row("index", wide + "{{ x.index([1] * 999999 + [2]) }}", "too much work");
        row("sort", wide + "{{ x|sort|length }}", "too much work");
        row("min", wide + "{{ x|min|length }}", "too much work");
        row("groupby", wide + "{{ [{'k': x}, {'k': x}]|groupby('k')|length }}", "too much work");
        row("unique", "{% set t = ((1,) * 1000000,) * 1000000 %}{{ t|unique|list|length }}",
            "too much work");
        row("a key of tuples", "{% set t = ((1,) * 1000000,) * 1000000 %}{{ {t: 1}|length }}",
            "too much work");
        row("loop.changed",
            deep + "{% for i in [1, 2] %}{{ loop.changed(n.a if i == 1 else n.b) }}{% endfor %}",
            "too much work");
        row("copies of a list",
            "{% set x = [1] * 1000000 %}{% for i in range(100000) %}{{ x|first }}{{ x|last }}"
            "{% endfor %}",
            "too much work");
        row("copies of a dict",
            "{% set d = dict(range(0)) %}{% set x = [('a', 1)] * 1000000 %}{% for i in "
            "range(100000) %}{% set d = dict(x) %}{% endfor %}",
            "too much work");
    }
    void everyWalkOverValuesIsCounted() {
        QFETCH(QString, source);
        QFETCH(QString, error);
        const auto parsed = ChatTemplate::parse(source.toStdString(), "t");
        QVERIFY2(parsed.ok(), parsed.status().text().c_str());
        const auto rendered = (*parsed)->render(ordered_json::object());
        QVERIFY(!rendered.ok());
        QVERIFY2(rendered.status().message().find(error.toStdString()) != std::string::npos,
                 rendered.status().text().c_str());
    }

    void everyWalkOverTextIsCounted_data() {
        QTest::addColumn<QString>("expression");
        // s has four million characters; w is half as long and does not occur in s.
        for (const char* expression : {"w in s",
                                       "s.rfind(w)",
                                       "s.count('a')",
                                       "s.rsplit(w)|length",
                                       "s.replace(w, '')",
                                       "s.rpartition(w)",
                                       "s.strip('ab' * 1000)",
                                       "s|trim",
                                       "s == s ~ ''",
                                       "t|length",
                                       "s|wordcount",
                                       "s is lower",
                                       "s.startswith(w)",
                                       "s.endswith('a', 1)",
                                       "s|escape",
                                       "s|striptags",
                                       "s|tojson",
                                       "{s: 1}|length",
                                       "{'a': 1}[s]|default(1)",
                                       "s|float",
                                       "('1_' * 2000000 ~ 1)|float",
                                       "s|wordwrap(1)",
                                       "s|truncate(3)",
                                       "'{}'.format(s)",
                                       "s|indent",
                                       "s.splitlines()",
                                       "s.isidentifier()",
                                       "s.title()",
                                       "''.join([s])"}) {
            QTest::newRow(expression) << QString(expression);
        }
    }
    void everyWalkOverTextIsCounted() {
        QFETCH(QString, expression);
        // Each may run once, but not a hundred thousand times.
        const QString texts =
            "{% set s = 'a' * 4000000 %}{% set w = 'a' * 2000000 ~ 'b' %}{% set t = 'é' * 2000000 "
            "%}";
        const auto render = [&](const QString& body) {
            const auto parsed = ChatTemplate::parse((texts + body).toStdString(), "t");
            return parsed.ok() ? (*parsed)->render(ordered_json::object()) : parsed.status();
        };
        const auto once = render("{% set x = " + expression + " %}");
        QVERIFY2(once.ok(), once.status().text().c_str());
        const auto often =
            render("{% for i in range(100000) %}{% set x = " + expression + " %}{% endfor %}");
        QVERIFY(!often.ok());
        QVERIFY2(often.status().message().find("too much work") != std::string::npos,
                 often.status().text().c_str());
    }

    void textsGrowNoFurtherThanTheLimit_data() {
        QTest::addColumn<QString>("expression");
        for (const char* expression :
             {"[1, 2, 3]|tojson(separators=[b, b])", "([1] * 1000)|tojson(indent=b)",
              "b.join(['a'] * 1000)", "(['a'] * 1000)|join(b)", "('%s' * 1000) % ((b,) * 1000)",
              "('{0}' * 1000).format(b)", "('a ' * 1000)|wordwrap(1, wrapstring=b)",
              "([b] * 1000)|string", "('\\t' * 100000).expandtabs(1000)",
              "(['a'] * 1000)|map('replace', 'a', b)|join"}) {
            QTest::newRow(expression) << QString(expression);
        }
    }
    void textsGrowNoFurtherThanTheLimit() {
        QFETCH(QString, expression);
        const QString source = "{% set b = 'b' * 10000000 %}{{ (" + expression + ")|length }}";
        const auto parsed = ChatTemplate::parse(source.toStdString(), "t");
        QVERIFY2(parsed.ok(), parsed.status().text().c_str());
        const auto rendered = (*parsed)->render(ordered_json::object());
        QVERIFY(!rendered.ok());
        QVERIFY2(rendered.status().message().find("too ") != std::string::npos,
                 rendered.status().text().c_str());
    }

    void longConversationsAreRendered() {
        // The largest allowed request, with the operations that templates apply to every message.
        const auto parsed = ChatTemplate::parse(
            "{% for m in messages %}{% if '</think>' in m.content %}{{ "
            "m.content.split('</think>')[-1].lstrip('\n') }}{% elif m.content is string and not "
            "m.content.startswith('<tool') %}{{ '<|' ~ m.role ~ '|>' + m.content|trim + "
            "'<|end|>' }}{% endif %}{% endfor %}",
            "t");
        QVERIFY2(parsed.ok(), parsed.status().text().c_str());
        ordered_json messages = ordered_json::array();
        for (int i = 0; i < 400; ++i)
            messages.push_back({{"role", "user"}, {"content", std::string(10'000, 'x')}});
        const auto rendered = (*parsed)->render({{"messages", messages}});
        QVERIFY2(rendered.ok(), rendered.status().text().c_str());
        QVERIFY(rendered->size() > 4'000'000);
    }
};

QTEST_APPLESS_MAIN(TestChatTemplateWork)
#include "test_chat_template_work.moc"
