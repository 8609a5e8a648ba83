// SPDX-License-Identifier: GPL-3.0-or-later
// Played sessions of known content: series, figures, markers, knobs and residency at any time, and
// files that are damaged, old, unfinished or of another kind.
#include <QFile>
#include <QTemporaryDir>
#include <QTest>

#include <cmath>

#include "profiler/metrics/effect.h"
#include "profiler/playback/playback.h"
#include "profiler/playback/recorded_effects.h"
#include "profiler/session/sqlite.h"
#include "tests/profiler/session_maker.h"

using namespace colibri;
namespace fs = std::filesystem;

namespace {

constexpr PlotWindow kWhole{0, 100, 1000};

QByteArray contentOf(const fs::path& path) {
    QFile file(QString::fromStdString(path.string()));
    return file.open(QIODevice::ReadOnly) ? file.readAll() : QByteArray();
}

Event readOf(int layer, int expert, uint64_t readNs = 1'000'000) {
    Event event{};
    event.type = EventType::ExpertRead;
    event.expertRead = {.layer = uint16_t(layer),
                        .expert = uint16_t(expert),
                        .reason = ReadReason::Demand,
                        .bytes = 4096,
                        .readNs = readNs,
                        .needNs = readNs};
    return event;
}

Event evictionOf(int layer, int expert) {
    Event event{};
    event.type = EventType::Eviction;
    event.eviction = {uint16_t(layer), uint16_t(expert), 1000, 1};
    return event;
}

Event routingOf(int layer, int expert) {
    Event event{};
    event.type = EventType::LayerStep;
    event.layerStep.layer = uint16_t(layer);
    event.layerStep.firstRow = 1;
    event.layerStep.rows = 1;
    event.layerStep.count = 1;
    event.layerStep.firstBits = event.layerStep.hitBits = 1;
    event.layerStep.experts[0] = uint16_t(expert);
    return event;
}

Snapshot sampleOf(double hitRate, double decode) {
    Snapshot snapshot;
    snapshot.series[size_t(SeriesId::HitRate)].y = {hitRate};
    snapshot.series[size_t(SeriesId::TokensPerSecond)].y = {decode};
    snapshot.series[size_t(SeriesId::MemoryGiB)].y = {1.5};
    return snapshot;
}

// Opens with everything read.
std::unique_ptr<Playback> played(const fs::path& path) {
    auto playback = Playback::open(path);
    if (!playback) {
        qWarning("%s", playback.status().text().c_str());
        return nullptr;
    }
    auto db = SessionDb::open(path, Totals::None);
    const auto index = makeFullIndex(*db, *(*playback)->facts(), {}, nullptr);
    if (!index) return nullptr;
    (*playback)->setIndex(*index);
    return std::move(*playback);
}

const SeriesData& seriesOf(const Snapshot& snapshot, SeriesId id) {
    return snapshot.series[size_t(id)];
}

}  // namespace

class TestPlayback : public QObject {
    Q_OBJECT

    QTemporaryDir m_dir;
    fs::path file(const char* name) const { return m_dir.filePath(name).toStdString(); }

    std::unique_ptr<SessionWriter> writer(const fs::path& path) {
        auto made = SessionWriter::create(
            path, {{"model", "tiny"}, {"layers", "2"}, {"experts", "4"}, {"top_k", "1"}});
        return made ? std::move(*made) : nullptr;
    }

