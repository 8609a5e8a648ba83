// SPDX-License-Identifier: GPL-3.0-or-later
// The rows of a session: steps, reads, evictions, prompts, and files of the first schema.
#include <QFile>
#include <QTemporaryDir>
#include <QTest>

#include <filesystem>

#include "engine/telemetry/gpu_scope.h"
#include "engine/telemetry/telemetry.h"
#include "profiler/record/recorder.h"
#include "profiler/session/session_details.h"
#include "profiler/session/session_reader.h"
#include "profiler/session/session_writer.h"
#include "profiler/session/sqlite.h"

using namespace colibri;
namespace fs = std::filesystem;

namespace {

Event token(uint32_t index) {
    Event event{};
    event.type = EventType::Token;
    event.token.request = 1;
    event.token.index = index;
    event.token.gapNs = 5'000'000;
    return event;
}

QByteArray bytesOf(const fs::path& path) {
    QFile file(QString::fromStdString(path.string()));
    return file.open(QIODevice::ReadOnly) ? file.readAll() : QByteArray();
}

}  // namespace

class TestSessionRows : public QObject {
    Q_OBJECT
    QTemporaryDir m_dir;
    fs::path file(const char* name) { return fs::path(m_dir.path().toStdString()) / name; }

private slots:
    // Kernels and copies arrive at the recorder and are in the file with the work they belong to.
    void kernelsAreInTheFile() {
        const fs::path path = file("gpu.colibri-session");
        Telemetry telemetry;
        RecorderSource source;
        source.telemetry = &telemetry;
        source.stats = [] { return StoreStats(); };
        source.residency = [](std::vector<Residency>& out) { out.clear(); };
        source.knobState = [](KnobId) { return KnobState(); };
        std::vector<GpuSpan> spans{
            {.startNs = monotonicNs() + 1'500'000'000,
             .durationNs = 20'000,
             .name = "gemv",
             .correlation = 4,
             .work = gpuWorkId({.step = 7, .layer = 2, .stage = GpuStage::Experts})},
            {.kind = GpuSpanKind::CopyToGpu, .bytes = 4096, .device = 1, .stream = 9}};
        source.takeGpuSpans = [&](std::vector<GpuSpan>& out) { out.swap(spans); };
        {
            const auto recorder = Recorder::start(source, {.sessionFile = path});
            QVERIFY2(recorder.ok(), recorder.status().text().c_str());
            QVERIFY((*recorder)->pmSampling().ok());  // it is not chosen
            QVERIFY((*recorder)->flush().ok());
        }
        sqlite3* handle = nullptr;
        sqlite3_open(path.c_str(), &handle);
        const SqliteDb db(handle);
        const auto one = [&](const char* sql) {
            SqliteStatement query;
            if (!query.prepare(handle, sql, "").ok() || !*query.step()) return std::string("none");
            return query.text(0);
        };
        QCOMPARE(
            one("SELECT name || ' ' || duration_ns || ' ' || correlation || ' ' || step || ' ' "
                "|| layer || ' ' || stage FROM gpu_spans WHERE kind = 'kernel'"),
            std::string("gemv 20000 4 7 2 experts"));
        QCOMPARE(one("SELECT bytes || ' ' || device || ' ' || stream FROM gpu_spans "
                     "WHERE kind = 'copy_to_gpu' AND step IS NULL AND stage IS NULL"),
                 std::string("4096 1 9"));
        QCOMPARE(one("SELECT count(*) FROM gpu_spans WHERE t BETWEEN 1.4 AND 1.6"),
                 std::string("1"));
    }

