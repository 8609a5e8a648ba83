// SPDX-License-Identifier: GPL-3.0-or-later
// PM sampling against a library that plays CUPTI, and its choice of counters with the real CUPTI
// where that is installed.
#include <QTest>

#include "fake_machine.h"
#include "profiler/gpu/activity_source.h"
#include "profiler/gpu/pm_source.h"

using namespace colibri;

namespace {

using Sample = fake::Cupti::Sample;

constexpr const char* kDram = "gpu__dram_throughput.avg.pct_of_peak_sustained_elapsed";
constexpr const char* kSm = "sm__cycles_active.avg.pct_of_peak_sustained_elapsed";

struct Rig : FakeMachine {
    std::unique_ptr<PmSource> source;

    Status start() {
        auto started = PmSource::start(libraries, 0, std::chrono::milliseconds(1));
        if (!started) return started.status();
        source = std::move(*started);
        return {};
    }
};

// Of another clock, as the first one after the start is.
const Sample kFirst{0, 5, {100, 100, 100}};

}  // namespace

class TestPmSource : public QObject {
    Q_OBJECT

private slots:
    void sharesAreMeansOverTime() {
        Rig rig;
        rig.cupti.addSamples({kFirst, {1000, 2000, {50, 10, 100}}, {2000, 5000, {90, 30, 100}}});
        QVERIFY(rig.start().ok());
        QCOMPARE(rig.source->metrics(), 3);
        QTRY_COMPARE(rig.source->samples(), 2u);  // without the first
        GpuReading reading;
        QVERIFY(rig.source->read(reading).ok());
        QCOMPARE(reading.smUtilisation, 0.8);  // (50 * 1 + 90 * 3) / 4
        QCOMPARE(reading.dramThroughput, 0.25);
        QCOMPARE(reading.busy, 1.0);
        // Without new samples the values stay.
        QVERIFY(rig.source->read(reading).ok());
        QCOMPARE(reading.smUtilisation, 0.8);
        rig.cupti.addSamples({{6000, 7000, {20, 0, 25}}});
        QTRY_COMPARE(rig.source->samples(), 3u);
        QVERIFY(rig.source->read(reading).ok());
        QCOMPARE(reading.smUtilisation, 0.2);
        QCOMPARE(reading.busy, 0.25);
    }

    void withoutSamplesThereIsNoValue() {
        Rig rig;
        QVERIFY(rig.start().ok());
        GpuReading reading;
        QVERIFY(rig.source->read(reading).ok());
        QVERIFY(std::isnan(reading.smUtilisation));
    }

    // More samples than an image of counter data takes: several decodes.
    void manySamplesArriveInParts() {
        Rig rig;
        std::vector<Sample> samples{kFirst};
        for (uint64_t i = 1; i <= 150; ++i) samples.push_back({i * 10, i * 10 + 10, {40, 40, 40}});
        rig.cupti.addSamples(samples);
        QVERIFY(rig.start().ok());
        QTRY_COMPARE(rig.source->samples(), 150u);
    }

    void onlyWhatFitsInOnePassIsCounted() {
        Rig rig;
        rig.cupti.metricsInOnePass = 2;
        rig.cupti.addSamples({kFirst, {1000, 2000, {50, 10, 77}}});
        QVERIFY(rig.start().ok());
        QCOMPARE(rig.source->metrics(), 2);
        QTRY_COMPARE(rig.source->samples(), 1u);
        GpuReading reading;
        QVERIFY(rig.source->read(reading).ok());
        QCOMPARE(reading.dramThroughput, 0.1);
        QVERIFY(std::isnan(reading.busy));
    }

    void aCounterThatIsUnavailableIsLeftOut() {
        Rig rig;
        rig.cupti.unknownMetrics = {kDram};
        QVERIFY(rig.start().ok());
        QCOMPARE(rig.source->metrics(), 1);
    }

    void olderGpusTriggerByClock() {
        Rig rig;
        rig.cupti.refusedModes = {3, 2, 1};  // all but clock and oldest
        QVERIFY(rig.start().ok());
        QCOMPARE(rig.cupti.acceptedMode, 0);
    }

