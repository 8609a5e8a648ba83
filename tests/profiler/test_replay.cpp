// SPDX-License-Identifier: GPL-3.0-or-later
// Sessions are recorded on a small engine and replayed.
#include <QTemporaryDir>
#include <QtTest>
#include <filesystem>

#include "profiler/compare/compare.h"
#include "profiler/record/recorder.h"
#include "profiler/replay/replay.h"
#include "tests/engine/runtime/run_fixture.h"

using namespace colibri;
using namespace colibri::test;
namespace fs = std::filesystem;

namespace {

constexpr int kTokens = 40, kRequests = 4;

Request sampledRequest(int i) {
    Request request = greedyRequest(somePrompt(10 + i, 300, uint64_t(i + 1)), kTokens);
    request.sampling.temperature = 1;
    request.sampling.seed = uint64_t(i);
    request.ignoreEos = true;
    return request;
}

}  // namespace

class TestReplay : public QObject {
    Q_OBJECT
    QTemporaryDir m_dir;
    fs::path m_model;
    std::vector<std::vector<int32_t>> m_replies;

    fs::path file(const char* name) const { return fs::path(m_dir.path().toStdString()) / name; }

    static int64_t effective(const Engine& engine, KnobId knob) {
        return engine.knobState(knob).effective;
    }
    RecordedRequests recorded(const char* name = "recorded") const {
        const auto session = SessionDb::open(file(name));
        if (!session.ok()) throw std::runtime_error(session.status().text());
        Result<RecordedRequests> out = readRecordedRequests(*session, nullptr);
        if (!out.ok()) throw std::runtime_error(out.status().text());
        return std::move(*out);
    }
    // Replays on two engines and compares their sessions.
    SessionComparison replayed(const Knobs& before, const Knobs& after, ReplayArrivals arrivals,
                               const std::string& name) const {
        const fs::path a = file((name + "-a").c_str()), b = file((name + "-b").c_str());
        {
            const auto x = load(m_model, before), y = load(m_model, after);
            auto recordX = Recorder::start(*x, {.sessionFile = a});
            auto recordY = Recorder::start(*y, {.sessionFile = b});
            const ReplaySide sides[] = {{*x}, {*y}};
            const Status status = replayRequests(recorded(), sides, arrivals, {}, nullptr);
            if (!status.ok()) throw std::runtime_error(status.text());
        }
        const auto x = SessionDb::open(a), y = SessionDb::open(b);
        Result<SessionComparison> out = compareSessions(*x, *y, nullptr);
        if (!out.ok()) throw std::runtime_error(out.status().text());
        return std::move(*out);
    }
    static Difference figure(const SessionComparison& c, std::string_view name) {
        for (const auto& row : c.figures)
            if (row.name == name) return row.difference;
        return {};
    }

private slots:
    // The third request changes the cache size when five of its tokens exist.
    void initTestCase() {
        m_model = randomModel();
        const auto engine = load(m_model, {{KnobId::ExpertCacheSize, 8}});
        auto recorder = Recorder::start(*engine, {.sessionFile = file("recorded")});
        QVERIFY(recorder.ok());
        for (int i = 0; i < kRequests; ++i) {
            Pending p(*engine, sampledRequest(i));
            while (i == 2 && p.tokens() < 5) QThread::usleep(50);
            if (i == 2) engine->setKnob(KnobId::ExpertCacheSize, 12);
            m_replies.push_back(p.wait().tokens);
        }
        QVERIFY((*recorder)->finish().ok());
    }

    void requestsAreReadBack() {
        const RecordedRequests r = recorded();
        QCOMPARE(r.requests.size(), size_t(kRequests));
        for (int i = 0; i < kRequests; ++i) {
            const ReplayedRequest& request = r.requests[size_t(i)];
            QCOMPARE(request.prompt, sampledRequest(i).prompt);
            QCOMPARE(request.reply, m_replies[size_t(i)]);
            QVERIFY(i == 0 || request.arrivedS > r.requests[size_t(i) - 1].arrivedS);
        }
        QCOMPARE(r.tokens(), int64_t(kTokens * kRequests));
        QCOMPARE(*r.knobs[size_t(KnobId::ExpertCacheSize)], int64_t(8));
        size_t changes = 0;
        for (const ReplayedRequest& request : r.requests) changes += request.changes.size();
        QCOMPARE(changes, size_t(1));
        const auto change = r.requests[2].changes.empty() ? r.requests[3].changes.front()
                                                          : r.requests[2].changes.front();
        QVERIFY(change.knob == KnobId::ExpertCacheSize);
        QCOMPARE(change.requested, int64_t(12));
        QVERIFY(r.notes.empty());
    }

