// SPDX-License-Identifier: GPL-3.0-or-later
#include <QFile>
#include <QProcess>
#include <QRegularExpression>
#include <QTemporaryDir>
#include <QTest>

#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>
#include <atomic>
#include <cmath>
#include <csignal>
#include <thread>

#include "profiler/record/recorder.h"
#include "profiler/session/session_details.h"
#include "profiler/session/session_files.h"
#include "profiler/session/session_reader.h"
#include "profiler/session/session_writer.h"
#include "profiler/session/sqlite.h"

using namespace colibri;
namespace fs = std::filesystem;

namespace {

RecorderSource emptySource(Telemetry* telemetry) {
    RecorderSource source;
    source.telemetry = telemetry;
    source.stats = [] { return StoreStats(); };
    source.residency = [](std::vector<Residency>& out) { out.assign(8, Residency::OnDisk); };
    source.moeLayers = {0};
    source.experts = 8;
    source.meta = {{"model", "tiny"}};
    source.knobState = [](KnobId id) {
        return id == KnobId::ExpertCacheSize ? KnobState{8, 8, ""} : KnobState();
    };
    return source;
}

Event layerStep(bool firstRow, uint16_t first, uint16_t hits) {
    Event event{};
    event.type = EventType::LayerStep;
    event.layerStep.firstRow = firstRow;
    event.layerStep.rows = 2;
    event.layerStep.count = 2;
    event.layerStep.firstBits = first;
    event.layerStep.hitBits = hits;
    return event;
}

Event token(uint32_t index) {
    Event event{};
    event.type = EventType::Token;
    event.token.request = 1;
    event.token.index = index;
    event.token.gapNs = 5'000'000;
    return event;
}

// Writes tokens until the file reaches its size limit. Returns the status of flush.
Status fillTheDisk(EventRing* ring, Recorder& recorder) {
    rlimit before{};
    getrlimit(RLIMIT_FSIZE, &before);
    std::signal(SIGXFSZ, SIG_IGN);
    const rlimit tight{160 * 1024, before.rlim_max};
    setrlimit(RLIMIT_FSIZE, &tight);
    Status status;
    for (int round = 0; round < 200 && status.ok(); ++round) {
        for (uint32_t i = 0; i < 1000; ++i) ring->write(token(i));
        status = recorder.flush();
    }
    setrlimit(RLIMIT_FSIZE, &before);
    return status;
}

// Whether a file is in WAL mode, according to its header.
bool isInWalMode(const fs::path& path) {
    QFile file(QString::fromStdString(path.string()));
    if (!file.open(QIODevice::ReadOnly)) return false;
    const QByteArray header = file.read(20);
    return header.size() == 20 && (header[18] == 2 || header[19] == 2);
}

struct Read {
    bool ended = false, recovered = false;
    int tokens = -1;  // -1: reading failed
};

// Copies a session into a read-only folder and reads it there, as a user other than root.
Read readWhereNothingCanBeWritten(const std::vector<fs::path>& files, bool recover = false) {
    QTemporaryDir dir;
    const fs::path folder = dir.path().toStdString();
    for (const fs::path& file : files) {
        fs::copy_file(file, folder / file.filename());
        fs::permissions(folder / file.filename(), fs::perms(0444));
    }
    fs::permissions(folder, fs::perms(0555));
    int pipes[2];
    if (pipe(pipes) != 0) return {};
    const pid_t child = fork();
    if (child == 0) {
        if (getuid() == 0 && (setgid(65534) != 0 || setuid(65534) != 0)) _exit(1);
        Read read;
        if (recover) read.recovered = recoverSession(folder / files[0].filename()).ok();
        const auto summary = readSessionSummary(folder / files[0].filename());
        if (!summary) fprintf(stderr, "%s\n", summary.status().text().c_str());
        if (summary) read.tokens = int(summary->tokens);
        if (summary) read.ended = summary->endedCleanly;
        _exit(write(pipes[1], &read, sizeof read) == ssize_t(sizeof read) ? 0 : 1);
    }
    Read read;
    waitpid(child, nullptr, 0);
    close(pipes[1]);
    if (::read(pipes[0], &read, sizeof read) != ssize_t(sizeof read)) read = {};
    close(pipes[0]);
    fs::permissions(folder, fs::perms(0755));
    return read;
}

}  // namespace

