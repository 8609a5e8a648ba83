// SPDX-License-Identifier: GPL-3.0-or-later
// Interrupted conversions: cancelled, killed, disk full. They leave nothing, or enough to resume
// and to write exactly the same bytes.
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <QTemporaryDir>
#include <QTest>
#include <csignal>
#include <set>

#include "engine/convert/converter.h"
#include "engine/convert/open_source.h"
#include "engine/convert/pipeline/journal.h"
#include "tests/engine/convert/checkpoint_maker.h"

using namespace colibri;
using namespace colibri::test;
namespace fs = std::filesystem;

namespace {
constexpr int kWritesSeen = 400;  // more than any conversion here makes
}

// ThreadSanitizer does not support threads in a forked process.
#ifdef __SANITIZE_THREAD__
#define SKIP_UNDER_TSAN QSKIP("a forked process with threads of its own")
#else
#define SKIP_UNDER_TSAN
#endif

class TestInterrupted : public QObject {
    Q_OBJECT

    QTemporaryDir m_dir;
    int m_number = 0;
    fs::path m_source;
    std::map<std::string, std::string> m_expected;
    int m_writes = 0;

    fs::path fresh() { return fs::path(m_dir.path().toStdString()) / std::to_string(m_number++); }
    static fs::path partialOf(const fs::path& target) { return target.string() + ".partial"; }

    Result<ContainerInfo> run(const fs::path& target, const DiskHooks& hooks = {},
                              const CancelFlag* cancel = nullptr,
                              std::optional<DType> dtype = DType::Q8_0) {
        return convertModel({m_source, target, dtype, "tiny"}, {}, cancel, hooks);
    }

    // Cancels at this write, counted from 1.
    Result<ContainerInfo> runUntil(int write, const fs::path& target) {
        CancelFlag cancel{false};
        DiskHooks hooks;
        hooks.beforeWrite = [&](const fs::path&, int64_t) {
            if (--write == 0) cancel = true;
            return 0;
        };
        return run(target, hooks, &cancel);
    }

private slots:
    void init() {
        TinyOptions o;
        o.layers = 3;
        o.hidden = 128;
        o.expertSize = 96;
        m_source = fresh();
        writeCheckpoint(m_source, tinyConfig(o), tinyTensors(o), 2);
        const fs::path target = fresh();
        DiskHooks count;
        m_writes = 0;
        count.beforeWrite = [this](const fs::path&, int64_t) {
            ++m_writes;
            return 0;
        };
        Result<ContainerInfo> info = run(target, count);
        QVERIFY2(info.ok(), info.status().text().c_str());
        QVERIFY(m_writes > 30 && m_writes < kWritesSeen);
        m_expected = folderContent(target);
        QVERIFY(!fs::exists(partialOf(target)));
        QVERIFY(!m_expected.count("convert.journal"));
    }

