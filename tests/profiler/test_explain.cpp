// SPDX-License-Identifier: GPL-3.0-or-later
// Causes and verdicts: a synthetic session for each rule, and its near miss.
#include <QTemporaryDir>
#include <QTest>

#include <cmath>
#include <filesystem>

#include "profiler/explain/verdicts.h"
#include "profiler/session/session_writer.h"

using namespace colibri;
namespace fs = std::filesystem;

namespace {

constexpr TimeRange kAll{0, 1e9};

// One decode step of 10 ms of one request, as a share of it per part; the rest is experts.
struct StepShares {
    double disk = 0, slot = 0, link = 0, memory = 0, prefetch = 0, offCpu = 0, between = 0;
};

// Facts as they are read from a session in which nothing is wrong.
SessionFacts calmFacts() {
    SessionFacts facts;
    facts.causes.tokens = 1000;
    facts.causes.gapNs = 1000 * 10e6;
    facts.causes.ns[size_t(Cause::Experts)] = 0.8 * facts.causes.gapNs;
    facts.causes.ns[size_t(Cause::Attention)] = 0.2 * facts.causes.gapNs;
    facts.requests = 1;
    facts.experts = 64;
    facts.topK = 8;
    facts.moeLayers = 16;
    facts.lookups = 128'000;
    facts.hits = 120'000;
    facts.seconds = 10;
    facts.cores = 4;
    facts.memoryBytesPerSecond = 20e9;
    facts.bytesPerToken = 190e6;  // at 100 tok/s: 19 GB/s, 95 % of the memory rate
    facts.diskBytesPerSecond = 1e9;
    facts.knobs = {{"expert_cache_size", 32},
                   {"compute_threads", 4},
                   {"prefetch_source", 3},
                   {"batch_timeout_ms", 10}};
    return facts;
}

// Moves a share of the time from the experts to another cause.
void give(SessionFacts& facts, Cause cause, double share) {
    facts.causes.ns[size_t(cause)] += share * facts.causes.gapNs;
    facts.causes.ns[size_t(Cause::Experts)] -= share * facts.causes.gapNs;
}

const Verdict* find(const std::vector<Verdict>& verdicts, const char* name) {
    for (const Verdict& verdict : verdicts)
        if (verdict.name == name) return &verdict;
    return nullptr;
}

struct Case {
    const char* name;
    const char* knob;
    void (*make)(SessionFacts&);  // the rule applies
    void (*miss)(SessionFacts&);  // it nearly does
};

using F = SessionFacts;
const Case kCases[] = {
    {"below_the_cliff", "expert_cache_size", [](F& f) { f.knobs["expert_cache_size"] = 7; },
     [](F& f) { f.knobs["expert_cache_size"] = 8; }},
    {"disk_bound", "expert_cache_size",
     [](F& f) {
         give(f, Cause::DiskWait, 0.30);
         f.demandBytes = 2.4e9;
         f.diskBusySeconds = 3;
     },
     [](F& f) { give(f, Cause::DiskWait, 0.20); }},
    {"link_bound", "link_limit", [](F& f) { give(f, Cause::LinkWait, 0.20); },
     [](F& f) { give(f, Cause::LinkWait, 0.12); }},
    {"new_memory", "", [](F& f) { give(f, Cause::MemoryWait, 0.12); },
     [](F& f) { give(f, Cause::MemoryWait, 0.08); }},
    {"late_prefetch", "prefetch_depth", [](F& f) { give(f, Cause::PrefetchWait, 0.12); },
     [](F& f) { give(f, Cause::PrefetchWait, 0.08); }},
    {"oversubscribed", "compute_threads", [](F& f) { give(f, Cause::Descheduled, 0.10); },
     [](F& f) { give(f, Cause::Descheduled, 0.06); }},
    {"prefill_delays_tokens", "prefill_chunk", [](F& f) { give(f, Cause::Prefill, 0.25); },
     [](F& f) { give(f, Cause::Prefill, 0.15); }},
    {"batch_too_small", "max_batch", [](F& f) { give(f, Cause::BatchWait, 0.25); },
     [](F& f) { give(f, Cause::BatchWait, 0.15); }},
    {"memory_bound", "", [](F&) {}, [](F& f) { f.bytesPerToken = 100e6; }},
    {"compute_bound", "compute_threads",
     [](F& f) {
         f.bytesPerToken = 50e6;
         f.knobs["compute_threads"] = 2;
     },
     [](F& f) { f.knobs["compute_threads"] = 2; }},
    {"compute_bound", "",
     [](F& f) {
         f.bytesPerToken = 100e6;  // at 100 tok/s: half the memory rate
         f.kernelBytesPerSecond = 11e9;
     },
     [](F& f) {
         f.bytesPerToken = 0;  // unknown
         f.kernelBytesPerSecond = 11e9;
     }},
    {"prefetch_harmful", "prefetch_source",
     [](F& f) {
         give(f, Cause::DiskWait, 0.30);
         f.prefetch = {1000, 300, 100, 600, 0};
     },
     [](F& f) {
         give(f, Cause::DiskWait, 0.30);
         f.prefetch = {1000, 500, 100, 400, 0};
     }},
    {"prefetch_useless", "prefetch_source",
     [](F& f) {
         f.prefetch = {1000, 150, 650, 200, 0};
     },
     [](F& f) {
         f.prefetch = {1000, 250, 550, 200, 0};
     }},
    {"prefetch_useful", "",
     [](F& f) {
         f.prefetch = {1000, 700, 200, 100, 0};
     },
     [](F& f) {
         f.prefetch = {100, 70, 20, 10, 0};
     }},
    {"few_prefetch_threads", "prefetch_threads",
     [](F& f) {
         give(f, Cause::DiskWait, 0.15);
         f.prefetch = {1000, 500, 300, 200, 1500};
         f.diskBusySeconds = 3;
     },
     [](F& f) {
         give(f, Cause::DiskWait, 0.15);
         f.prefetch = {1000, 500, 300, 200, 1500};
         f.diskBusySeconds = 6;
     }},
    {"many_prefetch_threads", "prefetch_threads",
     [](F& f) {
         f.prefetch = {1000, 500, 300, 200, 0};
         f.knobs["prefetch_threads"] = 4;
         f.prefetchSeconds = 10;  // in 10 s: one of four reads
     },
     [](F& f) {
         f.prefetch = {1000, 500, 300, 200, 0};
         f.knobs["prefetch_threads"] = 4;
         f.prefetchSeconds = 20;
     }},
    {"numa_crossing", "numa_mode",
     [](F& f) {
         f.numaNodes = 2;
         f.remoteMemoryShare = 0.6;
     },
     [](F& f) {
         f.numaNodes = 2;
         f.remoteMemoryShare = 0.95;
     }},
    {"batch_timeout_only_waits", "batch_timeout_ms",
     [](F& f) {
         f.admitted = f.joinedByTimeout = 20;
         f.medianQueueMs = 10;
     },
     [](F& f) {
         f.admitted = f.joinedByTimeout = 20;
         f.medianQueueMs = 10;
         f.requests = 2;
     }},
    {"page_cache_beside_the_expert_cache", "io_mode",
     [](F& f) {
         f.knobs["io_mode"] = int64_t(IoMode::Buffered);
         f.demandReads = 5;
     },
     [](F& f) { f.knobs["io_mode"] = int64_t(IoMode::Buffered); }},
    {"hot_set", "",
     [](F& f) {
         f.spread = {0.65, 0.7, 0.5};
     },
     [](F& f) {
         f.spread = {0.55, 0.8, 0.5};
     }},
    {"flat_routing", "",
     [](F& f) {
         f.spread = {0.30, 0.99, 0.1};
     },
     [](F& f) {
         f.spread = {0.40, 0.95, 0.2};
     }},
};

}  // namespace

