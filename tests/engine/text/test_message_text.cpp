// SPDX-License-Identifier: GPL-3.0-or-later
// Text of messages stays text: templates trace the data from their input, and the tokenizer makes
// no control tokens of it.
#include <QtTest>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>
#include <random>
#include <set>

#include "engine/text/chat_template.h"
#include "engine/text/tokenizer.h"

using namespace colibri;
using nlohmann::json;
using nlohmann::ordered_json;

namespace {

const std::string kGolden = COLIBRI_GOLDEN_DIR;

std::string readAll(const std::string& path) {
    std::ifstream in(path, std::ios::binary);
    return {std::istreambuf_iterator<char>(in), {}};
}

Result<TracedText> render(const std::string& source, const ordered_json& context) {
    const auto parsed = ChatTemplate::parse(source, "t");
    if (!parsed) return parsed.status();
    return (*parsed)->renderTraced(context, {});
}

// The text with data in brackets.
std::string marked(const Result<TracedText>& traced) {
    if (!traced) return traced.status().text();
    std::string out;
    size_t done = 0;
    for (const ByteRange& range : traced->data) {
        out += traced->text.substr(done, range.begin - done) + "[" +
               traced->text.substr(range.begin, range.end - range.begin) + "]";
        done = range.end;
    }
    return out + traced->text.substr(done);
}

ordered_json chat(const std::string& role, const std::string& content) {
    return {{{"role", role}, {"content", content}}};
}

const std::vector<std::string>& tokenizerNames() {
    static const std::vector<std::string> names = [] {
        std::vector<std::string> out;
        for (const json& entry : json::parse(readAll(kGolden + "/tokenizers/index.json")))
            out.push_back(entry["name"]);
        return out;
    }();
    return names;
}

// Ids and texts of the tokens that data must not produce.
struct Controls {
    std::set<int32_t> ids;
    std::vector<std::string> texts;

    explicit Controls(const std::string& name) {
        const json file = json::parse(readAll(kGolden + "/tokenizers/" + name + "/tokenizer.json"));
        for (const json& token : file["added_tokens"]) {
            const std::string text = token["content"];
            const bool looksSo = (text.starts_with("<|") && text.ends_with("|>")) ||
                                 (text.starts_with("<｜") && text.ends_with("｜>"));
            if (!token["special"].get<bool>() && !looksSo) continue;
            texts.push_back(text);
            // Text outside the vocabulary gives the unknown token, for data as well.
            if (text != "<unk>") ids.insert(token["id"].get<int32_t>());
        }
    }

    // Whether the text of a token occurs where one of its bytes is data.
    bool inData(const TracedText& traced) const {
        for (const std::string& text : texts) {
            for (size_t at = traced.text.find(text); at != std::string::npos;
                 at = traced.text.find(text, at + 1)) {
                if (traced.hasData(at, at + text.size())) return true;
            }
        }
        return false;
    }

    int64_t count(const std::vector<int32_t>& list) const {
        return std::count_if(list.begin(), list.end(),
                             [&](int32_t id) { return ids.contains(id); });
    }
};

}  // namespace

