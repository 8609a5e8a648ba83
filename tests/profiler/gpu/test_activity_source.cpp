// SPDX-License-Identifier: GPL-3.0-or-later
// The trace of kernels and copies, against a library that plays CUPTI.
#include <QTest>

#include "engine/telemetry/telemetry.h"
#include "fake_machine.h"
#include "profiler/gpu/activity_source.h"

using namespace colibri;

namespace {

constexpr uint64_t kStart = 1'000'000'000;  // of the first work

struct Rig : FakeMachine {
    // The thread of the source sleeps; the tests flush.
    ActivityOptions options{.flushEvery = std::chrono::hours(1), .libraries = libraries};
    std::unique_ptr<ActivitySource> source;

    Status start() {
        auto started = ActivitySource::start(options);
        if (!started) return started.status();
        source = std::move(*started);
        return {};
    }
    // Work number i runs for i + 1 microseconds.
    void launch(int i, fake::Launch work = {}) {
        work.startNs = kStart + uint64_t(i) * 1'000'000;
        work.endNs = work.startNs + uint64_t(i + 1) * 1000;
        cupti.launch(work);
    }
    // Collects during as many rounds as a span waits for its work.
    std::vector<GpuSpan> collect() {
        std::vector<GpuSpan> spans;
        for (int i = 0; i < 6; ++i) source->flush();
        source->take(spans);
        return spans;
    }
};

}  // namespace

class TestActivitySource : public QObject {
    Q_OBJECT

private slots:
    void kernelsAndCopiesAreSpans() {
        Rig rig;
        QVERIFY(rig.start().ok());
        rig.launch(0);
        rig.launch(1, {.kind = fake::Launch::Copy, .copyKind = 1, .bytes = 4096});
        rig.launch(2, {.kind = fake::Launch::Copy, .copyKind = 2, .bytes = 512, .stream = 9});
        rig.launch(3, {.kind = fake::Launch::Copy, .copyKind = 8, .bytes = 64});
        rig.launch(4, {.kind = fake::Launch::PeerCopy, .bytes = 32});
        rig.launch(5, {.kind = fake::Launch::Memset, .bytes = 16});
        const std::vector<GpuSpan> spans = rig.collect();
        QCOMPARE(spans.size(), 6u);
        const GpuSpanKind kinds[] = {GpuSpanKind::Kernel,      GpuSpanKind::CopyToGpu,
                                     GpuSpanKind::CopyFromGpu, GpuSpanKind::CopyOnGpu,
                                     GpuSpanKind::CopyOther,   GpuSpanKind::Fill};
        const uint64_t bytes[] = {0, 4096, 512, 64, 32, 16};
        for (size_t i = 0; i < spans.size(); ++i) {
            QCOMPARE(spans[i].kind, kinds[i]);
            QCOMPARE(spans[i].bytes, bytes[i]);
            QCOMPARE(spans[i].startNs, kStart + i * 1'000'000);
            QCOMPARE(spans[i].durationNs, (i + 1) * 1000);
            QCOMPARE(spans[i].work, 0u);
        }
        QCOMPARE(spans[0].name, "gemv");
        QCOMPARE(spans[2].stream, 9u);
        const ActivityCounts counts = rig.source->counts();
        QCOMPARE(counts.spans, 6u);
        QCOMPARE(counts.droppedByCupti + counts.droppedSpans + counts.untimed, 0u);
        QVERIFY(rig.source->stop().ok());
    }

