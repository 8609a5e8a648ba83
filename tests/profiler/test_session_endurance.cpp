// SPDX-License-Identifier: GPL-3.0-or-later
// Session files of killed processes, and of very long sessions.
#include <QElapsedTimer>
#include <QTemporaryDir>
#include <QTest>

#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>
#include <atomic>
#include <csignal>
#include <filesystem>
#include <random>

#include "profiler/record/recorder.h"
#include "profiler/session/session_db.h"
#include "profiler/session/session_reader.h"
#include "profiler/session/session_salvage.h"
#include "profiler/session/session_writer.h"

using namespace colibri;
namespace fs = std::filesystem;

namespace {

constexpr int kKills = 200;
constexpr uint64_t kMostLostNs = 1'000'000'000;
constexpr size_t kMostTokens = 4096;
constexpr unsigned kTokenUs = 2000;

// Shared with the child that is killed.
struct SharedTokens {
    std::atomic<uint32_t> written;
    uint64_t timeNs[kMostTokens];  // when each token was written
};

RecorderSource emptySource(Telemetry* telemetry) {
    RecorderSource source;
    source.telemetry = telemetry;
    source.stats = [] { return StoreStats(); };
    source.residency = [](std::vector<Residency>& out) { out.assign(8, Residency::OnDisk); };
    source.moeLayers = {0};
    source.experts = 8;
    source.meta = {{"model", "tiny"}};
    source.knobState = [](KnobId) { return KnobState(); };
    return source;
}

Event tokenEvent(uint32_t index) {
    Event event{};
    event.type = EventType::Token;
    event.token.request = 1;
    event.token.index = index;
    event.token.gapNs = 20'000'000;
    return event;
}

[[noreturn]] void recordUntilKilled(const fs::path& path, SharedTokens& shared) {
    Telemetry telemetry;
    EventRing* const ring = telemetry.addRing("engine");
    auto recorder = Recorder::start(emptySource(&telemetry), {.sessionFile = path});
    if (!recorder.ok()) _exit(1);
    for (uint32_t i = 0; i < kMostTokens; ++i) {
        shared.timeNs[i] = monotonicNs();
        ring->write(tokenEvent(i));
        shared.written = i + 1;
        usleep(kTokenUs);
    }
    _exit(2);
}

}  // namespace

class TestSessionEndurance : public QObject {
    Q_OBJECT
    QTemporaryDir m_dir;
    fs::path file(const std::string& name) const {
        return fs::path(m_dir.path().toStdString()) / name;
    }

private slots:
    void killedAtRandomMoments() {
        auto* const shared =
            static_cast<SharedTokens*>(mmap(nullptr, sizeof(SharedTokens), PROT_READ | PROT_WRITE,
                                            MAP_SHARED | MAP_ANONYMOUS, -1, 0));
        QVERIFY(shared != MAP_FAILED);
        std::mt19937_64 random(1);
        uint64_t worstNs = 0;
        for (int i = 0; i < kKills; ++i) {
            const fs::path path = file("killed" + std::to_string(i));
            shared->written = 0;
            const pid_t child = fork();
            if (child == 0) recordUntilKilled(path, *shared);
            while (shared->written == 0) usleep(100);
            usleep(useconds_t(random() % 1'500'000));
            kill(child, SIGKILL);
            const uint64_t killedNs = monotonicNs();
            int status = 0;
            waitpid(child, &status, 0);
            QVERIFY(WIFSIGNALED(status));
            const auto damage = checkSession(path);
            QVERIFY2(damage.ok() && damage->empty(), damage.status().text().c_str());
            const auto summary = readSessionSummary(path);
            QVERIFY2(summary.ok(), summary.status().text().c_str());
            const auto kept = size_t(summary->tokens);
            QVERIFY(kept <= shared->written);
            if (kept < shared->written)
                worstNs = std::max(worstNs, killedNs - shared->timeNs[kept]);
            QVERIFY(recoverSession(path).ok());
            QCOMPARE(readSessionSummary(path)->tokens, int64_t(kept));
        }
        qInfo("%d kills: at most %.0f ms lost", kKills, double(worstNs) * 1e-6);
        QVERIFY(worstNs <= kMostLostNs);
        munmap(shared, sizeof(SharedTokens));
    }

    // Ten hours at 50 tokens per second, with the default limit.
    void tenHoursFitTheLimitAndOpen() {
        constexpr int kTokens = 10 * 3600 * 50, kLayers = 8;
        const fs::path path = file("long");
        const int64_t most = RecorderOptions().mostSessionBytes;
        {
            auto writer = SessionWriter::create(path, {{"model", "tiny"}}, most);
            QVERIFY(writer.ok());
            std::mt19937_64 random(1);
            for (int i = 0; i < kTokens; ++i) {
                const double t = i * 0.02;
                for (int layer = 0; layer < kLayers; ++layer) {
                    Event event{};
                    event.type = EventType::LayerStep;
                    event.layerStep.layer = uint16_t(layer);
                    event.layerStep.firstRow = 1;
                    event.layerStep.rows = 1;
                    event.layerStep.count = 8;
                    event.layerStep.firstBits = 0xff;
                    for (uint16_t& expert : event.layerStep.experts) expert = random() % 64;
                    QVERIFY((*writer)->write(event, t).ok());
                }
                Event read{};
                read.type = EventType::ExpertRead;
                read.expertRead.bytes = 1 << 20;
                read.expertRead.needNs = 5'000'000;
                QVERIFY((*writer)->write(read, t).ok());
                QVERIFY((*writer)->write(tokenEvent(uint32_t(i)), t).ok());
                if (i % 20 == 19) QVERIFY((*writer)->commit().ok());
            }
            QVERIFY((*writer)->finish().ok());
        }
        QElapsedTimer timer;
        timer.start();
        const auto session = SessionDb::open(path);
        const auto ms = timer.elapsed();
        QVERIFY2(session.ok(), session.status().text().c_str());
        QCOMPARE(session->summary().tokens, int64_t(kTokens));
        QCOMPARE(session->summary().loads, int64_t(kTokens));
        QVERIFY(session->summary().bytes <= most);
        qInfo("%d tokens: %.0f MiB, opened in %lld ms", kTokens,
              double(session->summary().bytes) / (1 << 20), (long long)ms);
    }
};

QTEST_GUILESS_MAIN(TestSessionEndurance)
#include "test_session_endurance.moc"