class TestMessageText : public QObject {
    Q_OBJECT

private slots:
    void tracesThroughOperations_data() {
        QTest::addColumn<QString>("source");
        QTest::addColumn<QString>("expected");
        const auto row = [](const char* name, const char* source, const char* expected) {
            QTest::newRow(name) << source << expected;
        };
        // t: "  ab,CD  ", which is data.
        row("output", "<{{ t }}>", "<[  ab,CD  ]>");
        row("plus", "{{ '<' + t + '>' }}", "<[  ab,CD  ]>");
        row("tilde", "{{ '<' ~ t ~ 1 ~ '>' }}", "<[  ab,CD  ]1>");
        row("repeat", "{{ ('<' ~ t|trim) * 2 }}", "<[ab,CD]<[ab,CD]");
        row("trim", "{{ ('<' ~ t ~ '>  ')|trim }}", "<[  ab,CD  ]>");
        row("strip", "{{ t.strip() }}{{ t.lstrip() }}{{ t.rstrip() }}", "[ab,CDab,CD    ab,CD]");
        row("strip characters", "{{ ('<' ~ t).strip('< ') }}>", "[ab,CD]>");
        row("slice", "{{ ('<é' ~ t ~ '>')[1:5] }}", "é[  a]");
        row("slice backwards", "{{ ('<' ~ t)[::-1] }}", "[  DC,ba  <]");
        row("item", "{{ ('<' ~ t)[0] }}{{ ('é' ~ t)[3] }}{{ t[-1] }}", "<[a ]");
        row("iteration", "{% for c in '<' ~ t|trim ~ '>' %}{{ c }}.{% endfor %}",
            "<.[a].[b].[,].[C].[D].>.");
        row("split", "{{ ('<' ~ t|trim ~ '>').split(',')|join('|') }}", "<[ab]|[CD]>");
        row("split at spaces", "{{ ('x ' ~ t).split()|join('|') }}", "x|[ab,CD]");
        row("rsplit", "{{ ('x,' ~ t|trim).rsplit(',', 1)|join('|') }}", "x,[ab]|[CD]");
        row("splitlines", "{{ ('x\n' ~ t|trim).splitlines()|join('|') }}", "x|[ab,CD]");
        row("partition", "{{ t.partition(',')|join('|') }}", "[  ab]|,|[CD  ]");
        row("rpartition", "{{ ('<' ~ t|trim).rpartition('b')|join('|') }}", "<[a]|b|[,CD]");
        row("join", "{{ [t|trim, 'x', 1]|join('-') }}", "[ab,CD]-x-1");
        row("join by data", "{{ ['x', 'y']|join(t|trim) }}", "x[ab,CD]y");
        row("join method", "{{ '-'.join([t|trim, 'x']) }}", "[ab,CD]-x");
        row("replace", "{{ t|trim|replace(',', '<>') }}", "[ab]<>[CD]");
        row("replace by data", "{{ 'x_y'.replace('_', t|trim) }}", "x[ab,CD]y");
        row("removeprefix", "{{ ('<' ~ t|trim ~ '>').removeprefix('<').removesuffix('>') }}",
            "[ab,CD]");
        row("indent", "{{ ('x\n' ~ t|trim)|indent(2) }}", "x\n  [ab,CD]");
        row("padding", "{{ (t|trim).rjust(7, '.') }}{{ ('x' ~ t|trim)|center(8) }}",
            "..[ab,CD] x[ab,CD] ");
        row("first and last", "{{ (t|trim)|first }}{{ ('x' ~ t|trim)|last }}", "[aD]");
        row("default", "{{ nothing|default(t|trim) }}{{ nothing|default('x') }}", "[ab,CD]x");
        row("percent format", "{{ '<%s|%d>' % (t|trim, 3) }}", "<[ab,CD]|3>");
        row("format filter", "{{ '<%s>'|format(t|trim) }}", "<[ab,CD]>");
        row("brace format", "{{ '<{}|{:>3}|{}>'.format(t|trim, 'x', 'y') }}", "<[ab,CD]|  x|y>");
        row("tojson", "{{ {'k': [t|trim, 'x', 1]}|tojson }}", "{\"k\": [[\"ab,CD\"], \"x\", 1]}");
        row("list as text", "{{ [t|trim, 'x'] }}", "[['ab,CD'], 'x']");
        row("dict of the input", "{{ d|tojson }}", "{[\"k\"]: [\"v\"]}");
        row("keys", "{% for k, v in d.items() %}{{ k }}={{ v }}{% endfor %}", "[k]=[v]");
        row("keys as keywords", "{% macro m() %}{{ kwargs|join }}{% endmacro %}{{ m(**d) }}",
            "[k]");
        row("dict of keywords", "{{ dict(**d)|join }}", "[k]");
        row("string", "{{ (t|trim)|string }}{{ 5|string }}", "[ab,CD]5");
        row("upper", "{{ t|trim|upper }}{{ 'x'|upper }}{{ ('x' ~ t|trim)|lower }}",
            "[AB,CD]X[xab,cd]");
        row("set and namespace",
            "{% set n = namespace(a='<') %}{% set n.a = n.a ~ t|trim %}{{ n.a }}>", "<[ab,CD]>");
        row("set block", "{% set x %}<{{ t|trim }}>{% endset %}{{ x }}", "<[ab,CD]>");
        row("macro", "{% macro m(a) %}<{{ a }}>{% endmacro %}{{ m(t|trim) }}", "<[ab,CD]>");
        row("call",
            "{% macro m() %}<{{ caller() }}>{% endmacro %}{% call m() %}{{ t|trim }}{% endcall "
            "%}",
            "<[ab,CD]>");
        row("filter block", "{% filter trim %} <{{ t }}> {% endfilter %}", "<[  ab,CD  ]>");
        row("recursive loop",
            "{% for x in [[t|trim]] recursive %}{% if x is string %}{{ x }}{% else %}<{{ loop(x) "
            "}}>{% endif %}{% endfor %}",
            "<[ab,CD]>");
        row("map", "{{ [' x ', t]|map('trim')|join('|') }}", "x|[ab,CD]");
        row("sort", "{{ ['x', t|trim]|sort|join('|') }}", "[ab,CD]|x");
        row("escapes", "{% autoescape true %}<{{ h }}>{% endautoescape %}", "<[&lt;h&gt;]>");
        row("length", "{{ t|length }}{{ t.find('a') }}{{ ',' in t }}", "92True");
        row("tokens of the model", "{{ bos_token }}{{ other_token }}", "<s>[<o>]");
        row("role", "{{ messages[0].role }}{{ messages[1].role }}", "user[<|x|>]");
        row("name and reasoning", "{{ messages[0].name }}{{ messages[0].thinking }}", "[nr]");
        row("tools", "{{ tools[0].name }}", "[f]");
    }
    void tracesThroughOperations() {
        QFETCH(QString, source);
        QFETCH(QString, expected);
        const ordered_json context = {
            {"t", "  ab,CD  "},
            {"h", "<h>"},
            {"d", {{"k", "v"}}},
            {"bos_token", "<s>"},
            {"other_token", "<o>"},
            {"tools", {{{"name", "f"}}}},
            {"messages",
             {{{"role", "user"}, {"content", "c"}, {"name", "n"}, {"reasoning", "r"}},
              {{"role", "<|x|>"}, {"content", "c"}}}}};
        QCOMPARE(marked(render(source.toStdString(), context)), expected.toStdString());
    }