    void recordedTokensAreFed() {
        const SessionComparison c =
            replayed({{KnobId::ExpertCacheSize, 8}}, {{KnobId::ExpertCacheSize, 8}},
                     ReplayArrivals::OneByOne, "same");
        QVERIFY(c.matched);
        QVERIFY(c.knobs.empty());
        const auto a = SessionDb::open(file("same-a"));
        const Result<RecordedRequests> again = readRecordedRequests(*a, nullptr);
        QVERIFY(again.ok());
        for (size_t i = 0; i < m_replies.size(); ++i)
            QCOMPARE(again->requests[i].reply, m_replies[i]);
    }

    void smallerCacheHitsLess() {
        const SessionComparison c =
            replayed({{KnobId::ExpertCacheSize, 16}, {KnobId::PrefetchSource, 0}},
                     {{KnobId::ExpertCacheSize, 5}, {KnobId::PrefetchSource, 0}},
                     ReplayArrivals::OneByOne, "half");
        QVERIFY(c.matched);
        const Difference hits = figure(c, "hit_rate"), bytes = figure(c, "bytes");
        QVERIFY(hits.significant && hits.relative < 0);
        QVERIFY(bytes.significant && bytes.low > 0 && bytes.after > bytes.before);
    }

    void changesAreRepeatedUnlessFixed() {
        const auto x = load(m_model, {{KnobId::ExpertCacheSize, 8}});
        const auto y = load(m_model, {{KnobId::ExpertCacheSize, 8}});
        ReplaySide fixed{*y};
        fixed.fixed[size_t(KnobId::ExpertCacheSize)] = true;
        const ReplaySide sides[] = {{*x}, fixed};
        QVERIFY(replayRequests(recorded(), sides, ReplayArrivals::OneByOne, {}, nullptr).ok());
        QCOMPARE(effective(*x, KnobId::ExpertCacheSize), int64_t(12));
        QCOMPARE(effective(*y, KnobId::ExpertCacheSize), int64_t(8));
    }

    void arrivalsAreKept() {
        const SessionComparison c = replayed({}, {}, ReplayArrivals::AsRecorded, "arrivals");
        QVERIFY(c.matched);
        const auto a = SessionDb::open(file("arrivals-a"));
        const Result<RecordedRequests> again = readRecordedRequests(*a, nullptr);
        const RecordedRequests first = recorded();
        for (size_t i = 1; i < first.requests.size(); ++i) {
            const auto since = [i](const RecordedRequests& r) {
                return r.requests[i].arrivedS - r.requests[0].arrivedS;
            };
            QVERIFY(since(*again) > since(first) - 0.01);  // never earlier
        }
    }

    void incompleteRequestsAreLeftOut() {
        fs::copy_file(file("recorded"), file("cut"));
        const auto db = openWritable(file("cut"));
        QVERIFY(db.ok());
        const auto run = [&](const char* sql) {
            return sqlite3_exec(db->get(), sql, nullptr, nullptr, nullptr) == SQLITE_OK;
        };
        QVERIFY(run("DELETE FROM prompts WHERE request = (SELECT min(id) FROM requests)"));
        QVERIFY(
            run("DELETE FROM tokens WHERE idx = 7 AND request = (SELECT max(id) FROM "
                "requests)"));
        const RecordedRequests r = recorded("cut");
        QCOMPARE(r.requests.size(), size_t(kRequests - 1));
        QCOMPARE(r.requests.back().reply.size(), size_t(7));
        QCOMPARE(r.notes.size(), size_t(2));
        QVERIFY(r.notes[0].starts_with("1 request left out"));

        QVERIFY(run("DROP TABLE prompts"));
        const auto session = SessionDb::open(file("cut"));
        const auto none = readRecordedRequests(*session, nullptr);
        QCOMPARE(none.status().code(), Code::Unsupported);
        QVERIFY(none.status().message().find("whole prompt") != std::string::npos);
    }

    void cancelAndErrorsEndIt() {
        const auto engine = load(m_model);
        const ReplaySide sides[] = {{*engine}};
        const CancelFlag cancel = true;
        RecordedRequests requests = recorded();
        QCOMPARE(replayRequests(requests, sides, ReplayArrivals::OneByOne, {}, &cancel).code(),
                 Code::Cancelled);
        requests.requests[0].reply[0] = 1'000'000;
        QCOMPARE(replayRequests(requests, sides, ReplayArrivals::OneByOne, {}, nullptr).code(),
                 Code::InvalidArgument);
        QTRY_COMPARE(engine->activeRequests(), 0);
        const auto small = load(m_model, {{KnobId::ContextLength, 32}});
        const ReplaySide smallSides[] = {{*small}};
        const Status status =
            replayRequests(recorded(), smallSides, ReplayArrivals::OneByOne, {}, nullptr);
        QCOMPARE(status.code(), Code::InvalidArgument);
        QVERIFY(status.hint().find("--context-length") != std::string::npos);
    }
};

QTEST_GUILESS_MAIN(TestReplay)
#include "test_replay.moc"
