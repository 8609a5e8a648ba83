// SPDX-License-Identifier: GPL-3.0-or-later
// The Load test dock: a load on the loaded engine, through the widgets.
#include <QCheckBox>
#include <QFile>

#include "app/workbench/widgets/data_table.h"
#include "app/workbench/widgets/progress_panel.h"
#include "engine_window.h"

using namespace colibri;
using namespace colibri::ui;

class TestWorkbenchLoad : public EngineWindow {
    Q_OBJECT

    LoadTestPanel* panel() { return m_window->loadTestPanel(); }
    LoadTest* test() { return m_window->loadTest(); }
    static KnobValues slow() {
        KnobValues knobs;
        knobs[size_t(KnobId::LinkLimit)] = 1;
        knobs[size_t(KnobId::ExpertCacheSize)] = 1;
        return knobs;
    }
    // Typed into the field of a slider.
    static void type(SliderRow* row, const QString& text) {
        row->field()->setFocus();
        row->field()->selectAll();
        QTest::keyClicks(row->field(), text);
        QTest::keyClick(row->field(), Qt::Key_Return);
    }
    static void choose(Segment* segment, int index) {
        const int x = index == 0 ? 8 : segment->width() - 8;
        QTest::mouseClick(segment, Qt::LeftButton, {}, QPoint(x, segment->height() / 2));
        QCOMPARE(segment->current(), index);
    }
    void start() { QTest::mouseClick(panel()->startButton(), Qt::LeftButton); }
    bool waitEnd() {
        return waitUntil([&] { return !test()->running(); }, 60000);
    }
    QString total(const QString& name) {
        for (const auto& row : panel()->totals()->rows())
            if (row[0].text == name) return row[1].text;
        return {};
    }
    bool marked(const std::string& label) {
        return waitUntil([&] {
            const auto snapshot = m_host->snapshot();
            for (const Marker& marker : snapshot->markers)
                if (marker.label == label) return true;
            return false;
        });
    }
    void write(const QString& path, const QByteArray& bytes) {
        QFile file(path);
        QVERIFY(file.open(QIODevice::WriteOnly));
        file.write(bytes);
    }

private slots:
    void initTestCase() { makeModel(); }
    void init() {
        open();
        m_window->commands()->run("engine.load");
        QVERIFY(panel()->isVisible());
    }
    void cleanup() { drop(); }

    void withoutAModelThereIsNothingToLoad() {
        QVERIFY(!panel()->startButton()->isEnabled());
        QVERIFY2(panel()->note().contains("Open a model"), qPrintable(panel()->note()));
        QVERIFY(load());
        QVERIFY(panel()->startButton()->isEnabled());
    }

    void usersAskOneAfterTheOther() {
        QVERIFY(load());
        type(panel()->users(), "2");
        type(panel()->requests(), "6");
        type(panel()->maxTokens(), "5");
        panel()->ignoreEos()->click();
        start();
        QVERIFY(test()->running());
        QVERIFY(!panel()->startButton()->isVisible());
        QVERIFY(waitEnd());
        QVERIFY(panel()->startButton()->isVisible());
        QVERIFY2(test()->error().ok(), test()->error().text().c_str());
        QCOMPARE(total("Completed"), QString("6 of 6"));
        QCOMPARE(total("Tokens"), QString("30"));
        QVERIFY(total("Throughput").endsWith("req/s"));
        const auto& rows = panel()->latencies()->rows();
        QCOMPARE(rows.size(), 3);
        QCOMPARE(rows[0][0].text, QString("TTFT"));
        for (const auto& row : rows)
            for (int c = 1; c < row.size(); ++c)
                QVERIFY(QString(row[c].text).remove(',').toDouble() > 0);
        const LoadReport& report = *test()->report();
        QCOMPARE(report.ttft.count(), uint64_t(6));
        QCOMPARE(report.itl.count(), uint64_t(6 * 4));
        // Its begin and end stand in the plots, and its requests are those of the session.
        QVERIFY(marked("Load: 2 users, 6 requests"));
        QVERIFY(marked("Load test finished"));

        const QString json = m_sandbox->path("load.json"), csv = m_sandbox->path("load.csv");
        panel()->exportTo(json);
        panel()->exportTo(csv);
        QFile file(json);
        QVERIFY(file.open(QIODevice::ReadOnly));
        const auto read = nlohmann::json::parse(file.readAll().toStdString());
        QCOMPARE(read["requests"]["completed"].get<int>(), 6);
        QCOMPARE(read["users"].get<int>(), 2);
        QCOMPARE(QString::fromStdString(read["target"]), m_model);
        QVERIFY(read["itl_ms"]["p99"].get<double>() > 0);
        QFile lines(csv);
        QVERIFY(lines.open(QIODevice::ReadOnly));
        QCOMPARE(lines.readAll().count('\n'), 7);
        QSignalSpy failed(panel(), &LoadTestPanel::failed);
        panel()->exportTo(m_sandbox->path("no-such-folder/load.json"));
        QCOMPARE(failed.count(), 1);
    }