    // Every operation that makes text from data returns data, and one that makes text from the
    // template's own does not.
    void noOperationLosesData_data() {
        QTest::addColumn<QString>("operation");
        for (const char* operation : {"|upper",
                                      "|lower",
                                      "|title",
                                      "|capitalize",
                                      "|trim",
                                      "|replace('a', '-')",
                                      "|default('x')",
                                      "|string",
                                      "|escape",
                                      "|forceescape",
                                      "|safe",
                                      "|format",
                                      "|indent",
                                      "|center(9)",
                                      "|truncate(6)",
                                      "|truncate(6, true)",
                                      "|wordwrap(3)",
                                      "|striptags",
                                      "|urlencode",
                                      "|pprint",
                                      "|tojson",
                                      "|list|join",
                                      "|first",
                                      "|last",
                                      "|reverse",
                                      "|reverse|list|join",
                                      "|sort|join",
                                      "|unique|join",
                                      "|min",
                                      "|max",
                                      "|batch(2)|map('join')|join",
                                      "|slice(2)|map('join')|join",
                                      "|map('upper')|join",
                                      "|select|join",
                                      "|reject('eq', 'x')|join",
                                      "|groupby(0)|map('first')|join",
                                      "|groupby(0, case_sensitive=true)|map('first')|join",
                                      ".upper()",
                                      ".lower()",
                                      ".title()",
                                      ".capitalize()",
                                      ".swapcase()",
                                      ".casefold()",
                                      ".strip()",
                                      ".lstrip()",
                                      ".rstrip()",
                                      ".split('b')|join",
                                      ".rsplit('b')|join",
                                      ".splitlines()|join",
                                      ".replace('a', '-')",
                                      ".join('--').replace('-', '')",
                                      ".expandtabs()",
                                      ".ljust(4)",
                                      ".center(4)",
                                      ".rjust(4)",
                                      ".zfill(4)",
                                      ".partition('b')[0]",
                                      ".rpartition('b')[0]",
                                      ".removeprefix('a')",
                                      ".removesuffix('e')",
                                      ".format(1)",
                                      "[1:]",
                                      "[::-1]",
                                      "[0]",
                                      " * 2",
                                      " + ''",
                                      " ~ ''",
                                      " % ()",
                                      "|map('string')|join",
                                      "|attr('x')|default('a')"}) {
            QTest::newRow(operation) << operation;
        }
    }
    void noOperationLosesData() {
        QFETCH(QString, operation);
        const std::string source = "{{ (t" + operation.toStdString() + ") }}";
        const Result<TracedText> fromData = render(source, {{"t", "abcd abcd e"}});
        QVERIFY2(fromData, fromData.status().text().c_str());
        QVERIFY(!fromData->text.empty());
        if (operation != "|attr('x')|default('a')") {
            // Padding and separators belong to the template; all letters of the input are data.
            for (size_t i = 0; i < fromData->text.size(); ++i) {
                if (isalpha(fromData->text[i]))
                    QVERIFY2(fromData->hasData(i, i + 1), marked(fromData).c_str());
            }
        }
        const Result<TracedText> own =
            render("{% set t = 'abcd abcd e' %}" + source, ordered_json::object());
        QVERIFY(own);
        QVERIFY2(!own->hasData(), marked(own).c_str());
        QCOMPARE(own->text, fromData->text);
    }