    // A full hardware buffer ends the sampling of a GPU that keeps the oldest samples.
    void afterAnOverflowTheSamplingRestarts() {
        Rig rig;
        rig.cupti.fail("cuptiPmSamplingDecodeData", cupti::kOutOfMemory);
        QVERIFY(rig.start().ok());
        QTRY_VERIFY(rig.source->overflows() > 0);
        QVERIFY(rig.cupti.count("cuptiPmSamplingStart") >= 2);
        rig.cupti.succeed("cuptiPmSamplingDecodeData");
        rig.cupti.addSamples({kFirst, {1000, 2000, {50, 10, 77}}});
        QTRY_COMPARE(rig.source->samples(), 1u);
        GpuReading reading;
        QVERIFY(rig.source->read(reading).ok());
    }

    void lostSamplesAreCounted() {
        Rig rig;
        rig.cupti.overflow = true;
        QVERIFY(rig.start().ok());
        QTRY_COMPARE(rig.source->overflows(), 1u);
    }

    void aLostGpuEndsTheSampling() {
        Rig rig;
        rig.cupti.fail("cuptiPmSamplingDecodeData", cupti::kHardware, 3);
        QVERIFY(rig.start().ok());
        GpuReading reading;
        QTRY_VERIFY(!rig.source->read(reading).ok());
        const Status status = rig.source->read(reading);
        QVERIFY2(status.message().find("the GPU is lost") != std::string::npos,
                 status.text().c_str());
        QVERIFY(status.hint().find("dmesg") != std::string::npos);
    }

    void theEndWaitsForADecode() {
        Rig rig;
        rig.cupti.holdAt("cuptiPmSamplingDecodeData");
        QVERIFY(rig.start().ok());
        rig.cupti.waitForCall("cuptiPmSamplingDecodeData");
        std::thread end([&] { rig.source.reset(); });
        QCOMPARE(rig.cupti.count("cuptiPmSamplingStop"), 0);
        rig.cupti.release();
        end.join();
        QCOMPARE(rig.cupti.count("cuptiPmSamplingStop"), 1);
    }

    void theSamplingEndsInOrder() {
        Rig rig;
        QVERIFY(rig.start().ok());
        rig.cupti.waitForCall("cuptiPmSamplingDecodeData");
        rig.source.reset();
        const int stop = positionOf(rig.cupti, "cuptiPmSamplingStop");
        const int disable = positionOf(rig.cupti, "cuptiPmSamplingDisable");
        const int host = positionOf(rig.cupti, "cuptiProfilerHostDeinitialize");
        const int profiler = positionOf(rig.cupti, "cuptiProfilerDeInitialize");
        QVERIFY(stop >= 0 && stop < disable && disable < host && host < profiler);
        QCOMPARE(rig.cupti.count("cuptiFinalize"), 0);  // only after a trace
        QCOMPARE(rig.driver.contexts, 0);
    }