    void kernelsHaveShortNames_data() {
        QTest::addColumn<QByteArray>("symbol");
        QTest::addColumn<QByteArray>("name");
        QTest::newRow("of a template")
            << QByteArray("_ZN3gpu4gemvILi4EEEvPKfi") << QByteArray("gpu::gemv<4>");
        QTest::newRow("unnamed namespace")
            << QByteArray("_ZN12_GLOBAL__N_14copyEPf") << QByteArray("(anonymous namespace)::copy");
        QTest::newRow("not mangled") << QByteArray("gemm_f16") << QByteArray("gemm_f16");
    }
    void kernelsHaveShortNames() {
        QFETCH(QByteArray, symbol);
        QFETCH(QByteArray, name);
        Rig rig;
        QVERIFY(rig.start().ok());
        rig.launch(0, {.name = symbol.constData()});
        const std::vector<GpuSpan> spans = rig.collect();
        QCOMPARE(spans.size(), 1u);
        QCOMPARE(QByteArray(spans[0].name.data(), qsizetype(spans[0].name.size())), name);
    }

    void spansBelongToTheWorkThatLaunchedThem() {
        Rig rig;
        QVERIFY(rig.start().ok());
        const GpuWork attention{.step = 71, .layer = 3, .stage = GpuStage::Attention};
        const GpuWork experts{.step = 71, .layer = 3, .stage = GpuStage::Experts};
        {
            const GpuScope outer(rig.source.get(), attention);
            rig.launch(0);
            {
                const GpuScope inner(rig.source.get(), experts);
                rig.launch(1, {.kind = fake::Launch::Copy, .bytes = 8});
            }
            rig.launch(2);
        }
        rig.launch(3);
        const std::vector<GpuSpan> spans = rig.collect();
        QCOMPARE(spans.size(), 4u);
        QVERIFY(gpuWorkOf(spans[0].work) == attention);
        QVERIFY(gpuWorkOf(spans[1].work) == experts);
        QVERIFY(gpuWorkOf(spans[2].work) == attention);
        QCOMPARE(spans[3].work, 0u);
    }

    void workIdsAreReversible() {
        for (int stage = 0; stage < kGpuStageCount; ++stage) {
            const GpuWork work{.step = uint64_t(1) << 39, .layer = 65535, .stage = GpuStage(stage)};
            QVERIFY(gpuWorkOf(gpuWorkId(work)) == work);
        }
        QVERIFY(gpuWorkId({}) != 0);
    }

    // The record that names the work is in another buffer, which completes after the kernel's.
    void buffersMayCompleteInAnyOrder() {
        Rig rig;
        rig.cupti.recordsPerBuffer = 1;
        rig.cupti.reverseBuffers = true;
        QVERIFY(rig.start().ok());
        for (int i = 0; i < 20; ++i) {
            rig.cupti.externalIdsLate = i % 2 == 1;
            const GpuScope scope(rig.source.get(), {.step = uint64_t(i)});
            rig.launch(i);
        }
        std::vector<GpuSpan> spans = rig.collect();
        QCOMPARE(spans.size(), 20u);
        std::set<uint64_t> steps;
        for (const GpuSpan& span : spans) {
            const uint64_t number = (span.startNs - kStart) / 1'000'000;
            QCOMPARE(gpuWorkOf(span.work).step, number);
            steps.insert(number);
        }
        QCOMPARE(steps.size(), 20u);
        // Those that complete together are in the order of time.
        QVERIFY(std::is_sorted(spans.begin(), spans.begin() + 10,
                               [](auto& a, auto& b) { return a.startNs < b.startNs; }));
    }

    // A buffer of 1 KiB takes four records of kernels.
    void droppedRecordsAreCounted() {
        Rig rig;
        rig.options.bufferBytes = 1024;
        rig.options.mostBuffers = 1;
        QVERIFY(rig.start().ok());
        for (int i = 0; i < 10; ++i) rig.launch(i);
        QCOMPARE(rig.collect().size(), 4u);
        QCOMPARE(rig.source->counts().droppedByCupti, 6u);
        // The buffer is used again.
        for (int i = 0; i < 3; ++i) rig.launch(i);
        QCOMPARE(rig.collect().size(), 3u);
        QCOMPARE(rig.source->counts().droppedByCupti, 6u);
    }