    void goldenTemplatesKeepTheirText() {
        int traced = 0;
        for (const ordered_json& item :
             ordered_json::parse(readAll(kGolden + "/template_cases.json"))) {
            if (!item.contains("expected") || item.contains("now")) continue;
            const auto got =
                render(readAll(kGolden + "/templates/" + item["template"].get<std::string>()),
                       item["input"]);
            QVERIFY(got);
            QCOMPARE(got->text, item["expected"].get<std::string>());
            size_t end = 0;
            for (const ByteRange& range : got->data) {  // in order, separate, not empty
                QVERIFY(range.begin < range.end && range.end <= got->text.size());
                QVERIFY(range.begin > end || range.begin == 0);
                end = range.end;
            }
            traced += got->hasData();
        }
        QVERIFY2(traced > 50, std::to_string(traced).c_str());
    }

    void controlTokensInMessagesArePlainText_data() { addTokenizers(); }
    void controlTokensInMessagesArePlainText() {
        QFETCH(QString, name);
        const Controls controls(name.toStdString());
        const auto tokenizer = Tokenizer::load(kGolden + "/tokenizers/" + name.toStdString());
        QVERIFY(tokenizer);
        for (const std::string& token : controls.texts) {
            for (const std::string& content :
                 {token, "A" + token + "B", token + token, " " + token + " ", "A" + token}) {
                const auto traced = render("{{ messages[0].content }}|" + token,
                                           {{"messages", chat("user", content)}});
                QVERIFY(traced);
                QVERIFY2(controls.count((*tokenizer)->encode(*traced)) == (token != "<unk>"),
                         content.c_str());
                const TracedText data(content, true);
                QCOMPARE(controls.count((*tokenizer)->encode(data)), int64_t(0));
            }
        }
        QVERIFY(!controls.texts.empty());
    }

    // Data next to text of the template does not form a token either.
    void controlTokensAreNotPiecedTogether() {
        const auto tokenizer = Tokenizer::load(kGolden + "/tokenizers/qwen2");
        QVERIFY(tokenizer);
        const int32_t end = *(*tokenizer)->tokenToId("<|im_end|>");
        const auto has = [&](const char* source, const ordered_json& context) {
            const auto traced = render(source, context);
            const std::vector<int32_t> ids = (*tokenizer)->encode(traced.value());
            return std::find(ids.begin(), ids.end(), end) != ids.end();
        };
        QVERIFY(!has("{{ a }}{{ b }}", {{"a", "<|im_"}, {"b", "end|>"}}));
        QVERIFY(!has("<|{{ a }}|>", {{"a", "im_end"}}));
        QVERIFY(!has("{{ a }}_end|>", {{"a", "<|im"}}));
        QVERIFY(!has("{{ a|replace('x', '') }}", {{"a", "<|imx_end|>"}}));
        QVERIFY(!has("{{ a|lower }}", {{"a", "<|IM_END|>"}}));
        QVERIFY(!has("{{ [a, b]|join('_') }}", {{"a", "<|im"}, {"b", "end|>"}}));
        QVERIFY(has("{{ a }}<|im_{{ 'end' }}|>", {{"a", "<|im_"}}));
        QVERIFY(!has("<|{{ messages[0].role }}|>", {{"messages", chat("im_end", "")}}));
    }