    // Two requests (1..5 s, 8..12 s), a change of the cache with its effect, samples at 10 Hz.
    void writeStory(const fs::path& path, bool finish = true) {
        auto session = writer(path);
        QVERIFY(session);
        QVERIFY(session->write(knobEvent(KnobId::ExpertCacheSize, 8), 0).ok());
        const auto request = [&](uint64_t id, double from, double to) {
            Event event = requestEvent(EventType::RequestArrived, id);
            QVERIFY(session->write(event, from - 0.1).ok());
            event.type = EventType::RequestAdmitted;
            QVERIFY(session->write(event, from).ok());
            event.type = EventType::RequestDone;
            QVERIFY(session->write(event, to).ok());
        };
        request(1, 1, 5);
        request(2, 8, 12);
        for (int i = 0; i <= 140; ++i) {
            const double t = i / 10.0;
            const bool runs = (t >= 1 && t < 5) || (t >= 8 && t < 12);
            QVERIFY(session->sample(sampleOf(runs ? t * 5 : NAN, runs ? 20 + t : NAN), t).ok());
        }
        for (int i = 0; i < 40; ++i)
            QVERIFY(session->write(tokenEvent(uint64_t(10 + i) * 1'000'000), 1.05 + i * 0.1).ok());
        Event change = knobEvent(KnobId::ExpertCacheSize, 16);
        QVERIFY(session->write(change, 9).ok());
        QVERIFY(session
                    ->mark(9, "effect",
                           "Cache size 8 → 16: +18.2 % tok/s (95 %: 15.1..21.4), from 92 tokens "
                           "before, 160 after, at 1 request at a time")
                    .ok());
        QVERIFY(session->mark(10, "note", "half way").ok());
        if (finish)
            QVERIFY(session->finish().ok());
        else
            QVERIFY(session->commit().ok());
    }

private slots:
    void seriesAreThoseOfTheWholeSession() {
        writeStory(file("series"));
        const auto playback = played(file("series"));
        QVERIFY(playback);
        QCOMPARE(playback->facts()->duration, 14.0);
        const auto snapshot = playback->at(3, kWhole);
        const SeriesData& hits = seriesOf(*snapshot, SeriesId::HitRate);
        // 40 values of each request, and a gap behind the first request and behind the second.
        QCOMPARE(hits.t.size(), size_t(82));
        QVERIFY(std::isnan(hits.y[40]) && std::isnan(hits.y[81]));
        QVERIFY(std::abs(hits.t[5] - 1.5) < 1e-3 && std::abs(hits.y[5] - 7.5) < 1e-3);
        QCOMPARE(seriesOf(*snapshot, SeriesId::MemoryGiB).y.size(), size_t(141));
        for (const SeriesId id : {SeriesId::SmUtilisation, SeriesId::GpuDram, SeriesId::GpuBusy})
            QVERIFY(!seriesOf(*snapshot, id).unavailable.empty());
        QVERIFY(snapshot->recorded);
    }
    void figuresAreThoseOfTheTime() {
        writeStory(file("figures"));
        const auto playback = played(file("figures"));
        QVERIFY(playback);
        auto snapshot = playback->at(3, kWhole);
        QCOMPARE(snapshot->running, 1);
        QCOMPARE(snapshot->turns, 1);
        QVERIFY(std::abs(snapshot->figures.hitRate - 15) < 1e-3);
        QVERIFY(std::abs(snapshot->figures.decodeTokS - 23) < 1e-3);
        QCOMPARE(snapshot->figures.itlCount, uint64_t(20));  // 1.05 to 2.95
        QCOMPARE(snapshot->figures.allTokS, 10.0);
        // Between the requests they are those of the end of the first one.
        snapshot = playback->at(7, kWhole);
        QCOMPARE(snapshot->running, 0);
        QCOMPARE(snapshot->figuresAt, 5.0);
        QVERIFY(std::abs(snapshot->figures.hitRate - 24.5) < 1e-3);
        // Before the first there are none.
        QVERIFY(std::isnan(playback->at(0.5, kWhole)->figures.hitRate));
        const Histogram pooled = playback->index()->itl.between(1, 2);
        QCOMPARE(pooled.count(), uint64_t(10));
        QVERIFY(std::abs(pooled.max() - 19e6) < 20e3);
    }
    void markersCarryTheirEffects() {
        writeStory(file("markers"));
        const auto playback = played(file("markers"));
        QVERIFY(playback);
        const auto snapshot = playback->at(0, kWhole);
        const auto& markers = snapshot->markers;
        QStringList labels;
        for (const Marker& marker : markers) labels << QString::fromStdString(marker.label);
        QCOMPARE(labels, QStringList({"turn 1", "turn 1", "turn 2", "Cache size 8 → 16", "half way",
                                      "turn 2"}));
        const Marker& change = markers[3];
        QVERIFY(change.effect == Marker::Effect::Known);
        QVERIFY(std::abs(change.change - 0.182) < 1e-9 && std::abs(change.low - 0.151) < 1e-9 &&
                std::abs(change.high - 0.214) < 1e-9);
        QCOMPARE(change.validity,
                 std::string("92 tokens before, 160 after, at 1 request at a time"));
    }
    void knobsAreThoseOfTheTime() {
        writeStory(file("knobs"));
        const auto playback = played(file("knobs"));
        QVERIFY(playback);
        const auto cache = [&](double t) {
            return playback->at(t, kWhole)->knob(KnobId::ExpertCacheSize).effective;
        };
        QCOMPARE(cache(0), 8);
        QCOMPARE(cache(8.99), 8);
        QCOMPARE(cache(9), 16);
        QCOMPARE(cache(14), 16);
    }
    void effectsAreReadAsTheyAreWritten() {
        for (const auto& [change, low, high] : {std::tuple(0.182, 0.151, 0.214),
                                                {-0.06, -0.08, -0.04},
                                                {0.01, -0.02, 0.04},
                                                {10.9, 9.6, 12.6},
                                                {1.5, 0.9, 2.2},
                                                {0.0, -0.01, 0.0}}) {
            Marker written;
            written.effect = Marker::Effect::Known;
            written.change = change;
            written.low = low;
            written.high = high;
            written.validity = "1,092 tokens before, 160 after";
            written.refining = true;
            Marker read;
            QVERIFY2(readEffect(effectText(written), &read), effectText(written).c_str());
            QCOMPARE(QString::fromStdString(effectFigure(read)),
                     QString::fromStdString(effectFigure(written)));
            QCOMPARE(QString::fromStdString(effectInterval(read)),
                     QString::fromStdString(effectInterval(written)));
            QCOMPARE(read.validity, written.validity);
        }
        Marker marker;
        QVERIFY(readEffect("not measured: another knob was changed", &marker));
        QVERIFY(marker.effect == Marker::Effect::NotMeasured);
        QCOMPARE(marker.reason, std::string("another knob was changed"));
        for (const char* other : {"", "settling", "+", "+18.2 %", "+18.2 % tok/s (95 %: 1..",
                                  "+18.2 % tok/s (95 %: ..3)", "− % tok/s (95 %: 1..2)"})
            QVERIFY(!readEffect(other, &marker));
    }