    void spansThatNobodyTakesAreCounted() {
        Rig rig;
        rig.options.mostSpans = 5;
        QVERIFY(rig.start().ok());
        for (int i = 0; i < 8; ++i) rig.launch(i);
        QCOMPARE(rig.collect().size(), 5u);
        QCOMPARE(rig.source->counts().droppedSpans, 3u);
    }

    void recordsWithoutTimesAreNoSpans() {
        Rig rig;
        QVERIFY(rig.start().ok());
        rig.cupti.launch({.startNs = 0, .endNs = 0});
        rig.launch(1);
        QCOMPARE(rig.collect().size(), 1u);
        QCOMPARE(rig.source->counts().untimed, 1u);
    }

    // Two weeks ahead; the measured distance is exact to the time of a reading.
    void timesOfAnotherClockAreConverted() {
        Rig rig;
        rig.cupti.fail("cuptiActivityRegisterTimestampCallback", cupti::kNotSupported);
        rig.cupti.clockAheadNs = int64_t(14) * 86400 * 1'000'000'000;
        QVERIFY(rig.start().ok());
        rig.launch(2);
        const std::vector<GpuSpan> spans = rig.collect();
        QCOMPARE(spans.size(), 1u);
        const double error = double(spans[0].startNs) - double(kStart + 2'000'000);
        QVERIFY2(std::abs(error) < 1e9, qPrintable(QString::number(error)));
        QCOMPARE(spans[0].durationNs, 3000u);
    }

    void theThreadCollects() {
        Rig rig;
        rig.options.flushEvery = std::chrono::milliseconds(1);
        QVERIFY(rig.start().ok());
        rig.launch(0);
        QTRY_COMPARE(rig.source->counts().spans, 1u);
    }

    void theLastSpansCanBeTakenAfterTheEnd() {
        Rig rig;
        QVERIFY(rig.start().ok());
        rig.launch(0);
        QVERIFY(rig.source->stop().ok());
        std::vector<GpuSpan> spans;
        rig.source->take(spans);
        QCOMPARE(spans.size(), 1u);
        const int flushes = rig.cupti.count("cuptiActivityFlushAll");
        rig.source->flush();
        QCOMPARE(rig.cupti.count("cuptiActivityFlushAll"), flushes);
    }

    void theTraceEndsInOrder() {
        Rig rig;
        QVERIFY(rig.start().ok());
        QVERIFY(rig.source->stop().ok());
        const int flush = positionOf(rig.cupti, "cuptiActivityFlushAll");
        const int disable = positionOf(rig.cupti, "cuptiActivityDisable");
        const int unsubscribe = positionOf(rig.cupti, "cuptiUnsubscribe");
        QVERIFY(flush >= 0 && flush < disable && disable < unsubscribe);
        QVERIFY(unsubscribe < positionOf(rig.cupti, "cuptiFinalize"));
        QVERIFY(rig.source->stop().ok());
        QCOMPARE(rig.cupti.count("cuptiFinalize"), 1);
    }

    // The driver is lost between two flushes: what was collected stays.
    void aLostGpuEndsTheTrace() {
        Rig rig;
        QVERIFY(rig.start().ok());
        rig.launch(0);
        QCOMPARE(rig.collect().size(), 1u);
        rig.cupti.fail("cuptiActivityFlushAll", cupti::kHardware);
        rig.source->flush();
        const Status status = rig.source->status();
        QVERIFY2(status.message().find("the GPU is lost") != std::string::npos,
                 status.text().c_str());
        QVERIFY(status.hint().find("dmesg") != std::string::npos);
        QVERIFY(rig.source->stop().message() == status.message());
    }

    void theEndWaitsForAFlush() {
        Rig rig;
        QVERIFY(rig.start().ok());
        rig.launch(0);
        rig.cupti.holdAt("cuptiActivityFlushAll");
        std::thread flush([&] { rig.source->flush(); });
        rig.cupti.waitForCall("cuptiActivityFlushAll");
        std::thread end([&] { (void)rig.source->stop(); });
        QCOMPARE(rig.cupti.count("cuptiUnsubscribe"), 0);
        rig.cupti.release();
        flush.join();
        end.join();
        QCOMPARE(rig.cupti.count("cuptiUnsubscribe"), 1);
        QCOMPARE(rig.source->counts().spans, 1u);
    }

