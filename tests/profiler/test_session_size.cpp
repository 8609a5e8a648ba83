// SPDX-License-Identifier: GPL-3.0-or-later
// The size limit of a session: the oldest detail goes, the totals and distributions stay exact.
#include <QTemporaryDir>
#include <QTest>

#include <filesystem>

#include "profiler/metrics/histogram.h"
#include "profiler/session/session_details.h"
#include "profiler/session/session_reader.h"
#include "profiler/session/session_writer.h"
#include "profiler/session/sqlite.h"

using namespace colibri;
namespace fs = std::filesystem;

namespace {

constexpr int kLayers = 4;

// What the written events add up to.
struct Written {
    int64_t tokens = 0, reads = 0, needs = 0, lookups = 0, hits = 0, demandBytes = 0;
    Histogram gaps;
};

Status writeTokens(SessionWriter& writer, int count, Written& written) {
    uint64_t random = 1;
    const auto next = [&] { return (random = random * 6364136223846793005u + 1) >> 33; };
    for (int i = 0; i < count; ++i) {
        const double t = i * 0.02;
        for (int layer = 0; layer < kLayers; ++layer) {
            Event event{};
            event.type = EventType::LayerStep;
            event.layerStep.layer = uint16_t(layer);
            event.layerStep.firstRow = 1;
            event.layerStep.rows = 1;
            event.layerStep.count = 8;
            event.layerStep.firstBits = 0xff;
            event.layerStep.hitBits = uint16_t(next() & 0xff);
            for (int e = 0; e < 8; ++e) event.layerStep.experts[e] = uint16_t(next() % 64);
            written.lookups += 8;
            written.hits += qPopulationCount(uint32_t(event.layerStep.hitBits));
            COLIBRI_TRY(writer.write(event, t));
        }
        Event event{};
        event.type = EventType::ExpertRead;
        event.expertRead.bytes = 1000;
        event.expertRead.needNs = 1'000'000 + next() % 5'000'000;
        event.expertRead.failed = i % 100 == 0;
        if (!event.expertRead.failed) ++written.needs;
        written.demandBytes += 1000;
        ++written.reads;
        COLIBRI_TRY(writer.write(event, t));
        event = {};
        event.type = EventType::Token;
        event.token.request = 1;
        event.token.index = uint32_t(i);
        event.token.gapNs = 10'000'000 + next() % 30'000'000;
        written.gaps.add(event.token.gapNs);
        ++written.tokens;
        COLIBRI_TRY(writer.write(event, t));
        if (i % 25 == 24) COLIBRI_TRY(writer.commit());
    }
    return {};
}

int64_t numberOf(const fs::path& path, const char* sql) {
    sqlite3* handle = nullptr;
    sqlite3_open(path.c_str(), &handle);
    SqliteDb db(handle);
    SqliteStatement query;
    if (!query.prepare(handle, sql, path.string()).ok() || !*query.step()) return -1;
    return query.integer(0);
}

}  // namespace

class TestSessionSize : public QObject {
    Q_OBJECT
    QTemporaryDir m_dir;
    fs::path file(const char* name) { return fs::path(m_dir.path().toStdString()) / name; }

private slots:
    void theOldestDetailGoesAndTotalsStay() {
        constexpr int64_t kMost = 3 << 20;
        const fs::path path = file("long.colibri-session");
        Written written;
        {
            auto writer = SessionWriter::create(path, {}, kMost);
            QVERIFY(writer.ok());
            const Status status = writeTokens(**writer, 20'000, written);
            QVERIFY2(status.ok(), status.text().c_str());
            QVERIFY((*writer)->finish().ok());
        }
        QVERIFY2(int64_t(fs::file_size(path)) <= kMost,
                 qPrintable(QString::number(fs::file_size(path))));
        QVERIFY(numberOf(path, "SELECT count(*) FROM layer_steps") < 20'000 * kLayers / 2);
        const auto summary = readSessionSummary(path);
        QVERIFY2(summary.ok(), summary.status().text().c_str());
        QVERIFY(summary->meta.contains("thinned_detail_before"));
        QCOMPARE(summary->tokens, written.tokens);
        QCOMPARE(summary->loads, written.reads);
        QCOMPARE(summary->lookups, written.lookups);
        QCOMPARE(summary->hits, written.hits);
        // The same from the rows and the totals, as for a session that was not closed.
        QCOMPARE(numberOf(path,
                          "SELECT (SELECT sum(hits) FROM layer_steps) + (SELECT value FROM totals "
                          "WHERE name = 'layer_steps.hits')"),
                 written.hits);
        QCOMPARE(numberOf(path,
                          "SELECT (SELECT sum(bytes) FROM loads) + (SELECT value FROM totals WHERE "
                          "name = 'loads.demand.bytes')"),
                 written.demandBytes);
        const auto details = readSessionDetails(path);
        QVERIFY2(details.ok(), details.status().text().c_str());
        QCOMPARE(details->itl.count(), written.gaps.count());
        QCOMPARE(int64_t(details->expertLoad.count()), written.needs);
        for (const double q : {0.5, 0.9, 0.99, 0.999}) {
            const double want = written.gaps.quantile(q);
            QVERIFY(std::abs(details->itl.quantile(q) - want) <= 0.006 * want);
        }
        // The newest rows are all there.
        QCOMPARE(numberOf(path, "SELECT max(idx) FROM tokens"), int64_t(19'999));
        QCOMPARE(numberOf(path, "SELECT count(*) FROM layer_steps WHERE t >= 399.5"),
                 int64_t(25 * kLayers));
    }
    void aShortSessionKeepsEverything() {
        const fs::path path = file("short.colibri-session");
        Written written;
        {
            auto writer = SessionWriter::create(path, {}, 64 << 20);
            QVERIFY(writer.ok());
            QVERIFY(writeTokens(**writer, 2'000, written).ok());
        }
        QVERIFY(!readSessionSummary(path)->meta.contains("thinned_detail_before"));
        QCOMPARE(numberOf(path, "SELECT count(*) FROM layer_steps"), int64_t(2'000 * kLayers));
        QCOMPARE(numberOf(path, "SELECT count(*) FROM totals"), int64_t(0));
    }
};

QTEST_GUILESS_MAIN(TestSessionSize)
#include "test_session_size.moc"