    // Reads and evictions in an order as the store makes them.
    void residencyFollowsReadsAndEvictions() {
        const fs::path path = file("experts");
        auto session = writer(path);
        QVERIFY(session->write(routingOf(0, 0), 0.1).ok());
        QVERIFY(session->write(routingOf(1, 0), 0.2).ok());
        QVERIFY(session->write(readOf(0, 1), 1).ok());
        QVERIFY(session->write(readOf(1, 2), 2).ok());
        QVERIFY(session->write(evictionOf(0, 3), 3).ok());  // it was there from the start
        QVERIFY(session->write(evictionOf(0, 1), 4).ok());
        QVERIFY(session->write(readOf(0, 3, 500'000'000), 5).ok());
        QVERIFY(session->write(routingOf(1, 2), 6).ok());
        QVERIFY(session->sample(sampleOf(50, 20), 7).ok());
        QVERIFY(session->finish().ok());
        const auto playback = played(path);
        QVERIFY(playback);
        const auto at = [&](double t) {
            QString states;
            const auto snapshot = playback->at(t, kWhole);
            for (const Residency state : snapshot->residency)
                states += state == Residency::Resident  ? 'r'
                          : state == Residency::Reading ? '.'
                                                        : '-';
            return states;
        };
        QCOMPARE(at(0.5), QString("---r----"));
        QCOMPARE(at(1), QString("-r-r----"));
        QCOMPARE(at(2.5), QString("-r-r--r-"));
        QCOMPARE(at(3.5), QString("-r----r-"));
        QCOMPARE(at(4.2), QString("------r-"));
        QCOMPARE(at(4.6), QString("---.--r-"));
        QCOMPARE(at(5), QString("---r--r-"));
        QCOMPARE(at(1), QString("-r-r----"));  // and back again
        const std::vector<float> heat = playback->at(6, kWhole)->heat;
        QVERIFY(heat[6] == 1 && heat[0] > 0 && heat[0] < 1 && heat[1] == 0);
        QCOMPARE(playback->at(5, kWhole)->store.slotsUsed, 2);
    }
    // A jump to any time reads a bounded number of rows, and finds the state that all rows give.
    void aJumpReadsFewRows() {
        const fs::path path = file("many");
        auto session = writer(path);
        std::vector<bool> resident(8);
        std::vector<std::pair<double, std::vector<bool>>> states;
        uint32_t random = 1;
        for (int i = 0; i < 40000; ++i) {
            random = random * 1664525 + 1013904223;
            const size_t cell = random >> 29;
            const double t = 1 + i * 0.01;
            const int layer = int(cell / 4), expert = int(cell % 4);
            QVERIFY(
                session
                    ->write(
                        resident[cell] ? evictionOf(layer, expert) : readOf(layer, expert, 1000), t)
                    .ok());
            resident[cell] = !resident[cell];
            if (i % 997 == 0) states.emplace_back(t + 0.005, resident);
        }
        QVERIFY(session->sample(sampleOf(50, 20), 402).ok());
        QVERIFY(session->finish().ok());
        const auto playback = played(path);
        QVERIFY(playback);
        QVERIFY(playback->index()->experts->count() >= 9);
        for (const auto& [t, expected] : states) {
            const auto snapshot = playback->at(t, kWhole);
            for (size_t i = 0; i < expected.size(); ++i)
                QCOMPARE(snapshot->residency[i] == Residency::Resident, bool(expected[i]));
            QVERIFY2(playback->rowsRead() < 2 * ExpertCheckpoints::kRows,
                     qPrintable(QString::number(playback->rowsRead())));
        }
    }
    // The first plot of a long session needs a small part of its samples.
    void aLongSessionOpensWithSomeOfItsSamples() {
        const fs::path path = file("long");
        auto session = writer(path);
        constexpr int kSamples = 150'000;  // of three series
        for (int i = 0; i < kSamples; ++i) {
            const bool runs = i / 1000 % 2 == 0;
            QVERIFY(session
                        ->sample(sampleOf(runs ? (i == 60500 ? 90 : 50) : NAN, runs ? 20 : NAN),
                                 i * 0.1)
                        .ok());
        }
        QVERIFY(session->finish().ok());
        auto opened = Playback::open(path);
        QVERIFY(opened.ok());
        QVERIFY(!(*opened)->index()->complete);
        const PlotWindow whole{0, 15e3, 1000};
        const auto first = (*opened)->at(5000, whole);
        QVERIFY((*opened)->index()->series.series(SeriesId::MemoryGiB).size() < 2000);
        const SeriesData& some = seriesOf(*first, SeriesId::HitRate);
        QVERIFY(some.t.size() > 500 && some.t.front() < 20 && some.t.back() > 14800);
        QVERIFY(std::any_of(some.y.begin(), some.y.end(), [](double y) { return std::isnan(y); }));
        QVERIFY(first->residencyUnknown.size());

        // Then with all of them. A plot gets a few points for each column, and all peaks.
        const auto playback = played(path);
        const auto all = playback->at(5000, whole);
        QVERIFY(all->detail != first->detail || all->series[0].t.size() != some.t.size());
        const SeriesData& hits = seriesOf(*all, SeriesId::HitRate);
        QVERIFY(hits.t.size() < 4000);
        QVERIFY(std::abs(*std::max_element(hits.y.begin(), hits.y.end(), [](double a, double b) {
                    return !(a >= b) && !std::isnan(b);
                }) - 90) < 1e-3);
        const auto close = playback->at(6050, {6049, 6051, 1000});
        const SeriesData& part = seriesOf(*close, SeriesId::HitRate);
        QCOMPARE(std::count_if(part.t.begin(), part.t.end(),
                               [](double t) { return t > 6049.05 && t < 6050.95; }),
                 19);
        // The same window again is not made again.
        QCOMPARE(playback->at(6050.5, {6049, 6051, 1000})->detail, close->detail);
    }