    void buffersMayReturnAfterTheEnd() {
        Rig rig;
        rig.cupti.keepBuffers = true;
        QVERIFY(rig.start().ok());
        rig.launch(0);
        rig.source->flush();
        rig.source.reset();
        rig.cupti.completeLate();  // freed, also when another source has begun
        QVERIFY(rig.start().ok());
        rig.launch(0);
        rig.source->flush();
        rig.source.reset();
        rig.options.bufferBytes = 4096;
        QVERIFY(rig.start().ok());
        rig.cupti.completeLate();
        QCOMPARE(rig.source->counts().spans, 0u);
    }

    void oneTraceAtATime() {
        Rig rig;
        QVERIFY(rig.start().ok());
        const auto second = ActivitySource::start(rig.options);
        QVERIFY(!second.ok());
        QVERIFY(second.status().message().find("traces the GPU already") != std::string::npos);
        rig.source.reset();
        QVERIFY(rig.start().ok());
    }

    void refusalsHaveAReasonAndARemedy_data() {
        QTest::addColumn<QString>("symbol");
        QTest::addColumn<int>("result");
        QTest::addColumn<QString>("reason");
        QTest::addColumn<QString>("remedy");
        const auto row = [](const char* symbol, int result, const char* reason,
                            const char* remedy) {
            QTest::addRow("%s %d", symbol, result) << symbol << result << reason << remedy;
        };
        const char* subscribe = "cuptiSubscribe_v2";
        row(subscribe, cupti::kMultipleSubscribers, "CUPTI for Nsight Systems traces this process",
            "outside Nsight");
        row(subscribe, cupti::kNotInitialized, "CUPTI does not start", "nvidia-smi");
        row(subscribe, cupti::kNotCompatible, "does not work with this driver", "580");
        row(subscribe, cupti::kUnknown, "CUPTI_ERROR_UNKNOWN", "nvidia-smi");
        const char* enable = "cuptiActivityEnable";
        row(enable, cupti::kInsufficientPrivileges, "administrators only",
            "NVreg_RestrictProfilingToAdminUsers=0");
        row(enable, cupti::kVirtualisedDevice, "virtual GPU", "without virtualisation");
        row(enable, cupti::kNotSupported, "this GPU does not support it", "None on this GPU");
        row("cuptiActivityRegisterCallbacks", cupti::kHardware, "the GPU is lost", "dmesg");
    }
    void refusalsHaveAReasonAndARemedy() {
        QFETCH(QString, symbol);
        QFETCH(int, result);
        QFETCH(QString, reason);
        QFETCH(QString, remedy);
        Rig rig;
        rig.cupti.oldSubscriber = "CUPTI for Nsight Systems";
        rig.cupti.fail(symbol.toStdString(), result);
        const Status status = rig.start();
        QVERIFY2(QString::fromStdString(status.message()).contains(reason), status.text().c_str());
        QVERIFY2(QString::fromStdString(status.hint()).contains(remedy), status.text().c_str());
        // The refused source leaves nothing behind: another attempt works.
        const bool refusedAtOnce = symbol == "cuptiSubscribe_v2";
        QCOMPARE(rig.cupti.count("cuptiFinalize"), refusedAtOnce ? 0 : 1);
        // The clock of CUPTI belongs to the tool that holds it.
        if (refusedAtOnce) QCOMPARE(rig.cupti.count("cuptiActivityRegisterTimestampCallback"), 0);
        rig.cupti.succeed(symbol.toStdString());
        QVERIFY(rig.start().ok());
    }
};

QTEST_GUILESS_MAIN(TestActivitySource)
#include "test_activity_source.moc"