class TestExplain : public QObject {
    Q_OBJECT
    QTemporaryDir m_dir;
    fs::path file(const char* name) { return fs::path(m_dir.path().toStdString()) / name; }

    // A session of `count` tokens of one request, one per step.
    Status record(const fs::path& path, int count, const StepShares& shares) {
        auto writer = SessionWriter::create(path, {{"bytes_per_token", "1000"}});
        if (!writer) return writer.status();
        for (int i = 0; i < count; ++i) {
            const double t = 0.01 * (i + 1);
            const auto part = [](double share) { return float(share * 10e6); };
            Event event{};
            event.type = EventType::Step;
            StepEvent& s = event.step;
            s.step = uint32_t(i + 1);
            s.rows = s.requests = 1;
            s.totalNs = part(1 - shares.between);
            s.sinceLastNs = part(shares.between);
            s.stallDiskNs = part(shares.disk);
            s.stallSlotNs = part(shares.slot);
            s.stallLinkNs = part(shares.link);
            s.stallMemoryNs = part(shares.memory);
            s.stallPrefetchNs = part(shares.prefetch);
            s.offCpuNs = part(shares.offCpu);
            s.expertsNs = s.totalNs - s.stallDiskNs - s.stallSlotNs - s.stallLinkNs -
                          s.stallMemoryNs - s.stallPrefetchNs;
            COLIBRI_TRY((*writer)->write(event, t));
            event = {};
            event.type = EventType::Token;
            event.token.request = 1;
            event.token.index = uint32_t(i);
            event.token.gapNs = i ? 10'000'000 : 0;
            event.token.step = uint32_t(i + 1);
            COLIBRI_TRY((*writer)->write(event, t));
        }
        return (*writer)->finish();
    }

private slots:
    void causesAddUpToTheGaps() {
        const fs::path path = file("causes.colibri-session");
        const StepShares shares{0.2, 0.05, 0.1, 0.05, 0.05, 0.11, 0.05};
        const Status written = record(path, 201, shares);
        QVERIFY2(written.ok(), written.text().c_str());
        const auto db = SessionDb::open(path);
        QVERIFY2(db.ok(), db.status().text().c_str());
        const auto causes = causesOf(*db, kAll, nullptr);
        QVERIFY2(causes.ok(), causes.status().text().c_str());
        QCOMPARE(causes->tokens, uint64_t(200));
        const auto close = [&](Cause cause, double share) {
            return std::abs(causes->share(cause) - share) < 1e-3;
        };
        QVERIFY(close(Cause::DiskWait, 0.2));
        QVERIFY(close(Cause::QueueWait, 0.05));
        QVERIFY(close(Cause::LinkWait, 0.1));
        QVERIFY(close(Cause::MemoryWait, 0.05));
        QVERIFY(close(Cause::PrefetchWait, 0.05));
        QVERIFY(close(Cause::Scheduling, 0.05));
        // Time off the processor is taken from what was computed meanwhile.
        QVERIFY(close(Cause::Descheduled, 0.11));
        QVERIFY(close(Cause::Experts, 0.5 - 0.11));
        QVERIFY(std::abs(causes->explained() - 1) < 1e-3);
    }
    void stepsWithoutTheRequestAreBatchWait() {
        const fs::path path = file("turns.colibri-session");
        {
            auto writer = SessionWriter::create(path, {});
            QVERIFY(writer.ok());
            for (uint32_t step = 1; step <= 40; ++step) {
                Event event{};
                event.type = EventType::Step;
                event.step.step = step;
                event.step.rows = 4;
                event.step.prefillRows = 1;
                event.step.requests = 2;
                event.step.totalNs = event.step.expertsNs = 5e6f;
                QVERIFY((*writer)->write(event, step * 0.005).ok());
                if (step % 2) continue;  // the request has a row in every second step
                event = {};
                event.type = EventType::Token;
                event.token.request = 1;
                event.token.gapNs = step > 2 ? 10'000'000 : 0;
                event.token.step = step;
                QVERIFY((*writer)->write(event, step * 0.005).ok());
            }
        }
        const auto db = SessionDb::open(path);
        QVERIFY(db.ok());
        const auto causes = causesOf(*db, kAll, nullptr);
        QVERIFY2(causes.ok(), causes.status().text().c_str());
        QVERIFY(std::abs(causes->share(Cause::BatchWait) - 0.5) < 1e-3);
        // A quarter of the rows of its own steps are prompts of others.
        QVERIFY(std::abs(causes->share(Cause::Prefill) - 0.125) < 1e-3);
        QVERIFY(std::abs(causes->share(Cause::Experts) - 0.375) < 1e-3);
    }
    void factsOfASessionGiveItsVerdict() {
        const fs::path path = file("disk.colibri-session");
        QVERIFY(record(path, 300, {.disk = 0.6}).ok());
        const auto db = SessionDb::open(path);
        QVERIFY(db.ok());
        const auto facts = readSessionFacts(*db, kAll, {}, nullptr);
        QVERIFY2(facts.ok(), facts.status().text().c_str());
        QVERIFY(std::abs(facts->tokensPerSecond() - 100) < 0.5);
        QCOMPARE(facts->itl.count(), uint64_t(299));
        QCOMPARE(facts->requests, 1.0);
        const auto verdicts = verdictsOf(*facts);
        QCOMPARE(verdicts[0].name, std::string("disk_bound"));
        // Of a range without tokens nothing is said.
        const auto none = readSessionFacts(*db, {100, 200}, {}, nullptr);
        QVERIFY(none.ok());
        QCOMPARE(verdictsOf(*none)[0].name, std::string("too_short"));
    }
    void sessionsWithoutStepsSaySo() {
        const fs::path path = file("none.colibri-session");
        QVERIFY(SessionWriter::create(path, {}).ok());
        const auto db = SessionDb::open(path);
        QVERIFY(db.ok());
        const auto causes = causesOf(*db, kAll, nullptr);
        QCOMPARE(causes.status().code(), Code::Unsupported);
        QVERIFY(!causes.status().hint().empty());
    }
    void everyRuleHasItsCaseAndItsNearMiss() {
        for (const Case& one : kCases) {
            SessionFacts facts = calmFacts();
            one.make(facts);
            const auto verdicts = verdictsOf(facts);
            const Verdict* found = find(verdicts, one.name);
            QVERIFY2(found, one.name);
            QVERIFY2(found->knob == one.knob, (std::string(one.name) + ": " + found->knob).c_str());
            QVERIFY2(found->confidence > 0 && found->confidence <= 1, one.name);
            QVERIFY2(!found->figures.empty() && found->text.ends_with('.'), one.name);
            SessionFacts near = calmFacts();
            one.miss(near);
            QVERIFY2(!find(verdictsOf(near), one.name),
                     (std::string(one.name) + " in its near miss").c_str());
        }
    }
    void nothingToGainIsAVerdict() {
        const auto verdicts = verdictsOf(calmFacts());
        QCOMPARE(verdicts[0].name, std::string("nothing_to_gain"));
        for (const Verdict& verdict : verdicts) QVERIFY(verdict.knob.empty());
        SessionFacts slow = calmFacts();
        give(slow, Cause::LinkWait, 0.5);
        QVERIFY(!find(verdictsOf(slow), "nothing_to_gain"));
        SessionFacts few = calmFacts();
        few.causes.tokens = 10;
        QCOMPARE(verdictsOf(few)[0].name, std::string("too_short"));
    }
    void theLargestLossComesFirst() {
        SessionFacts facts = calmFacts();
        give(facts, Cause::LinkWait, 0.2);
        give(facts, Cause::DiskWait, 0.4);
        const auto verdicts = verdictsOf(facts);
        QCOMPARE(verdicts[0].name, std::string("disk_bound"));
        QCOMPARE(verdicts[1].name, std::string("link_bound"));
    }
};

QTEST_GUILESS_MAIN(TestExplain)
#include "test_explain.moc"
