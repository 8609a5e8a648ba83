// SPDX-License-Identifier: GPL-3.0-or-later
// JSON from untrusted sources.
#include <QTest>

#include "engine/base/json_fields.h"
#include "engine/base/json_reader.h"

using namespace colibri;
using nlohmann::json;

namespace {

std::string repeated(const std::string& piece, size_t times) {
    std::string out;
    for (size_t i = 0; i < times; ++i) out += (i ? "," : "") + piece;
    return out;
}

}  // namespace

class TestJsonFields : public QObject {
    Q_OBJECT

private slots:
    void valuesAreThoseOfTheText() {
        const std::string text =
            R"({"a": [1, -2, 3.5, "x\u00e9", true, null, [], {}], "b": {"c": [[{"d": 1}], 2]}, "e": 18446744073709551615})";
        const auto parsed = parseJson(text, "f");
        QVERIFY2(parsed.ok(), parsed.status().text().c_str());
        QVERIFY(*parsed == json::parse(text));
        for (const char* scalar : {"7", "\"s\"", "null", "[]", " {} "})
            QVERIFY2(*parseJson(scalar, "f") == json::parse(scalar), scalar);
    }

    // Python's library writes them, so they occur in published configs.
    void numbersThatOnlyPythonWritesAreRead() {
        const auto parsed = parseJson(
            "{\"a\": [null, NaN, Infinity, -Infinity, -1], "
            "\"b\": \"NaN, \\\"Infinity\\\\\", \"c\": NaN}",
            "f");
        QVERIFY2(parsed.ok(), parsed.status().text().c_str());
        const json& a = (*parsed)["a"];
        QVERIFY(a[0].is_null() && a[4] == -1);
        QVERIFY(std::isnan(a[1].get<double>()) && std::isnan((*parsed)["c"].get<double>()));
        QCOMPARE(a[2].get<double>(), INFINITY);
        QCOMPARE(a[3].get<double>(), -INFINITY);
        QCOMPARE((*parsed)["b"].get<std::string>(), std::string("NaN, \"Infinity\\"));
        for (const char* text :
             {"[NaN", "[NaNs]", "NaNNaN", "[- Infinity]", "[+Infinity]", "[nan]"}) {
            QCOMPARE(parseJson(text, "f").status().message(), std::string("f: not valid JSON"));
        }
        QVERIFY(parseJson(R"({"a": NaN, "a": 1})", "f").status().message().find("duplicate") !=
                std::string::npos);
    }

    // A request's body must be standard JSON.
    void strictTextHasNoNumbersOfPython() {
        for (const char* text : {"[NaN]", "[Infinity]", "{\"a\": -Infinity}"}) {
            const auto parsed = parseStrictJson(text, "f");
            QCOMPARE(parsed.status().code(), Code::BadInput);
            QVERIFY(parsed.status().message().find("NaN") != std::string::npos);
        }
        QVERIFY(parseStrictJson(R"({"a": "NaN", "b": [1, null]})", "f").ok());
    }

    void whatIsOutOfRangeIsToldWithItsKey() {
        const json object = {{"theta", 0}, {"n", 9}, {"s", 1}};
        Fields fields(object, "f");
        (void)fields.number("theta", 1e-6, 1e30);
        (void)fields.integer("n", 0, 5);
        QCOMPARE(fields.status().message(),
                 std::string("f: \"theta\" is 0, expected a value between 1e-6 and 1e30"));
        QCOMPARE(fields.failedKey(), std::string("theta"));
        Fields half(object, "f");
        (void)half.number("n", 0.5, 1.25);
        QCOMPARE(half.status().message(),
                 std::string("f: \"n\" is 9, expected a value between 0.5 and 1.25"));
        Fields text(object, "f");
        (void)text.text("s");
        QCOMPARE(text.failedKey(), std::string("s"));
        Fields other(object, "f");
        other.failAt("n", "too many");
        QCOMPARE(other.status().message(), std::string("f: n: too many"));
        QCOMPARE(other.failedKey(), std::string("n"));
    }

    void damageIsTold() {
        for (const char* text :
             {"", "{", "[1,]", "{\"a\" 1}", "[1] 2", "nul", "\"\xff\"", "[1e999]"}) {
            const auto parsed = parseJson(text, "f");
            QVERIFY2(!parsed.ok() && parsed.status().code() == Code::BadInput, text);
            QVERIFY(parsed.status().message() == "f: not valid JSON");
        }
        const auto twice = parseJson(R"({"b": {"a": 1, "x": {"a": 2}, "a": 3}})", "f");
        QCOMPARE(twice.status().message(), std::string("f: duplicate key \"a\""));
        QVERIFY(parseJson(R"([{"a": 1}, {"a": 2}])", "f").ok());
        const auto nested = [](size_t depth) {
            return std::string(depth, '[') + std::string(depth, ']');
        };
        QVERIFY(parseJson(nested(64), "f").ok());
        QVERIFY(parseJson(nested(65), "f").status().message().find("nested deeper than 64") !=
                std::string::npos);
        QVERIFY(!parseJson(std::string(3'000'000, '['), "f").ok());
    }

    void aReaderChoosesItsRules() {
        JsonFault fault;
        QVERIFY(readJson("[[1]]", {.maxDepth = 2}, fault));
        QVERIFY(!readJson("[[[1]]]", {.maxDepth = 2}, fault));
        QVERIFY(fault.kind == JsonFault::Kind::TooDeep);
        const std::string twice = R"({"a": [1], "b": 2, "a": 3})";
        QVERIFY(!readJson(twice, {}, fault));
        QVERIFY(fault.kind == JsonFault::Kind::DuplicateKey);
        QCOMPARE(fault.key, std::string("a"));
        const auto last = readJson(twice, {.lastDuplicateCounts = true}, fault);
        QVERIFY(last && *last == json::parse(R"({"a": 3, "b": 2})"));
        QVERIFY(!readJson("[NaN]", {}, fault));
        QVERIFY(fault.kind == JsonFault::Kind::NonFinite);
        QVERIFY(readJson("[NaN]", {.nonFinite = true}, fault));
    }

    void damageHasTheByteWhereItIs() {
        for (const std::string text : {"{\"a\" 1}", "[1,]", "[1e999]", "", "[tru]"}) {
            JsonFault fault;
            QVERIFY(!readJson(text, {}, fault));
            QVERIFY(fault.kind == JsonFault::Kind::NotJson);
            try {
                QFAIL(json::parse(text).dump().c_str());
            } catch (const json::parse_error& error) {
                QCOMPARE(fault.byte, error.byte);
            } catch (const json::out_of_range&) {
                QCOMPARE(fault.byte, size_t(6));
            }
        }
    }

    // With time quadratic in the number of children, these would take hours.
    void listsAndObjectsOfAMillionChildrenAreReadInOnePass() {
        constexpr size_t kMost = 1'300'000, kCount = 200'000;
        QCOMPARE(parseJson("[" + repeated("{}", kMost) + "]", "f")->size(), kMost);
        QCOMPARE(parseJson("{\"a\":[" + repeated("[]", kCount) + "]}", "f")->at("a").size(),
                 kCount);
        std::string object = "{";
        for (size_t i = 0; i < kCount; ++i)
            object += (i ? ",\"" : "\"") + std::to_string(i) + "\":[]";
        QCOMPARE(parseJson(object + "}", "f")->size(), kCount);
    }
};

QTEST_APPLESS_MAIN(TestJsonFields)
#include "test_json_fields.moc"