    void anUnfinishedSessionIsReadAndStaysAsItIs() {
        const fs::path path = file("unfinished"), copy = file("killed");
        auto session = writer(path);
        QVERIFY(session->sample(sampleOf(50, 20), 1).ok());
        QVERIFY(session->write(requestEvent(EventType::RequestArrived, 1), 1).ok());
        QVERIFY(session->write(requestEvent(EventType::RequestAdmitted, 1), 1.5).ok());
        QVERIFY(session->sample(sampleOf(60, 20), 2).ok());
        QVERIFY(session->commit().ok());
        for (const char* suffix : {"", "-wal"})
            fs::copy_file(path.string() + suffix, copy.string() + suffix);
        QVERIFY(fs::file_size(copy.string() + "-wal") > 0);
        const QByteArray before = contentOf(copy), wal = contentOf(copy.string() + "-wal");
        {
            const auto playback = played(copy);
            QVERIFY(playback);
            QCOMPARE(playback->facts()->duration, 2.0);
            const auto snapshot = playback->at(2, kWhole);
            QCOMPARE(seriesOf(*snapshot, SeriesId::HitRate).y.size(), size_t(2));
            // A request that was running ends with the recording.
            QCOMPARE(playback->facts()->requests[0].done, 2.0);
            QVERIFY(!playback->facts()->requests[0].ended);
        }
        QVERIFY(contentOf(copy) == before);
        QVERIFY(contentOf(copy.string() + "-wal") == wal);
    }
    void filesOfTheFirstSchemaArePlayed() {
        const fs::path path = file("first");
        MadeSession().write(path);
        sqlite3* handle = nullptr;
        QCOMPARE(sqlite3_open(path.c_str(), &handle), SQLITE_OK);
        for (const char* sql :
             {"UPDATE meta SET value = '1' WHERE key = 'schema'", "DROP TABLE prompts",
              "DROP TABLE evictions", "DROP TABLE steps", "DROP TABLE threads",
              "ALTER TABLE tokens DROP COLUMN step", "ALTER TABLE loads DROP COLUMN step"})
            QCOMPARE(sqlite3_exec(handle, sql, nullptr, nullptr, nullptr), SQLITE_OK);
        sqlite3_close(handle);
        const QByteArray before = contentOf(path);
        const auto playback = played(path);
        QVERIFY(playback);
        const auto snapshot = playback->at(0.5, kWhole);
        QVERIFY(snapshot->residency.empty());
        QVERIFY2(snapshot->residencyUnknown.find("no evictions") != std::string::npos,
                 snapshot->residencyUnknown.c_str());
        QCOMPARE(snapshot->turns, 2);
        const auto turn = playback->turn(playback->facts()->requests[0]);
        QVERIFY2(turn.ok(), turn.status().text().c_str());
        QCOMPARE(turn->tokens.size(), size_t(20));
        QVERIFY(turn->userUnknown.find("no prompts") != std::string::npos);
        QVERIFY(turn->replyUnknown.find("model") != std::string::npos);
        QVERIFY(contentOf(path) == before);
    }
    void turnsHaveTheirFigures() {
        MadeSession().write(file("turns"));
        const auto playback = played(file("turns"));
        QVERIFY(playback);
        QCOMPARE(playback->facts()->requests.size(), size_t(3));
        const auto turn = playback->turn(playback->facts()->requests[1]);
        QVERIFY(turn.ok());
        QCOMPARE(turn->tokens.size(), size_t(20));
        QCOMPARE(turn->lookups, 20 * 4 * 2);
        QCOMPARE(turn->hits, 10 * 4 + 10 * 8);
        // 40 demand reads, and a prefetch for each token.
        QCOMPARE(turn->bytesRead, double(60 * MadeSession::kReadBytes));
    }
    void aDamagedFileShowsWhatCanBeRead() {
        const fs::path path = file("damaged");
        writeStory(path);
        sqlite3* handle = nullptr;
        QCOMPARE(sqlite3_open(path.c_str(), &handle), SQLITE_OK);
        QCOMPARE(
            sqlite3_exec(handle, "DROP TABLE marks; DROP TABLE loads", nullptr, nullptr, nullptr),
            SQLITE_OK);
        sqlite3_close(handle);
        const auto playback = played(path);
        QVERIFY(playback);
        QVERIFY(playback->facts()->problems.size() >= 1);
        QVERIFY(playback->index()->problems.size() >= 1);
        const auto snapshot = playback->at(3, kWhole);
        QVERIFY(seriesOf(*snapshot, SeriesId::HitRate).t.size() > 50);
        QVERIFY(std::abs(snapshot->figures.hitRate - 15) < 1e-3);
        QVERIFY(!snapshot->residencyUnknown.empty());
    }
    void everyCutOfAFileIsAnErrorOrASession() {
        const fs::path path = file("whole"), cut = file("cut");
        writeStory(path);
        const QByteArray all = contentOf(path);
        for (qsizetype size = 0; size < all.size(); size += 4096 + 37) {
            QFile part(QString::fromStdString(cut.string()));
            QVERIFY(part.open(QIODevice::WriteOnly | QIODevice::Truncate));
            part.write(all.left(size));
            part.close();
            const auto playback = Playback::open(cut);
            if (!playback) {
                QVERIFY(!playback.status().message().empty() && !playback.status().hint().empty());
                continue;
            }
            (void)(*playback)->at(3, kWhole);
        }
    }
    void anotherFileIsRefused() {
        const fs::path path = file("text");
        QFile text(QString::fromStdString(path.string()));
        QVERIFY(text.open(QIODevice::WriteOnly));
        text.write("not a session");
        text.close();
        const auto playback = Playback::open(path);
        QVERIFY(!playback.ok());
        QVERIFY(playback.status().code() == Code::BadInput);
        QVERIFY(playback.status().message().find("text") != std::string::npos);
        QVERIFY(!Playback::open(file("missing")).ok());
    }
    void readingIsCancelled() {
        MadeSession made;
        made.requests = 3;
        made.tokens = 400;
        made.layers = 60;
        made.write(file("cancel"));
        auto playback = Playback::open(file("cancel"));
        auto db = SessionDb::open(file("cancel"), Totals::None);
        CancelFlag cancel{true};
        const auto index = makeFullIndex(*db, *(*playback)->facts(), {}, &cancel);
        QVERIFY(!index.ok() && index.status().code() == Code::Cancelled);
    }
};

QTEST_GUILESS_MAIN(TestPlayback)
#include "test_playback.moc"