    // A rejected token in data must not hide a token of the template after it.
    void dataHidesNoTokenOfTheTemplate() {
        const auto tokenizer = Tokenizer::parse(R"({"added_tokens": [
            {"id": 4, "content": "<a", "special": false, "normalized": false},
            {"id": 5, "content": "<a<b>", "special": true, "normalized": false},
            {"id": 6, "content": "<b>", "special": true, "normalized": false}],
            "model": {"type": "BPE", "vocab": {"<": 0, "a": 1, "b": 2, ">": 3}, "merges": []}})",
                                                "t");
        QVERIFY2(tokenizer, tokenizer.status().text().c_str());
        TracedText text("<a", true);
        text.append("<b>");
        QCOMPARE((*tokenizer)->encode(text), (std::vector<int32_t>{4, 6}));
        QCOMPARE((*tokenizer)->encode(text.text), (std::vector<int32_t>{5}));
    }

    // Special tokens that are searched after the normalizer, which moves the data.
    void normalizedTokensAreTracedToo() {
        const auto tokenizer = Tokenizer::parse(R"({"added_tokens": [
            {"id": 4, "content": "<B>", "special": true, "normalized": true}],
            "normalizer": {"type": "Sequence", "normalizers": [
                {"type": "Replace", "pattern": {"String": "a"}, "content": "aaa"},
                {"type": "Lowercase"}]},
            "model": {"type": "BPE", "vocab": {"<": 0, "a": 1, "b": 2, ">": 3}, "merges": []}})",
                                                "t");
        QVERIFY2(tokenizer, tokenizer.status().text().c_str());
        TracedText text("<B>");
        text.append("a<B>", true);
        text.append("<b>");
        QCOMPARE((*tokenizer)->encode(text), (std::vector<int32_t>{4, 1, 1, 1, 0, 2, 3, 4}));
        QCOMPARE((*tokenizer)->encode(text.text), (std::vector<int32_t>{4, 1, 1, 1, 4, 4}));
    }

    // Without control tokens in the data, the ids are as without tracing.
    void otherTextHasTheSameIds_data() { addTokenizers(); }
    void otherTextHasTheSameIds() {
        QFETCH(QString, name);
        const std::string folder = kGolden + "/tokenizers/" + name.toStdString();
        const auto tokenizer = Tokenizer::load(folder);
        QVERIFY(tokenizer);
        const Controls controls(name.toStdString());
        std::mt19937 random(7);
        int compared = 0;
        const auto compare = [&](const TracedText& traced) {
            if (controls.inData(traced)) return true;
            ++compared;
            return (*tokenizer)->encode(traced) == (*tokenizer)->encode(traced.text);
        };
        const json cases = json::parse(readAll(folder + "/cases.json"));
        for (const json& item : cases["encode"]) {
            const std::string text = item["text"];
            if (text.size() > 2000 || text.empty()) continue;
            QVERIFY(compare(TracedText(text)));
            QVERIFY(compare(TracedText(text, true)));
            for (int turn = 0; turn < 4; ++turn) {
                TracedText traced;
                for (size_t at = 0; at < text.size();) {
                    const size_t bytes = std::min<size_t>(1 + random() % 9, text.size() - at);
                    traced.append(std::string_view(text).substr(at, bytes), random() % 2 != 0);
                    at += bytes;
                }
                QVERIFY2(compare(traced), text.c_str());
            }
        }
        for (const ordered_json& item :
             ordered_json::parse(readAll(kGolden + "/template_cases.json"))) {
            if (!item.contains("expected")) continue;
            const auto traced =
                render(readAll(kGolden + "/templates/" + item["template"].get<std::string>()),
                       item["input"]);
            QVERIFY(traced);
            QVERIFY2(compare(*traced), item["name"].get<std::string>().c_str());
        }
        QVERIFY2(compared > 500, std::to_string(compared).c_str());
    }

private:
    void addTokenizers() {
        QTest::addColumn<QString>("name");
        for (const std::string& name : tokenizerNames())
            QTest::newRow(name.c_str()) << QString::fromStdString(name);
    }
};

QTEST_GUILESS_MAIN(TestMessageText)
#include "test_message_text.moc"
