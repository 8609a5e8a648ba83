// SPDX-License-Identifier: GPL-3.0-or-later
// The load test with a simulated target.
#include <QtTest>
#include <atomic>
#include <cmath>
#include <mutex>
#include <thread>

#include "engine/telemetry/telemetry.h"
#include "profiler/loadtest/load_run.h"

using namespace colibri;

namespace {

// Answers one request at a time, and counts those that wait.
class FakeTarget : public LoadTarget {
public:
    LoadReply send(const LoadPrompt& prompt, const CancelFlag& cancel) override {
        const int now = ++m_inside;
        for (int seen = most; now > seen && !most.compare_exchange_weak(seen, now);) {
        }
        LoadReply reply;
        {
            std::lock_guard lock(m_mutex);
            std::this_thread::sleep_for(std::chrono::milliseconds(pauseMs));
            const int number = asked++;
            const std::string text = prompt.messages[0]["content"];
            if (text == "fail") reply.error = number % 2 ? "busy" : "HTTP 500";
            reply.promptTokens = 3;
            reply.tokens = 2;
            reply.timesNs = {monotonicNs(), monotonicNs() + 1'000'000};
        }
        if (cancel.load()) reply.error = "cancelled";
        --m_inside;
        return reply;
    }

    int pauseMs = 0;
    int asked = 0;
    std::atomic<int> most{0};

private:
    std::mutex m_mutex;
    std::atomic<int> m_inside{0};
};

std::vector<LoadPrompt> prompts(const std::string& text) {
    return *parseLoadPrompts(text, "test");
}

}  // namespace

class TestLoad : public QObject {
    Q_OBJECT
private slots:
    void promptsOfEveryForm() {
        const auto list = parseLoadPrompts(
            "one\r\n\n  \n{\"prompt\": \"two\"}\n"
            "{\"messages\":[{\"role\":\"system\",\"content\":\"s\"}]}\nlast",
            "file");
        QVERIFY(list.ok());
        QCOMPARE(list->size(), size_t(4));
        QCOMPARE((*list)[0].messages[0]["content"], "one");
        QCOMPARE((*list)[1].messages[0]["content"], "two");
        QCOMPARE((*list)[2].messages[0]["role"], "system");
        QCOMPARE((*list)[3].messages[0]["content"], "last");
        const Status bad = parseLoadPrompts("ok\n{\"prompt\":", "file").status();
        QCOMPARE(bad.code(), Code::BadInput);
        QVERIFY(bad.message().find("line 2") != std::string::npos);
        QVERIFY(!parseLoadPrompts("{\"text\":\"x\"}", "file").ok());
        QVERIFY(!parseLoadPrompts("\n", "file").ok());
        QVERIFY(shippedLoadPrompts().size() > 10);
    }

    void aLoadHasAnEnd() {
        FakeTarget target;
        const CancelFlag cancel{false};
        const auto code = [&](LoadOptions o) {
            return runLoad(target, prompts("x"), o, {}, cancel).status().code();
        };
        QCOMPARE(code({}), Code::InvalidArgument);
        QCOMPARE(code({.users = 0, .requests = 1}), Code::InvalidArgument);
        QCOMPARE(code({.rate = -1, .requests = 1}), Code::InvalidArgument);
        QCOMPARE(code({.rate = std::nan(""), .requests = 1}), Code::InvalidArgument);
        QCOMPARE(runLoad(target, {}, {.requests = 1}, {}, cancel).status().code(),
                 Code::InvalidArgument);
    }

    void closedLoop() {
        FakeTarget target;
        target.pauseMs = 1;
        const CancelFlag cancel{false};
        const auto report =
            runLoad(target, prompts("a\nb"), {.users = 3, .requests = 30}, {}, cancel);
        QVERIFY(report.ok());
        QCOMPARE(target.asked, 30);
        QVERIFY(target.most <= 3 && target.most > 1);
        QCOMPARE(report->completed, int64_t(30));
        QCOMPARE(report->tokens, std::optional<uint64_t>(60));
        QCOMPARE(report->ttft.count(), uint64_t(30));
        QCOMPARE(report->itl.count(), uint64_t(30));
        QVERIFY(report->errors.empty());
        for (size_t i = 0; i < 30; ++i) QCOMPARE(report->samples[i].index, int64_t(i));
    }

    // Arrivals depend only on the seed. The result shows that the target is slower than the
    // arrivals.
    void openLoopCountsFromTheIntendedArrival() {
        const CancelFlag cancel{false};
        const auto run = [&](uint64_t seed, int pauseMs) {
            FakeTarget target;
            target.pauseMs = pauseMs;
            return *runLoad(target, prompts("x"), {.rate = 2000, .seed = seed, .requests = 60}, {},
                            cancel);
        };
        const LoadReport a = run(1, 5), b = run(1, 0), c = run(2, 0);
        for (size_t i = 0; i < 60; ++i) {
            QCOMPARE(a.samples[i].arrivalS, b.samples[i].arrivalS);
            QVERIFY(a.samples[i].sentS >= a.samples[i].arrivalS);
        }
        QVERIFY(c.samples[0].arrivalS != b.samples[0].arrivalS);
        const double mean = a.samples[59].arrivalS / 60;
        QVERIFY(mean > 0.5 / 2000 && mean < 2.0 / 2000);
        // 60 requests of 5 ms one after another, all intended to arrive within about 30 ms.
        QVERIFY(a.endToEnd.max() > 60 * 5e6 - a.samples[59].arrivalS * 1e9 - 1e6);
    }

    void errorsByKind() {
        FakeTarget target;
        const CancelFlag cancel{false};
        const auto report =
            runLoad(target, prompts("fail"), {.users = 1, .requests = 10}, {}, cancel);
        QCOMPARE(report->completed, int64_t(0));
        QCOMPARE(report->errors.at("busy"), int64_t(5));
        QCOMPARE(report->errors.at("HTTP 500"), int64_t(5));
        QCOMPARE(report->ttft.count(), uint64_t(0));
        const std::string csv = loadCsv(*report);
        QCOMPARE(std::count(csv.begin(), csv.end(), '\n'), std::ptrdiff_t(11));
        QVERIFY(csv.find("\"HTTP 500\"") != std::string::npos);
        const auto json = loadJson(*report);
        QVERIFY(json["ttft_ms"]["p50"].is_null());
        QCOMPARE(json["errors"]["busy"], 5);
    }

    void cancelledLoadKeepsWhatItHas() {
        FakeTarget target;
        target.pauseMs = 1;
        CancelFlag cancel{false};
        const ProgressFn progress = [&](const Progress& p) {
            if (p.done == 5) cancel.store(true);
        };
        const auto report =
            runLoad(target, prompts("x"), {.rate = 100, .requests = 100'000}, progress, cancel);
        QVERIFY(report.ok());
        QVERIFY(report->completed >= 5 && report->samples.size() < 1000);
    }
};

QTEST_GUILESS_MAIN(TestLoad)
#include "test_load.moc"