class TestSession : public QObject {
    Q_OBJECT
    QTemporaryDir m_dir;
    fs::path file(const char* name) { return fs::path(m_dir.path().toStdString()) / name; }

private slots:
    void everyEventIsInTheFile() {
        Telemetry telemetry;
        EventRing* ring = telemetry.addRing("engine");
        const fs::path path = file("whole.colibri-session");
        {
            auto recorder = Recorder::start(emptySource(&telemetry), {.sessionFile = path});
            QVERIFY2(recorder.ok(), recorder.status().text().c_str());
            Event request{};
            request.request.request = 1;
            request.type = EventType::RequestArrived;
            ring->write(request);
            request.type = EventType::RequestAdmitted;
            ring->write(request);
            for (uint32_t i = 0; i < 100; ++i) ring->write(token(i));
            for (int i = 0; i < 10; ++i) {
                ring->write(layerStep(true, 0b11, 0b01));
                ring->write(layerStep(false, 0b10, 0b11));
            }
            (*recorder)->note("here");
            QVERIFY((*recorder)->flush().ok());
            const auto snapshot = (*recorder)->snapshot();
            QCOMPARE(snapshot->figures.hitRate, 200.0 / 3);
            QCOMPARE(snapshot->sessionFile, path.string());
            QVERIFY(snapshot->sessionBytes > 0);
        }
        const auto summary = readSessionSummary(path);
        QVERIFY2(summary.ok(), summary.status().text().c_str());
        QVERIFY(summary->endedCleanly);
        QCOMPARE(summary->tokens, 100);
        QCOMPARE(summary->requests, 1);
        // Details: requests by stop reason, percentiles of all gaps, notes.
        const auto details = readSessionDetails(path);
        QVERIFY2(details.ok(), details.status().text().c_str());
        QCOMPARE(details->stops.size(), size_t(1));
        QCOMPARE(details->stops.at(""), 1);  // not ended
        QCOMPARE(details->itl.count(), uint64_t(summary->tokens));
        QCOMPARE(details->marks.size(), size_t(1));
        QCOMPARE(details->marks[0].label, std::string("here"));
        QVERIFY(!readSessionDetails(file("none.colibri-session")).ok());
        // The hit rate in the window is the count in the file.
        QCOMPARE(summary->lookups, 30);
        QCOMPARE(summary->hits, 20);
        QCOMPARE(summary->meta.at("model"), "tiny");
    }
    void preemptionsAndReuseAreInTheFile() {
        const fs::path path = file("preempted.colibri-session");
        {
            auto writer = SessionWriter::create(path, {});
            QVERIFY(writer.ok());
            Event request{};
            request.request = {.request = 1, .promptTokens = 90, .cachedTokens = 32};
            for (const EventType type : {EventType::RequestArrived, EventType::RequestAdmitted,
                                         EventType::RequestPreempted, EventType::RequestResumed}) {
                request.type = type;
                QVERIFY((*writer)->write(request, 1).ok());
            }
            Event late = token(3);
            late.token.preemptedNs = 4'000'000;
            late.token.memoryStallNs = 2'000'000;
            QVERIFY((*writer)->write(late, 2).ok());
            request.type = EventType::RequestDone;
            request.request.cachedTokens = 64;  // another request completed a block meanwhile
            request.request.preemptions = 1;
            request.request.recomputed = 40;
            request.request.preemptedNs = 4'000'000;
            QVERIFY((*writer)->write(request, 3).ok());
        }
        sqlite3* handle = nullptr;
        QCOMPARE(sqlite3_open(path.c_str(), &handle), SQLITE_OK);
        SqliteDb db(handle);
        SqliteStatement query;
        QVERIFY(query
                    .prepare(handle,
                             "SELECT admitted, cached_tokens, preemptions, recomputed_tokens, "
                             "r.preempted_ns, t.preempted_ns, t.memory_stall_ns "
                             "FROM requests r "
                             "JOIN tokens t ON t.request = r.id",
                             "")
                    .ok());
        QVERIFY(*query.step());
        QCOMPARE(query.real(0), 1.0);
        const int64_t want[] = {64, 1, 40, 4'000'000, 4'000'000, 2'000'000};
        for (int i = 0; i < 6; ++i) QCOMPARE(query.integer(i + 1), want[i]);
    }
    // Six steps of a slider are one change: one row with the final value.
    void aDragIsOneRowOfKnobs() {
        Telemetry telemetry;
        EventRing* ring = telemetry.addRing("engine");
        const fs::path path = file("drag.colibri-session");
        const auto set = [&](int64_t value) {
            Event event{};
            event.type = EventType::KnobChanged;
            event.knob.knob = uint8_t(KnobId::ExpertCacheSize);
            event.knob.requested = event.knob.effective = value;
            ring->write(event);
        };
        {
            auto recorder = Recorder::start(emptySource(&telemetry), {.sessionFile = path});
            QVERIFY(recorder.ok());
            set(8);
            QVERIFY((*recorder)->flush().ok());
            (*recorder)->hold(KnobId::ExpertCacheSize);
            for (int64_t value = 9; value <= 14; ++value) {
                set(value);
                QVERIFY((*recorder)->flush().ok());
            }
            (*recorder)->release(KnobId::ExpertCacheSize, 14);
            QVERIFY((*recorder)->flush().ok());
            set(16);
            (*recorder)->hold(KnobId::ExpertCacheSize);
            set(18);  // the session ends during a drag
        }
        sqlite3* db = nullptr;
        QCOMPARE(sqlite3_open(path.c_str(), &db), SQLITE_OK);
        std::vector<std::string> values;
        sqlite3_exec(
            db, "SELECT requested FROM knobs WHERE name='expert_cache_size' ORDER BY t",
            [](void* out, int, char** row, char**) {
                static_cast<std::vector<std::string>*>(out)->push_back(row[0]);
                return 0;
            },
            &values, nullptr);
        sqlite3_close(db);
        values.erase(std::unique(values.begin(), values.end()), values.end());
        if (values.size() == 4)
            // 16 is an intermediate value that may be drained in time.
            values.erase(values.begin() + 2);
        QCOMPARE(values, (std::vector<std::string>{"8", "14", "18"}));
    }
    void sessionsAreNeverOverwritten() {
        const fs::path path = file("twice.colibri-session");
        QVERIFY(SessionWriter::create(path, {}).ok());
        QCOMPARE(SessionWriter::create(path, {}).status().code(), Code::InvalidArgument);
        QVERIFY(readSessionSummary(path).ok());
    }
    // SQLite has special names for databases that are not files.
    void anySessionNameIsAFile() {
        const QString before = QDir::currentPath();
        QVERIFY(QDir::setCurrent(m_dir.path()));
        std::vector<std::string> faults;
        for (const char* name :
             {":memory:", "file:x?mode=memory", "file:y", "file::memory:", "-s", "a?b#c%41"}) {
            const auto writer = SessionWriter::create(name, {{"model", "tiny"}});
            if (!writer || !fs::exists(name)) faults.push_back(name);
        }
        for (const char* name : {":memory:", "file:x?mode=memory", "file:y"}) {
            const auto summary = readSessionSummary(name);
            if (!summary || summary->meta.at("model") != "tiny") faults.push_back(name);
        }
        QVERIFY(QDir::setCurrent(before));
        QVERIFY2(faults.empty(), faults.empty() ? "" : faults[0].c_str());
    }

