// SPDX-License-Identifier: GPL-3.0-or-later
#include <QTemporaryDir>
#include <QTest>

#include <set>

#include "engine/knobs/knob_config.h"
#include "engine/knobs/knob_options.h"
#include "kernels/kernels.h"

using namespace colibri;

class TestKnobs : public QObject {
    Q_OBJECT
private slots:
    void everyRowIsWhole() {
        std::set<std::string> names;
        int index = 0;
        for (const KnobRow& row : knobTable()) {
            QCOMPARE(int(row.id), index++);
            QVERIFY(names.insert(row.name).second);
            QVERIFY(row.label[0] && row.group[0] && std::string(row.help).size() > 20);
            QVERIFY(row.min <= row.max && row.step >= 1);
            if (!row.choices.empty()) QCOMPARE(row.max, int64_t(row.choices.size()) - 1);
            if (row.defaultValue >= 0) {
                QVERIFY(row.defaultValue >= row.min && row.defaultValue <= row.max);
            }
            QCOMPARE(findKnob(row.name), &row);
            QCOMPARE(&knobRow(row.id), &row);
        }
        QVERIFY(findKnob("expert-cache-size"));
        QVERIFY(!findKnob("cache"));
    }
    void valuesAreCheckedAgainstTheRange() {
        const KnobRow& size = knobRow(KnobId::ExpertCacheSize);
        QCOMPARE(*parseKnobValue(size, "12", {1, 64, 30}), 12);
        for (const char* wrong : {"", "0", "65", "12x", "1.5", "-3", "99999999999999999999"}) {
            const auto parsed = parseKnobValue(size, wrong, {1, 64, 30});
            QVERIFY2(!parsed.ok(), wrong);
            QCOMPARE(parsed.status().code(), Code::InvalidArgument);
            QVERIFY(parsed.status().text().find("expert_cache_size") != std::string::npos);
        }
        const KnobRow& policy = knobRow(KnobId::CachePolicy);
        QCOMPARE(*parseKnobValue(policy, "slru", {}), 1);
        QVERIFY(parseKnobValue(policy, "LRU", {}).status().hint().find("lru, slru or lfru") !=
                std::string::npos);
    }
    void configRoundTrip() {
        KnobValues values;
        values[size_t(KnobId::ExpertCacheSize)] = 12;
        values[size_t(KnobId::CachePolicy)] = 2;
        values[size_t(KnobId::LinkLimit)] = 25;
        const auto back = knobsFromJson(knobsToJson(values, "demo", "2 cores"));
        QVERIFY(back.ok());
        QVERIFY(*back == values);
    }
    void wrongConfigNamesTheKey_data() {
        QTest::addColumn<QByteArray>("text");
        QTest::addColumn<QByteArray>("named");
        QTest::newRow("not json") << QByteArray("{\"schema\"") << QByteArray("byte");
        QTest::newRow("list") << QByteArray("[]") << QByteArray("object");
        QTest::newRow("no schema") << QByteArray("{\"knobs\":{}}") << QByteArray("schema");
        QTest::newRow("newer") << QByteArray("{\"schema\":9,\"knobs\":{}}") << QByteArray("9");
        QTest::newRow("no knobs") << QByteArray("{\"schema\":1}") << QByteArray("knobs");
        QTest::newRow("unknown knob")
            << QByteArray("{\"schema\":1,\"knobs\":{\"speed\":1}}") << QByteArray("speed");
        QTest::newRow("wrong type") << QByteArray("{\"schema\":1,\"knobs\":{\"link_limit\":[1]}}")
                                    << QByteArray("link_limit");
        QTest::newRow("range") << QByteArray("{\"schema\":1,\"knobs\":{\"prefetch_depth\":5}}")
                               << QByteArray("prefetch_depth");
        QTest::newRow("deep") << QByteArray("{\"schema\":1,\"knobs\":{\"link_limit\":" +
                                            QByteArray(30000, '[') + QByteArray(30000, ']') + "}}")
                              << QByteArray("deep");
        QTest::newRow("key twice")
            << QByteArray("{\"schema\":1,\"knobs\":{\"link_limit\":1,\"link_limit\":2}}")
            << QByteArray("duplicate key \"link_limit\"");
        QTest::newRow("number without end")
            << QByteArray("{\"schema\":1,\"knobs\":{\"link_limit\":1e999}}") << QByteArray("byte");
        QTest::newRow("number of Python's")
            << QByteArray("{\"schema\":1,\"knobs\":{\"link_limit\":NaN}}")
            << QByteArray("not JSON at byte");
        QTest::newRow("large") << QByteArray("{\"schema\":1,\"comment\":\"" +
                                             QByteArray(1 << 20, 'x') + "\",\"knobs\":{}}")
                               << QByteArray("too many");
        QTest::newRow("key") << QByteArray("{\"schema\":1,\"knobs\":{},\"knob\":{}}")
                             << QByteArray("\"knob\"");
    }
    void wrongConfigNamesTheKey() {
        QFETCH(QByteArray, text);
        QFETCH(QByteArray, named);
        const auto values = knobsFromJson(text.toStdString());
        QVERIFY(!values.ok());
        QVERIFY2(values.status().text().find(named.toStdString()) != std::string::npos,
                 values.status().text().c_str());
    }
    // The engine converts the knob's value to the cache's type without a table.
    void choicesOfTheKvTypeAreTheTypesOfTheKernels() {
        const KnobRow& row = knobRow(KnobId::KvDtype);
        QCOMPARE(row.choices.size(), size_t(3));
        QCOMPARE(knobValueText(row, int64_t(KvType::F32)), std::string("f32"));
        QCOMPARE(knobValueText(row, int64_t(KvType::F16)), std::string("f16"));
        QCOMPARE(knobValueText(row, int64_t(KvType::Q8)), std::string("q8"));
    }
    void everyKnobIsAnOption() {
        const auto options = knobOptions();
        QCOMPARE(options.size(), size_t(kKnobCount));
        for (const KnobOption& option : options) {
            const KnobRow* row = findKnob(option.name);
            QVERIFY2(row && row->id == option.id, option.name.c_str());
            QCOMPARE(knobOptionName(*row), option.name);
            QVERIFY(option.name.find('_') == std::string::npos);
            QVERIFY2(option.help.starts_with(knobTitle(*row)) && option.help.ends_with("."),
                     option.help.c_str());
        }
        const KnobOption& policy = options[size_t(KnobId::CachePolicy)];
        QCOMPARE(policy.type, std::string("{lru|slru|lfru}"));
        QVERIFY(policy.help.find("default ") != std::string::npos);
        const KnobOption& limit = options[size_t(KnobId::LinkLimit)];
        QCOMPARE(limit.type, std::string("INT"));
        QVERIFY(limit.help.starts_with("Link limit, 0..100000 MB/s, default 0. "));
    }
    void optionsThatAreGivenAreChecked() {
        KnobTexts texts;
        QVERIFY(*knobsFromOptions(texts) == KnobValues());
        texts[size_t(KnobId::ExpertCacheSize)] = "12";
        texts[size_t(KnobId::CachePolicy)] = "slru";
        KnobValues expected;
        expected[size_t(KnobId::ExpertCacheSize)] = 12;
        expected[size_t(KnobId::CachePolicy)] = 1;
        QVERIFY(*knobsFromOptions(texts) == expected);
        const auto ofModel = knobsFromOptions(texts, [](KnobId) { return KnobLimits{1, 8, 4}; });
        QCOMPARE(ofModel.status().code(), Code::InvalidArgument);
        QVERIFY(ofModel.status().text().find("1..8 experts / layer") != std::string::npos);
        texts[size_t(KnobId::ExpertCacheSize)] = "";  // set, but not a number
        QCOMPARE(knobsFromOptions(texts).status().code(), Code::InvalidArgument);
    }
    void aFileGivesItsKnobsAndItsModel() {
        QTemporaryDir folder;
        const std::string path = folder.filePath("knobs.json").toStdString();
        const auto write = [&](const QByteArray& text) {
            QFile file(QString::fromStdString(path));
            QVERIFY(file.open(QIODevice::WriteOnly | QIODevice::Truncate));
            file.write(text);
        };
        KnobValues values;
        values[size_t(KnobId::PrefetchDepth)] = 2;
        write(QByteArray::fromStdString(knobsToJson(values, "demo", "2 cores")));
        std::string model;
        const auto read = knobsFromFile(path, &model);
        QVERIFY(read.ok() && *read == values);
        QCOMPARE(model, std::string("demo"));
        write("{\"schema\": 1, \"model\": 7, \"knobs\": {}}");
        QVERIFY(knobsFromFile(path, &model).ok());
        QCOMPARE(model, std::string());
        write("{\"schema\": 1, \"knobs\": {\"speed\": 1}}");
        QCOMPARE(knobsFromFile(path).status().message(), path + ": config: unknown knob \"speed\"");
        write("{\"schema\": 1, \"knobs\": {}, \"comment\": \"" + QByteArray(65'536, 'x') + "\"}");
        QVERIFY(knobsFromFile(path).status().message().starts_with(path + " has 65,5"));
        QCOMPARE(knobsFromFile(path + ".none").status().code(), Code::BadInput);
    }
};

QTEST_GUILESS_MAIN(TestKnobs)
#include "test_knobs.moc"