    // CUPTI detaches as a whole, so a trace that ends first leaves that to the sampling.
    void aTraceDoesNotDetachTheSampling() {
        Rig rig;
        QVERIFY(rig.start().ok());
        {
            const auto trace = ActivitySource::start({.libraries = rig.libraries});
            QVERIFY2(trace.ok(), trace.status().text().c_str());
        }
        QCOMPARE(rig.cupti.count("cuptiUnsubscribe"), 1);
        QCOMPARE(rig.cupti.count("cuptiFinalize"), 0);
        rig.source.reset();
        QCOMPARE(rig.cupti.count("cuptiFinalize"), 1);
        QVERIFY(positionOf(rig.cupti, "cuptiPmSamplingDisable") <
                positionOf(rig.cupti, "cuptiFinalize"));
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
        const char* enable = "cuptiPmSamplingEnable";
        row(enable, cupti::kInsufficientPrivileges, "administrators only",
            "NVreg_RestrictProfilingToAdminUsers=0");
        row(enable, cupti::kHardwareBusy, "another program uses the GPU's counters",
            "dcgmi profile --pause");
        row(enable, cupti::kMigDevice, "MIG", "nvidia-smi -mig 0");
        row(enable, cupti::kVirtualisedPrivileges, "virtual GPU", "administrator");
        row(enable, cupti::kSliDevice, "SLI is on", "Turn SLI off");
        row("cuptiProfilerInitialize", cupti::kUnknown, "CUPTI_ERROR_UNKNOWN", "nvidia-smi");
        row("cuptiProfilerDeviceSupported", cupti::kWslDevice, "Windows", "Linux");
        row("cuptiDeviceGetChipName", cupti::kHardware, "the GPU is lost", "dmesg");
        row("cuptiPmSamplingGetCounterAvailability", cupti::kConfidentialComputing,
            "confidential computing is on", "Turn it off");
        row("cuptiProfilerHostInitialize", cupti::kInvalidChipName, "does not know the GPU",
            "newer CUDA 13");
        row("cuptiProfilerHostConfigAddMetrics", cupti::kInvalidMetricName,
            "this GPU has no such counter", "does not measure it");
        row("cuptiPmSamplingSetConfig", cupti::kMiningDevice, "mining processor", "None");
        row("cuptiPmSamplingGetCounterDataSize", cupti::kNotSupported, "does not support it",
            "None");
        row("cuptiPmSamplingStart", cupti::kHardwareBusy, "another program", "Nsight");
    }
    void refusalsHaveAReasonAndARemedy() {
        QFETCH(QString, symbol);
        QFETCH(int, result);
        QFETCH(QString, reason);
        QFETCH(QString, remedy);
        Rig rig;
        rig.cupti.fail(symbol.toStdString(), result);
        const Status status = rig.start();
        QVERIFY2(QString::fromStdString(status.message()).contains(reason), status.text().c_str());
        QVERIFY2(QString::fromStdString(status.hint()).contains(remedy), status.text().c_str());
        // Whatever the attempt had taken is given back.
        QCOMPARE(rig.driver.contexts, 0);
        QCOMPARE(rig.cupti.count("cuptiProfilerHostDeinitialize"),
                 rig.cupti.count("cuptiProfilerHostInitialize") -
                     (symbol == "cuptiProfilerHostInitialize" ? 1 : 0));
        rig.cupti.succeed(symbol.toStdString());
        QVERIFY(rig.start().ok());
    }

    void unsupportedDevicesAreExplained_data() {
        QTest::addColumn<unsigned>("field");
        QTest::addColumn<QString>("reason");
        QTest::newRow("architecture") << 1u << "too old";
        QTest::newRow("SLI") << 2u << "SLI is on";
        QTest::newRow("virtual") << 3u << "virtual GPU";
        QTest::newRow("confidential") << 4u << "confidential computing";
        QTest::newRow("mining") << 5u << "mining processor";
        QTest::newRow("WSL") << 6u << "Windows";
    }
    void unsupportedDevicesAreExplained() {
        QFETCH(unsigned, field);
        QFETCH(QString, reason);
        Rig rig;
        rig.cupti.unsupportedBecause = field;
        const Status status = rig.start();
        QVERIFY2(QString::fromStdString(status.message()).contains(reason), status.text().c_str());
        QVERIFY(!status.hint().empty());
    }

    // CUPTI's host part needs neither GPU nor driver, so the choice is checked for every chip.
    void realCuptiCountsInOnePass_data() {
        QTest::addColumn<QString>("chip");
        QTest::addColumn<int>("metrics");  // 0: refused
        for (const char* chip : {"GA100", "GA102", "AD102", "GH100", "GB100", "GB202"})
            QTest::newRow(chip) << chip << 3;
        for (const char* chip : {"TU102", "GB10B"}) QTest::newRow(chip) << chip << 1;
        QTest::newRow("Volta") << "GV100" << 0;
        QTest::newRow("unknown") << "XX999" << 0;
    }
    void realCuptiCountsInOnePass() {
        QFETCH(QString, chip);
        QFETCH(int, metrics);
        if (*REAL_CUPTI == '\0') QSKIP("no CUPTI, or not with this build");
        const Result<std::shared_ptr<CuptiLibrary>> cupti = CuptiLibrary::open(REAL_CUPTI);
        if (!cupti) QSKIP(cupti.status().text().c_str());
        const auto config = PmConfig::create(*cupti, chip.toStdString(), {});
        QVERIFY2(config.ok() == (metrics > 0), config.status().text().c_str());
        if (!config) return;
        QCOMPARE((*config)->metrics(), metrics);
        QCOMPARE((*config)->names()[0], kSm);
    }
};

QTEST_GUILESS_MAIN(TestPmSource)
#include "test_pm_source.moc"
