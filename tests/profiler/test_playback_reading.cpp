// SPDX-License-Identifier: GPL-3.0-or-later
// A session of the demo model, played beside what its recorder showed at the time.
#include <QTemporaryDir>
#include <QtTest>

#include "engine/text/tokenizer.h"
#include "profiler/playback/playback.h"
#include "profiler/record/recorder.h"
#include "tests/engine/runtime/run_fixture.h"

using namespace colibri;
using namespace colibri::test;
namespace fs = std::filesystem;

namespace {

const fs::path kDemo = COLIBRI_SOURCE_DIR "/resources/demo-model/container";
constexpr const char* kQuestions[] = {"What is an expert cache?", "Tell me a story.",
                                      "Why is the disk slow?\nIn one line."};

// Newlines and spaces at the ends are those of the template.
QString textOf(const std::string& text) {
    return QString::fromStdString(text).trimmed();
}

}  // namespace

class TestPlaybackReading : public QObject {
    Q_OBJECT

    QTemporaryDir m_dir;
    fs::path m_path;
    std::vector<std::shared_ptr<const Snapshot>> m_live;  // while nothing ran
    std::vector<std::string> m_replies;
    std::unique_ptr<Playback> m_playback;

private slots:
    void initTestCase() {
        m_path = m_dir.filePath("demo.colibri-session").toStdString();
        const auto engine = load(kDemo, {{KnobId::ExpertCacheSize, 6},
                                         {KnobId::PrefetchSource, int64_t(PrefetchSource::Off)},
                                         {KnobId::ComputeThreads, 1}});
        auto recorder = std::move(*Recorder::start(*engine, {.sessionFile = m_path}));
        nlohmann::ordered_json messages = nlohmann::ordered_json::array();
        for (const char* question : kQuestions) {
            messages.push_back({{"role", "user"}, {"content", question}});
            Pending request(*engine, greedyRequest(*engine->encodeChat(messages), 90));
            m_replies.push_back(request.wait().text);
            messages.push_back({{"role", "assistant"}, {"content", m_replies.back()}});
            if (m_live.empty()) (void)engine->setKnob(KnobId::ExpertCacheSize, 12);
            QTest::qWait(400);
            (void)recorder->flush();
            m_live.push_back(recorder->snapshot());
            QTest::qWait(100);
        }
        QVERIFY(recorder->finish().ok());
        auto playback = Playback::open(m_path);
        QVERIFY2(playback.ok(), playback.status().text().c_str());
        m_playback = std::move(*playback);
        auto db = SessionDb::open(m_path);
        const auto index = makeFullIndex(*db, *m_playback->facts(), {}, nullptr);
        QVERIFY(index.ok() && (*index)->problems.empty());
        m_playback->setIndex(*index);
    }
    void residencyIsThatOfTheStore() {
        for (const auto& live : m_live) {
            const auto played = m_playback->at(live->now, {0, 100, 1000});
            QCOMPARE(played->residency.size(), live->residency.size());
            size_t resident = 0;
            for (size_t i = 0; i < live->residency.size(); ++i) {
                QCOMPARE(played->residency[i], live->residency[i]);
                resident += live->residency[i] == Residency::Resident;
            }
            QVERIFY(resident > 0);
        }
    }
    void markersAndKnobsAreThoseOfTheRecorder() {
        const auto& live = *m_live.back();
        const auto played = m_playback->at(live.now, {0, 100, 1000});
        QCOMPARE(played->markers.size(), live.markers.size());
        for (size_t i = 0; i < live.markers.size(); ++i) {
            QCOMPARE(played->markers[i].label, live.markers[i].label);
            QVERIFY(played->markers[i].kind == live.markers[i].kind);
            QVERIFY(std::abs(played->markers[i].t - live.markers[i].t) < 1e-6);
        }
        for (const KnobRow& row : knobTable()) {
            QCOMPARE(played->knob(row.id).requested, live.knob(row.id).requested);
            QCOMPARE(played->knob(row.id).effective, live.knob(row.id).effective);
        }
        QCOMPARE(played->turns, live.turns);
    }
    void seriesAndFiguresAreThoseOfTheRecorder() {
        for (const auto& live : m_live) {
            const auto played = m_playback->at(live->now, {0, 100, 1000});
            // The file has ten of the thirty values a second that the recorder published.
            const auto published = [&](SeriesId id, double value) {
                const SeriesData& series = live->series[size_t(id)];
                return std::any_of(series.y.begin(), series.y.end(), [&](double y) {
                    return std::abs(y - value) <= 1e-5 * std::abs(value);
                });
            };
            QVERIFY(published(SeriesId::HitRate, played->figures.hitRate));
            QVERIFY(published(SeriesId::ItlP50, played->figures.itlP50Ms));
            QVERIFY(published(SeriesId::TokensPerSecond, played->figures.decodeTokS));
            QVERIFY(played->figuresAt <= live->now);
        }
        const auto played = m_playback->at(0, {0, 100, 1000});
        const SeriesData& memory = played->series[size_t(SeriesId::MemoryGiB)];
        QVERIFY(memory.t.size() > 5 && memory.y.back() > 0);
    }
    void textIsThatOfTheChat() {
        const auto& requests = m_playback->facts()->requests;
        QCOMPARE(requests.size(), m_replies.size());
        for (size_t i = 0; i < requests.size(); ++i) {
            const auto turn = m_playback->turn(requests[i]);
            QVERIFY2(turn.ok(), turn.status().text().c_str());
            QCOMPARE(textOf(turn->user), QString(kQuestions[i]));
            QCOMPARE(turn->userUnknown + turn->replyUnknown, std::string());
            QVERIFY2(textOf(turn->reply).startsWith(textOf(m_replies[i])), turn->reply.c_str());
            QCOMPARE(int64_t(turn->tokens.size()), requests[i].generated);
            QCOMPARE(turn->tokens.back().end, turn->reply.size());
            QVERIFY(turn->lookups > turn->hits && turn->bytesRead > 0);
            // With 6 of 32 experts in memory most tokens wait.
            QVERIFY(std::any_of(turn->tokens.begin(), turn->tokens.end(), [](auto& token) {
                return token.waitMs > 0 && token.layer >= 0 && token.expert >= 0;
            }));
        }
    }
};

QTEST_GUILESS_MAIN(TestPlaybackReading)
#include "test_playback_reading.moc"
