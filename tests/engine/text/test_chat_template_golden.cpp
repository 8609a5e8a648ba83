// SPDX-License-Identifier: GPL-3.0-or-later
// Compares all golden templates and inputs with the output of the reference.
#include <QtTest>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>

#include "engine/text/chat_template.h"

using namespace colibri;
using nlohmann::ordered_json;

namespace {

std::string readAll(const std::string& path) {
    std::ifstream in(path, std::ios::binary);
    return {std::istreambuf_iterator<char>(in), {}};
}

const ordered_json& cases() {
    static const ordered_json all =
        ordered_json::parse(readAll(std::string(COLIBRI_GOLDEN_DIR) + "/template_cases.json"));
    return all;
}

std::string show(const std::string& text) {
    return ordered_json(text).dump(-1, ' ', false, ordered_json::error_handler_t::replace);
}

// The result of rendering `item`: the text, or an error. `isSyntax`: parsing failed.
Result<std::string> renderCase(const ordered_json& item, bool& isSyntax) {
    const std::string source = readAll(std::string(COLIBRI_GOLDEN_DIR) + "/templates/" +
                                       item["template"].get<std::string>());
    const auto parsed = ChatTemplate::parse(source, "case");
    isSyntax = !parsed;
    if (!parsed) return parsed.status();
    ChatTemplate::RenderOptions options;
    if (item.contains("now")) {
        std::tm now{};
        strptime(item["now"].get<std::string>().c_str(), "%Y-%m-%dT%H:%M:%S", &now);
        options.now = now;
    }
    return (*parsed)->render(item["input"], options);
}

}  // namespace

class TestChatTemplateGolden : public QObject {
    Q_OBJECT

private slots:
    void render_data() {
        QTest::addColumn<int>("index");
        for (size_t i = 0; i < cases().size(); ++i) {
            QTest::newRow(cases()[i]["name"].get<std::string>().c_str()) << int(i);
        }
    }

    void render() {
        QFETCH(int, index);
        const ordered_json& item = cases()[size_t(index)];
        bool isSyntax = false;
        const Result<std::string> got = renderCase(item, isSyntax);
        const std::string shown = got ? show(*got) : got.status().text();
        if (item.contains("expected")) {
            const std::string wanted = item["expected"];
            QVERIFY2(got && *got == wanted,
                     ("got    " + shown + "\nwanted " + show(wanted)).c_str());
            return;
        }
        const ordered_json& error = item["error"];
        QVERIFY2(!got, ("an error was expected: " + error.dump() + ", got " + shown).c_str());
        QVERIFY(got.status().code() == Code::BadInput);
        QVERIFY2(isSyntax == (error["kind"] == "syntax"), shown.c_str());
        if (error["line"].is_number()) {
            const std::string place = "case:" + std::to_string(error["line"].get<int>()) + ":";
            QVERIFY2(got.status().message().starts_with(place),
                     (shown + " should be at " + place).c_str());
        }
        if (error["kind"] == "raise") {
            const std::string message = error["message"];
            QVERIFY2(got.status().message().find(message) != std::string::npos, shown.c_str());
        }
    }
};

QTEST_GUILESS_MAIN(TestChatTemplateGolden)
#include "test_chat_template_golden.moc"