    void unwritableFoldersAreNamed() {
        const auto writer = SessionWriter::create("/proc/none/x.colibri-session", {});
        QVERIFY(!writer.ok());
        QVERIFY(writer.status().text().find("/proc/none") != std::string::npos);
    }
    void aKilledProcessLosesAtMostASecond() {
        const fs::path path = file("killed.colibri-session");
        const pid_t child = fork();
        if (child == 0) {
            Telemetry telemetry;
            EventRing* ring = telemetry.addRing("engine");
            auto recorder = Recorder::start(emptySource(&telemetry), {.sessionFile = path});
            if (!recorder.ok()) _exit(1);
            for (uint32_t i = 0;; ++i) {  // the token's index gives the time, 5 ms each
                ring->write(token(i));
                usleep(5000);
            }
        }
        QTest::qWait(2500);
        kill(child, SIGKILL);
        const uint64_t killed = monotonicNs();
        waitpid(child, nullptr, 0);
        const auto summary = readSessionSummary(path);
        QVERIFY2(summary.ok(), summary.status().text().c_str());
        QVERIFY(!summary->endedCleanly);
        QVERIFY(killed > 0 && summary->tokens > 100);
        QVERIFY2(summary->lastTime > 1.0, qPrintable(QString::number(summary->lastTime)));
        QVERIFY(recoverSession(path).ok());
        const auto recovered = readSessionSummary(path);
        QVERIFY(recovered->endedCleanly);
        QCOMPARE(recovered->tokens, summary->tokens);
        QVERIFY(!fs::exists(path.string() + "-wal") || fs::file_size(path.string() + "-wal") == 0);
    }
    void aSessionThatIsBeingRecordedIsNotRecovered() {
        const fs::path path = file("live.colibri-session");
        Telemetry telemetry;
        auto recorder = Recorder::start(emptySource(&telemetry), {.sessionFile = path});
        QVERIFY(recorder.ok());
        QCOMPARE(recoverSession(path).code(), Code::Busy);
        QVERIFY(!readSessionSummary(path)->endedCleanly);
        QVERIFY((*recorder)->finish().ok());
        QVERIFY(readSessionSummary(path)->meta.at("ended") != "recovered");
    }
    void snapshotsCarryTheStatesOfTheKnobs() {
        Telemetry telemetry;
        RecorderSource source = emptySource(&telemetry);
        std::atomic<int> reads{0};
        std::atomic<int64_t> effective{8};
        source.knobState = [&](KnobId id) {
            reads += id == KnobId::ExpertCacheSize;
            return KnobState{12, effective, "memory for 8"};
        };
        const auto recorder = Recorder::start(source, {});
        QVERIFY(recorder.ok());
        const KnobState first = (*recorder)->snapshot()->knob(KnobId::ExpertCacheSize);
        QCOMPARE(first.requested, int64_t(12));
        QCOMPARE(first.effective, int64_t(8));
        QCOMPARE(first.reason, std::string("memory for 8"));
        effective = 9;
        QTRY_COMPARE((*recorder)->snapshot()->knob(KnobId::ExpertCacheSize).effective, int64_t(9));
        QVERIFY((*recorder)->snapshot()->knobsAt > 0);
        // Even with frequent snapshots, states are read at most four times a second.
        for (int i = 0; i < 50; ++i) (void)(*recorder)->flush();
        QVERIFY(reads <= 2 + int((*recorder)->snapshot()->now * 4));
    }
    void aSessionAndItsCompanionsGoTogether() {
        QTemporaryDir folder;
        const fs::path path = folder.filePath("a.colibri").toStdString();
        QCOMPARE(sessionBytes(path), int64_t(0));
        const std::vector<fs::path> files = sessionFiles(path);
        QCOMPARE(files.size(), size_t(4));
        QVERIFY(files[0] == path && files[1] == sessionWal(path));
        const fs::path other = path.string() + ".lock";
        for (size_t i = 0; i < files.size(); ++i) {
            QFile file(QString::fromStdString(files[i].string()));
            QVERIFY(file.open(QIODevice::WriteOnly));
            file.write(QByteArray(int(i) + 10, 'x'));
        }
        QFile lock(QString::fromStdString(other.string()));
        QVERIFY(lock.open(QIODevice::WriteOnly));
        QCOMPARE(sessionBytes(path), int64_t(21));  // the file and its write-ahead log
        removeSession(path);
        for (const fs::path& file : files) QVERIFY(!fs::exists(file));
        QVERIFY(fs::exists(other));
    }
    void aFullDiskStopsTheFileNotThePlots() {
        Telemetry telemetry;
        EventRing* ring = telemetry.addRing("engine");
        const fs::path path = file("full.colibri-session");
        auto recorder = Recorder::start(emptySource(&telemetry), {.sessionFile = path});
        QVERIFY(recorder.ok());
        const Status status = fillTheDisk(ring, **recorder);
        QVERIFY(!status.ok());
        QVERIFY(status.text().find("full.colibri-session") != std::string::npos);
        for (uint32_t i = 0; i < 10; ++i) ring->write(token(i));
        (void)(*recorder)->flush();
        const auto snapshot = (*recorder)->snapshot();
        QVERIFY(!snapshot->sessionError.empty());
        QVERIFY(snapshot->sessionFile.empty());
        QVERIFY(!std::isnan(snapshot->figures.itlP50Ms));
    }
    // The part recorded before remains readable, but the session is not marked as complete.
    void aSessionThatMetAFullDiskIsNotMarkedAsEnded() {
        Telemetry telemetry;
        EventRing* ring = telemetry.addRing("engine");
        const fs::path path = file("torn.colibri-session");
        auto recorder = Recorder::start(emptySource(&telemetry), {.sessionFile = path});
        QVERIFY(recorder.ok());
        QVERIFY(!fillTheDisk(ring, **recorder).ok());
        const Status status = (*recorder)->finish();
        QVERIFY(!status.ok());
        QVERIFY(status.text().find("torn.colibri-session") != std::string::npos);
        QVERIFY(!std::isnan((*recorder)->snapshot()->figures.itlP50Ms));
        recorder->reset();
        const auto summary = readSessionSummary(path);
        QVERIFY2(summary.ok(), summary.status().text().c_str());
        QVERIFY(!summary->endedCleanly);
    }
    void aFinishedSessionIsOneOrdinaryFile() {
        const fs::path path = file("ordinary.colibri-session");
        {
            Telemetry telemetry;
            EventRing* ring = telemetry.addRing("engine");
            auto recorder = Recorder::start(emptySource(&telemetry), {.sessionFile = path});
            QVERIFY(recorder.ok());
            ring->write(token(0));
            QVERIFY((*recorder)->finish().ok());
        }
        QVERIFY(!isInWalMode(path));
        QVERIFY(!fs::exists(path.string() + "-wal") && !fs::exists(path.string() + "-shm"));
        const auto summary = readWhereNothingCanBeWritten({path});
        QVERIFY(summary.ended && summary.tokens == 1);
    }
    // As written by earlier versions.
    void aFinishedSessionInWalModeOpensInAReadOnlyFolder() {
        const fs::path path = file("wal.colibri-session");
        QVERIFY(SessionWriter::create(path, {{"model", "tiny"}}).ok());
        sqlite3* handle = nullptr;
        QCOMPARE(sqlite3_open(path.c_str(), &handle), SQLITE_OK);
        QCOMPARE(sqlite3_exec(handle, "PRAGMA journal_mode=WAL", nullptr, nullptr, nullptr),
                 SQLITE_OK);
        sqlite3_close(handle);
        QVERIFY(isInWalMode(path));
        QVERIFY(readWhereNothingCanBeWritten({path}).ended);
    }
    void aKilledSessionOpensInAReadOnlyFolder() {
        const fs::path path = file("crashed.colibri-session");
        const pid_t child = fork();
        if (child == 0) {
            Telemetry telemetry;
            EventRing* ring = telemetry.addRing("engine");
            auto recorder = Recorder::start(emptySource(&telemetry), {.sessionFile = path});
            if (!recorder.ok()) _exit(1);
            for (uint32_t i = 0; i < 100; ++i) ring->write(token(i));
            (void)(*recorder)->flush();
            kill(getpid(), SIGKILL);
        }
        waitpid(child, nullptr, 0);
        const auto summary = readWhereNothingCanBeWritten({path, path.string() + "-wal"});
        QVERIFY(!summary.ended);
        QCOMPARE(summary.tokens, 100);
        QVERIFY(!readWhereNothingCanBeWritten({path, path.string() + "-wal"}, true).recovered);
        QVERIFY(recoverSession(path).ok());
        QVERIFY(!isInWalMode(path));
    }
    void brokenFilesAreRefused_data() {
        QTest::addColumn<QByteArray>("content");
        QTest::newRow("empty") << QByteArray();
        QTest::newRow("text") << QByteArray("this is not a database, only a line of text\n");
        QTest::newRow("header only") << QByteArray("SQLite format 3\0", 16);
        QTest::newRow("noise") << QByteArray(8192, '\x5a');
    }
    void brokenFilesAreRefused() {
        QFETCH(QByteArray, content);
        const fs::path path = file("broken.colibri-session");
        QFile out(QString::fromStdString(path.string()));
        QVERIFY(out.open(QIODevice::WriteOnly) && out.write(content) == content.size());
        out.close();
        const auto summary = readSessionSummary(path);
        QVERIFY(!summary.ok());
        QVERIFY(summary.status().code() == Code::BadInput);
        QVERIFY(summary.status().text().find("broken.colibri-session") != std::string::npos);
    }
    void newerSchemasAreNamed() {
        const fs::path path = file("newer.colibri-session");
        QVERIFY(SessionWriter::create(path, {{"schema", "7"}}).ok());
        const auto summary = readSessionSummary(path);
        QVERIFY(summary.status().code() == Code::Unsupported);
        QVERIFY(summary.status().message().find("7") != std::string::npos);
    }
    void theDocumentedQueriesRun() {
        const fs::path path = file("documented.colibri-session");
        QVERIFY(SessionWriter::create(path, {}).ok());
        QFile help(COLIBRI_SOURCE_DIR "/resources/help/session-file.md");
        QVERIFY(help.open(QIODevice::ReadOnly));
        const QString text = QString::fromUtf8(help.readAll());
        sqlite3* handle = nullptr;
        QCOMPARE(sqlite3_open(path.c_str(), &handle), SQLITE_OK);
        SqliteDb db(handle);
        // Every table of the schema is described, and every example is valid SQL.
        SqliteStatement tables;
        QVERIFY(
            tables.prepare(handle, "SELECT name FROM sqlite_master WHERE type='table'", "").ok());
        int described = 0;
        while (*tables.step()) {
            QVERIFY2(text.contains("| `" + QString::fromStdString(tables.text(0)) + "`"),
                     tables.text(0).c_str());
            ++described;
        }
        QCOMPARE(described, 17);
        int examples = 0;
        QRegularExpression block("```sql\n(.*?)```",
                                 QRegularExpression::DotMatchesEverythingOption);
        for (auto it = block.globalMatch(text); it.hasNext(); ++examples) {
            SqliteStatement query;
            const Status status = query.prepare(handle, it.next().captured(1).toStdString(), "");
            QVERIFY2(status.ok(), status.text().c_str());
        }
        QVERIFY(examples >= 4);
    }
};

QTEST_GUILESS_MAIN(TestSession)
#include "test_session.moc"