    void stepsReadsAndEvictionsAreInTheFile() {
        const fs::path path = file("steps.colibri-session");
        {
            auto writer = SessionWriter::create(path, {});
            QVERIFY(writer.ok());
            QVERIFY((*writer)->thread(3, "expert-io-1").ok());
            Event event{};
            event.type = EventType::StepMember;
            event.stepMember = {.request = 1, .step = 7, .rows = 1, .prefill = 0};
            QVERIFY((*writer)->write(event, 1).ok());
            event = {};
            event.type = EventType::Prompt;
            event.prompt = {.request = 1, .first = 22, .count = 2, .tokens = {258, -1}};
            QVERIFY((*writer)->write(event, 1).ok());
            event = {};
            event.type = EventType::Step;
            event.step.step = 7;
            event.step.requests = event.step.rows = 1;
            event.step.totalNs = 20e6f;
            event.step.expertsNs = 9e6f;
            event.step.stallDiskNs = 4e6f;
            QVERIFY((*writer)->write(event, 1).ok());
            Event generated = token(3);
            generated.token.step = 7;
            QVERIFY((*writer)->write(generated, 1).ok());
            event = {};
            event.type = EventType::ExpertRead;
            event.thread = 3;
            event.expertRead = {.layer = 2,
                                .expert = 5,
                                .reason = ReadReason::Prefetch,
                                .late = 1,
                                .step = 7,
                                .linkNs = 1'000'000,
                                .needNs = 4'000'000};
            QVERIFY((*writer)->write(event, 1).ok());
            event.expertRead.step = 0;  // no token waited for it
            QVERIFY((*writer)->write(event, 1).ok());
            event = {};
            event.type = EventType::Eviction;
            event.eviction = {.layer = 2, .expert = 6, .residentNs = 5'000'000, .uses = 4};
            QVERIFY((*writer)->write(event, 1).ok());
            event = {};
            event.type = EventType::PrefetchOutcome;
            event.prefetch = {.issued = 5,
                              .useful = 2,
                              .cancelled = 3,
                              .source = uint8_t(PrefetchSource::NextRouter)};
            QVERIFY((*writer)->write(event, 1).ok());
        }
        const auto one = [&](const char* sql) {
            sqlite3* handle = nullptr;
            sqlite3_open(path.c_str(), &handle);
            SqliteDb db(handle);
            SqliteStatement query;
            if (!query.prepare(handle, sql, "").ok() || !*query.step()) return std::string("none");
            return query.text(0);
        };
        // From a token to its step, the reads it waited for and their threads.
        QCOMPARE(one("SELECT steps.experts_ns || ' ' || steps.stall_disk_ns FROM tokens JOIN steps "
                     "ON steps.id = tokens.step WHERE idx = 3"),
                 std::string("9000000 4000000"));
        QCOMPARE(
            one("SELECT loads.layer || ' ' || expert || ' ' || late || ' ' || link_ns || ' ' || "
                "threads.name FROM tokens JOIN loads ON loads.step = tokens.step "
                "JOIN threads ON threads.id = loads.thread"),
            std::string("2 5 1 1000000 expert-io-1"));
        QCOMPARE(one("SELECT count(*) FROM loads WHERE step IS NULL"), std::string("1"));
        QCOMPARE(one("SELECT request || ' ' || first || ' ' || hex(tokens) FROM prompts"),
                 std::string("1 22 02010000FFFFFFFF"));
        QCOMPARE(one("SELECT request || ' ' || rows FROM step_requests WHERE step = 7"),
                 std::string("1 1"));
        QCOMPARE(one("SELECT layer || ' ' || expert || ' ' || resident_ns || ' ' || uses "
                     "FROM evictions"),
                 std::string("2 6 5000000 4"));
        QCOMPARE(one("SELECT source || ' ' || issued || ' ' || useful || ' ' || cancelled "
                     "FROM prefetches"),
                 std::string("next_router 5 2 3"));
    }
    void filesOfTheFirstSchemaAreRead() {
        const fs::path path = file("first.colibri-session");
        QVERIFY(SessionWriter::create(path, {{"schema", "1"}, {"model", "old"}}).ok());
        sqlite3* handle = nullptr;
        QCOMPARE(sqlite3_open(path.c_str(), &handle), SQLITE_OK);
        for (const char* sql :
             {"DROP TABLE threads", "DROP TABLE prompts", "DROP TABLE steps",
              "DROP TABLE step_requests", "DROP TABLE evictions", "DROP TABLE prefetches",
              "DROP TABLE totals", "DROP TABLE histograms", "ALTER TABLE tokens DROP COLUMN step",
              "ALTER TABLE loads DROP COLUMN step", "ALTER TABLE loads DROP COLUMN thread",
              "ALTER TABLE loads DROP COLUMN late", "ALTER TABLE loads DROP COLUMN link_ns",
              "ALTER TABLE layer_steps DROP COLUMN step", "ALTER TABLE requests DROP COLUMN joined",
              "DELETE FROM meta WHERE key IN ('requests', 'tokens', 'reads', 'lookups', 'hits', "
              "'duration')",
              "INSERT INTO tokens VALUES(1, 1, 0, 5, 1, 0, 0, 4, 2, 0, 0)"})
            QCOMPARE(sqlite3_exec(handle, sql, nullptr, nullptr, nullptr), SQLITE_OK);
        sqlite3_close(handle);
        const QByteArray before = bytesOf(path);
        const auto summary = readSessionSummary(path);
        QVERIFY2(summary.ok(), summary.status().text().c_str());
        QCOMPARE(summary->tokens, 1);
        QVERIFY(readSessionDetails(path).ok());
        QCOMPARE(bytesOf(path), before);  // never changed
    }
};

QTEST_GUILESS_MAIN(TestSessionRows)
#include "test_session_rows.moc"