    // Every figure is read whole, from a millisecond to hours, and the file says how to repeat it.
    void resultsAreReadableAndRepeatable() {
        QVERIFY(load());
        type(panel()->users(), "1");
        type(panel()->requests(), "1");
        type(panel()->maxTokens(), "3");
        panel()->ignoreEos()->click();
        start();
        QVERIFY(waitEnd());
        auto rows = panel()->latencies()->rows();
        for (int c = 1; c < 5; ++c) {
            rows[1][c].text = "9,990";
            rows[2][c].text = c % 2 ? "25.4 s" : "1,230 s";
        }
        panel()->latencies()->setRows(rows);
        QVERIFY(panel()->latencies()->fits());
        const QString path = m_sandbox->path("repeat.json");
        panel()->exportTo(path);
        QFile file(path);
        QVERIFY(file.open(QIODevice::ReadOnly));
        const auto read = nlohmann::json::parse(file.readAll().toStdString());
        for (const char* key :
             {"version", "model", "weights", "context_length", "max_tokens", "knobs"})
            QVERIFY2(read.contains(key), key);
        QCOMPARE(read["knobs"]["expert_cache_size"].get<int64_t>(),
                 m_host->knobState(KnobId::ExpertCacheSize).effective);
        QCOMPARE(read["max_tokens"].get<int>(), 3);
    }

    // Tokens are counted as they come; when no request will come any more, it says what it waits
    // for.
    void whatItWaitsForIsSaid() {
        QVERIFY(load(slow()));
        type(panel()->users(), "2");
        type(panel()->requests(), "2");
        type(panel()->maxTokens(), "4000");
        panel()->ignoreEos()->click();
        start();
        QVERIFY(waitUntil([&] { return test()->now().tokens >= 2; }));
        QCOMPARE(test()->now().completed, int64_t(0));
        QVERIFY(waitUntil([&] { return test()->allSent(); }));
        QCOMPARE(test()->progress().stage, QString("waiting for 2 replies"));
        test()->stop();
        QVERIFY(waitEnd());
    }

    void anOpenLoopComesAtItsRate() {
        QVERIFY(load());
        choose(panel()->loop(), 1);
        QVERIFY(panel()->rate()->isVisible() && !panel()->users()->isVisible());
        type(panel()->rate(), "50");
        choose(panel()->until(), 1);
        type(panel()->seconds(), "1");
        type(panel()->maxTokens(), "2");
        QCOMPARE(panel()->plan().load.rate, 50.0);
        QCOMPARE(panel()->plan().load.requests, int64_t(0));
        start();
        QVERIFY(waitEnd());
        const LoadReport& report = *test()->report();
        // As many as the seed's arrivals within the second, each timed from its own moment.
        QVERIFY(report.samples.size() > 20 && report.samples.size() < 100);
        for (const LoadSample& sample : report.samples) {
            QVERIFY(sample.arrivalS <= 1);
            QVERIFY(sample.sentS >= sample.arrivalS);
        }
        QVERIFY(marked("Load: 50 requests / s, 1 s"));
    }

    void promptsComeFromAFile() {
        QVERIFY(load());
        choose(panel()->promptsFrom(), 1);
        QVERIFY(!panel()->startButton()->isEnabled());  // no file yet
        const QString file = m_sandbox->path("prompts.txt");
        write(file, "Hello\n{\"prompt\": 7}\n");
        QTest::keyClicks(panel()->promptsFile(), file);
        QVERIFY(panel()->startButton()->isEnabled());
        start();
        QVERIFY(waitEnd());
        QVERIFY2(panel()->note().contains("line 2"), qPrintable(panel()->note()));
        QVERIFY(!test()->report());
        QVERIFY(marked("Load test failed"));
        write(file, "Hello\n");
        type(panel()->requests(), "2");
        type(panel()->maxTokens(), "2");
        start();
        QVERIFY(waitEnd());
        QCOMPARE(total("Completed"), QString("2 of 2"));
        QCOMPARE(test()->report()->samples[0].promptTokens,
                 test()->report()->samples[1].promptTokens);
    }

    void cancelEndsItAndCountsWhatWasCut() {
        QVERIFY(load(slow()));
        type(panel()->users(), "2");
        type(panel()->maxTokens(), "4000");
        panel()->ignoreEos()->click();
        start();
        QVERIFY(waitUntil([&] { return test()->now().inFlight() == 2; }));
        m_window->tick();
        auto* progress = panel()->findChild<ProgressPanel*>();
        QVERIFY(progress->isVisible());
        QTest::mouseClick(progress->findChild<Button*>(), Qt::LeftButton);
        QVERIFY(test()->stopping());
        QVERIFY(waitEnd());
        QVERIFY(test()->stopped());
        QCOMPARE(total("Completed"), QString("0 of 2"));
        QCOMPARE(total("Ended: cancelled"), QString("2"));
        QVERIFY(marked("Load test stopped"));
        // Nobody finished, so there is nothing to say of latency.
        QCOMPARE(panel()->latencies()->rows()[0][1].text, QString("n/a"));
        QVERIFY(waitUntil([&] { return m_host->activeRequests() == 0; }));
    }

    void closingTheModelEndsIt() {
        QVERIFY(load(slow()));
        type(panel()->maxTokens(), "4000");
        panel()->ignoreEos()->click();
        start();
        QVERIFY(waitUntil([&] { return test()->now().inFlight() > 0; }));
        m_host->close();
        QVERIFY(waitEnd());
        QVERIFY(test()->stopped());
        QVERIFY(!panel()->startButton()->isEnabled());
        // Nothing is said to the next model's session.
        QVERIFY(load());
        const auto snapshot = m_host->snapshot();
        for (const Marker& marker : snapshot->markers)
            QVERIFY2(!marker.label.starts_with("Load"), marker.label.c_str());
    }
};

QTEST_MAIN(TestWorkbenchLoad)
#include "test_workbench_load.moc"