    void killedAndResumed() {
        SKIP_UNDER_TSAN;
        for (int point = 1; point <= m_writes; point += 7) {
            const fs::path target = fresh();
            const pid_t child = fork();
            if (child == 0) {
                int left = point;
                DiskHooks hooks;
                hooks.beforeWrite = [&](const fs::path&, int64_t) {
                    if (--left == 0) ::kill(::getpid(), SIGKILL);
                    return 0;
                };
                (void)run(target, hooks);
                _exit(0);
            }
            int status = 0;
            QCOMPARE(::waitpid(child, &status, 0), child);
            QVERIFY(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
            QVERIFY(!fs::exists(target));
            QVERIFY(fs::exists(partialOf(target)));
            int writes = 0;
            DiskHooks count;
            count.beforeWrite = [&](const fs::path&, int64_t) {
                ++writes;
                return 0;
            };
            Result<ContainerInfo> info = run(target, count);
            QVERIFY2(info.ok(), info.status().text().c_str());
            QVERIFY(folderContent(target) == m_expected);
            QVERIFY(!fs::exists(partialOf(target)));
            // After the first complete layer less work is left.
            if (point > m_writes * 3 / 4) QVERIFY(writes < m_writes / 2);
        }
    }

    void cancelledAndResumed() {
        for (int point = 1; point <= m_writes; point += 5) {
            const fs::path target = fresh();
            Result<ContainerInfo> stopped = runUntil(point, target);
            if (stopped.ok()) continue;  // there is no check after the last matrix
            QCOMPARE(int(stopped.status().code()), int(Code::Cancelled));
            QVERIFY(!fs::exists(target) && fs::exists(partialOf(target)));
            int writes = 0;
            DiskHooks count;
            count.beforeWrite = [&](const fs::path&, int64_t) {
                ++writes;
                return 0;
            };
            Result<ContainerInfo> info = run(target, count);
            QVERIFY2(info.ok(), info.status().text().c_str());
            QVERIFY(folderContent(target) == m_expected);
            if (point > 20) QVERIFY(writes < m_writes);  // dense tensors are resumed too
        }
    }

    void otherOptionsOrSourceStartOver() {
        const fs::path target = fresh();
        QCOMPARE(int(runUntil(m_writes / 2, target).status().code()), int(Code::Cancelled));
        // One value of the source changes.
        TinyOptions o;
        o.layers = 3;
        o.hidden = 128;
        o.expertSize = 96;
        Tensors tensors = tinyTensors(o);
        tensors["model.embed_tokens.weight"].values[5] += 1;
        writeCheckpoint(m_source, tinyConfig(o), tensors, 2);
        Result<ContainerInfo> info = run(target);
        QVERIFY2(info.ok(), info.status().text().c_str());
        const fs::path reference = fresh();
        QVERIFY(run(reference).ok());
        QVERIFY(folderContent(target) == folderContent(reference));
        QVERIFY(folderContent(target) != m_expected);

        const fs::path other = fresh();
        QVERIFY(!runUntil(m_writes / 2, other).ok());
        QVERIFY(run(other, {}, nullptr, DType::F16).ok());
        const fs::path half = fresh();
        QVERIFY(run(half, {}, nullptr, DType::F16).ok());
        QVERIFY(folderContent(other) == folderContent(half));
    }

    void aTornJournalIsNoHarm() {
        const fs::path target = fresh();
        QVERIFY(!runUntil(m_writes * 3 / 4, target).ok());
        const std::string journal = readFile(partialOf(target) / "convert.journal");
        const auto kept = folderContent(partialOf(target));
        for (size_t length = 0; length <= journal.size(); length += 61) {
            fs::remove_all(target);
            fs::create_directories(partialOf(target) / "experts");
            for (auto& [name, content] : kept) writeFile(partialOf(target) / name, content);
            std::string torn = journal.substr(0, length);
            if (length > 100) torn[length / 2] ^= 1;
            writeFile(partialOf(target) / "convert.journal", torn);
            Result<ContainerInfo> info = run(target);
            QVERIFY2(info.ok(), info.status().text().c_str());
            QVERIFY(folderContent(target) == m_expected);
        }
    }

    void aFullDiskLeavesNothing() {
        for (int point = 1; point <= m_writes; point += 9) {
            const fs::path target = fresh();
            int left = point;
            DiskHooks hooks;
            hooks.beforeWrite = [&](const fs::path&, int64_t) { return --left == 0 ? ENOSPC : 0; };
            Result<ContainerInfo> info = run(target, hooks);
            QCOMPARE(int(info.status().code()), int(Code::NoSpace));
            QVERIFY(info.status().message().find(partialOf(target).string() + "/") !=
                    std::string::npos);
            QVERIFY(info.status().message().find("still to be written") != std::string::npos);
            QVERIFY(!fs::exists(target) && !fs::exists(partialOf(target)));
        }
    }

    // The finished part of an earlier run is kept until there is space.
    void aDiskThatFillsWhileResumedKeepsWhatWasDone() {
        const fs::path target = fresh();
        QCOMPARE(int(runUntil(m_writes * 3 / 4, target).status().code()), int(Code::Cancelled));
        int left = 3;
        DiskHooks hooks;
        hooks.beforeWrite = [&](const fs::path&, int64_t) { return --left == 0 ? ENOSPC : 0; };
        QCOMPARE(int(run(target, hooks).status().code()), int(Code::NoSpace));
        QVERIFY(fs::exists(partialOf(target)));
        left = 0;
        hooks.beforeWrite = [&](const fs::path&, int64_t) {
            ++left;
            return 0;
        };
        QVERIFY(run(target, hooks).ok());
        QVERIFY(left < m_writes / 2);
        QVERIFY(folderContent(target) == m_expected);
    }

    void tooLittleSpaceIsSeenBefore() {
        const fs::path target = fresh();
        int writes = 0;
        DiskHooks hooks;
        hooks.freeBytes = [](const fs::path&) { return int64_t(1) << 16; };
        hooks.beforeWrite = [&](const fs::path&, int64_t) {
            ++writes;
            return 0;
        };
        Result<ContainerInfo> info = run(target, hooks);
        QCOMPARE(int(info.status().code()), int(Code::NoSpace));
        QVERIFY(info.status().message().find("64.0 KiB") != std::string::npos);
        QVERIFY(info.status().message().find("still to be written") == std::string::npos);
        QCOMPARE(writes, 0);
        QVERIFY(!fs::exists(target) && !fs::exists(partialOf(target)));
    }

    // The required space is close to the size of the model.
    void aSmallModelNeedsLittleSpace() {
        const fs::path target = fresh();
        QVERIFY(run(target, {}).ok());
        int64_t taken = 0, files = 0;
        for (const auto& entry : fs::recursive_directory_iterator(target)) {
            if (entry.is_regular_file()) taken += int64_t(entry.file_size());
            ++files;
        }
        DiskHooks hooks;
        hooks.freeBytes = [&](const fs::path&) { return taken + (files + 10) * 4096; };
        QVERIFY2(run(fresh(), hooks).ok(), "it fits");
        hooks.freeBytes = [&](const fs::path&) { return taken; };
        QCOMPARE(int(run(fresh(), hooks).status().code()), int(Code::NoSpace));
    }

    // The system call itself fails, in a separate process.
    void aFileSizeLimit() {
        SKIP_UNDER_TSAN;
        const fs::path target = fresh();
        const pid_t child = fork();
        if (child == 0) {
            ::signal(SIGXFSZ, SIG_IGN);
            rlimit limit{65536, 65536};
            ::setrlimit(RLIMIT_FSIZE, &limit);
            Result<ContainerInfo> info = run(target);
            _exit(info.ok() ? 1 : info.status().code() == Code::NoSpace ? 42 : 2);
        }
        int status = 0;
        ::waitpid(child, &status, 0);
        QVERIFY(WIFEXITED(status));
        QCOMPARE(WEXITSTATUS(status), 42);
        QVERIFY(!fs::exists(target) && !fs::exists(partialOf(target)));
    }

    void targetsThatAreNotFree() {
        const fs::path taken = fresh();
        fs::create_directories(taken);
        QCOMPARE(int(run(taken).status().code()), int(Code::InvalidArgument));
        QCOMPARE(int(run(fresh() / "no" / "parent").status().code()), int(Code::InvalidArgument));
        // A folder that only resembles a partial conversion is not touched.
        const fs::path target = fresh();
        fs::create_directories(partialOf(target));
        writeFile(partialOf(target) / "diary.txt", "mine");
        QCOMPARE(int(run(target).status().code()), int(Code::InvalidArgument));
        QCOMPARE(readFile(partialOf(target) / "diary.txt"), std::string("mine"));
        // Two conversions to one target at the same time.
        const fs::path both = fresh();
        fs::create_directories(partialOf(both));
        Result<Journal> held = Journal::open(partialOf(both));
        QVERIFY(held.ok());
        QCOMPARE(int(run(both).status().code()), int(Code::Busy));
        QVERIFY(fs::exists(partialOf(both)));
    }

    void progressCoversTheWhole() {
        const fs::path target = fresh();
        uint64_t last = 0, total = 0;
        bool ordered = true;
        std::set<std::string> stages;
        auto progress = [&](const Progress& p) {
            ordered &= p.done >= last;
            last = p.done;
            total = std::max(total, p.total);
            stages.insert(p.stage);
        };
        Result<ContainerInfo> info =
            convertModel({m_source, target, DType::F32, "tiny"}, progress, nullptr);
        QVERIFY(info.ok());
        QVERIFY(ordered);
        QCOMPARE(last, total);
        QCOMPARE(int64_t(total), info->denseBytes + info->expertBytes);
        QVERIFY(stages.count("Experts, layer 3 of 3"));
    }
};

QTEST_GUILESS_MAIN(TestInterrupted)
#include "test_interrupted.moc"
