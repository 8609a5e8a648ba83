// SPDX-License-Identifier: GPL-3.0-or-later
// Which source of GPU counters is used, and why the others are not, against libraries that play
// driver, CUPTI and NVML.
#include <QTest>

#include "fake_machine.h"
#include "profiler/gpu/gpu_source.h"

using namespace colibri;

namespace {

using State = GpuRung::State;

struct Rig : FakeMachine {
    GpuOptions options{.interval = std::chrono::milliseconds(0), .libraries = libraries};
    std::unique_ptr<GpuSource> source;

    void probe() { source = GpuSource::probe(options); }
    const GpuRung& rung(GpuRungId id) const { return source->ladder()[size_t(id)]; }
    State state(GpuRungId id) const { return rung(id).state; }
    bool says(GpuRungId id, const char* reason, const char* remedy) const {
        const Status& status = rung(id).refusal;
        const bool found = status.message().find(reason) != std::string::npos &&
                           status.hint().find(remedy) != std::string::npos;
        if (!found) qWarning("%s", status.text().c_str());
        return found;
    }
};

}  // namespace

class TestGpuSource : public QObject {
    Q_OBJECT

private slots:
    void hopperUsesGpm() {
        Rig rig;
        rig.probe();
        QVERIFY(rig.source->available());
        QCOMPARE(rig.source->name(), "NVIDIA H200");
        QCOMPARE(rig.state(GpuRungId::Gpm), State::Used);
        QCOMPARE(rig.state(GpuRungId::Utilisation), State::Used);
        QCOMPARE(rig.state(GpuRungId::PmSampling), State::Off);
        QCOMPARE(rig.source->busyReason(), "");
        QVERIFY(rig.says(GpuRungId::PmSampling, "locks the GPU's clocks", "--pm-sampling"));
        QCOMPARE(rig.source->reason(), "");
        QCOMPARE(rig.source->smReason(), "");
        QVERIFY(rig.source->provenance().starts_with("NVML GPM: SM utilisation"));
        QVERIFY(!rig.source->clocksLocked());
        const GpuReading reading = rig.source->read();
        QCOMPARE(reading.smUtilisation, 0.42);
        QCOMPARE(reading.dramThroughput, 0.17);
        QCOMPARE(reading.busy, 1.0);
        QCOMPARE(reading.memoryUsed, 20.0);
        QCOMPARE(reading.memoryTotal, 100.0);
        QCOMPARE(reading.smClock, 1.98e9);
        QCOMPARE(reading.power, 700.0);
        // Without the option, nothing of CUPTI and no context on the GPU.
        QVERIFY(rig.cupti.calls().empty());
        QVERIFY(rig.driver.calls().empty());
        rig.source.reset();
        QCOMPARE(rig.nvml.samples, 0);
    }

    // One busy SM is 100 % of NVML's utilisation, so this is no SM utilisation.
    void olderGpusHaveNoSmUtilisation() {
        Rig rig;
        rig.nvml.gpmSupported = false;
        rig.probe();
        QVERIFY(rig.source->available());
        QCOMPARE(rig.state(GpuRungId::Gpm), State::Refused);
        QVERIFY(rig.says(GpuRungId::Gpm, "older than Hopper", "PM sampling"));
        QVERIFY(QString::fromStdString(rig.source->smReason()).contains("older than Hopper"));
        QVERIFY(QString::fromStdString(rig.source->provenance()).contains("not SM utilisation"));
        QVERIFY(std::isnan(rig.source->read().smUtilisation));
        QCOMPARE(rig.source->read().busy, 1.0);
    }

    void pmSamplingIsUsedIfChosen() {
        Rig rig;
        rig.options.pmSampling = true;
        rig.cupti.addSamples({{0, 5, {1, 1, 1}}, {1000, 2000, {64, 32, 100}}});
        rig.probe();
        QCOMPARE(rig.state(GpuRungId::PmSampling), State::Used);
        QCOMPARE(rig.state(GpuRungId::Gpm), State::Ready);
        QVERIFY(rig.source->clocksLocked());
        QTRY_COMPARE(rig.source->read().smUtilisation, 0.64);
        QCOMPARE(rig.source->read().dramThroughput, 0.32);
        QCOMPARE(rig.source->read().busy, 1.0);
        QVERIFY(
            QString::fromStdString(rig.source->provenance()).contains("locks the GPU's clocks"));
    }

    void withoutPermissionGpmIsUsed() {
        Rig rig;
        rig.options.pmSampling = true;
        rig.cupti.fail("cuptiPmSamplingEnable", cupti::kInsufficientPrivileges);
        rig.probe();
        QCOMPARE(rig.state(GpuRungId::PmSampling), State::Refused);
        QVERIFY(rig.says(GpuRungId::PmSampling, "administrators only",
                         "NVreg_RestrictProfilingToAdminUsers=0"));
        QCOMPARE(rig.state(GpuRungId::Gpm), State::Used);
        QVERIFY(!rig.source->clocksLocked());
    }

    void samplingThatEndsHandsOverToGpm() {
        Rig rig;
        rig.options.pmSampling = true;
        rig.probe();
        QVERIFY(rig.source->clocksLocked());
        rig.cupti.fail("cuptiPmSamplingDecodeData", cupti::kHardwareBusy);
        QTRY_COMPARE(rig.source->read().smUtilisation, 0.42);
        QVERIFY(!rig.source->clocksLocked());
        QCOMPARE(rig.state(GpuRungId::PmSampling), State::Refused);
        QVERIFY(rig.says(GpuRungId::PmSampling, "another program", "dcgmi"));
        QCOMPARE(rig.state(GpuRungId::Gpm), State::Used);
    }

    void aCounterThatBecomesUnavailableIsMissing() {
        Rig rig;
        rig.probe();
        rig.nvml.smResult = nvml::kNotSupported;
        QVERIFY(std::isnan(rig.source->read().smUtilisation));
        QVERIFY(rig.says(GpuRungId::Gpm, "does not report it", "MIG"));
        QCOMPARE(rig.source->read().busy, 1.0);
        rig.nvml.smResult = 0;  // NVML is asked again
        QCOMPARE(rig.source->read().smUtilisation, 0.42);
        QCOMPARE(rig.state(GpuRungId::Gpm), State::Used);
    }

    void aLostGpuIsExplained() {
        Rig rig;
        rig.probe();
        rig.nvml.fail("nvmlGpmSampleGet", nvml::kGpuIsLost);
        rig.nvml.fail("nvmlDeviceGetUtilizationRates", nvml::kGpuIsLost);
        const GpuReading reading = rig.source->read();
        QVERIFY(std::isnan(reading.smUtilisation) && std::isnan(reading.busy));
        QVERIFY(!rig.source->available());
        QVERIFY(QString::fromStdString(rig.source->reason()).contains("the GPU is lost"));
        QVERIFY(rig.says(GpuRungId::Utilisation, "the GPU is lost", "dmesg"));
        QVERIFY(rig.says(GpuRungId::Gpm, "the GPU is lost", "dmesg"));
    }

    void readingsAreNotTakenMoreOftenThanTheInterval() {
        Rig rig;
        rig.options.interval = std::chrono::hours(1);
        rig.probe();
        const int before = rig.nvml.count("nvmlDeviceGetUtilizationRates");
        for (int i = 0; i < 10; ++i) (void)rig.source->read();
        QCOMPARE(rig.nvml.count("nvmlDeviceGetUtilizationRates"), before);
        QVERIFY(std::isnan(rig.source->read().smUtilisation));  // GPM needs two samples
        QCOMPARE(rig.source->smReason(), "");
    }

    void tracesAreTriedOnRequest() {
        Rig rig;
        rig.options.tryActivity = true;
        rig.probe();
        QCOMPARE(rig.state(GpuRungId::Activity), State::Ready);
        QCOMPARE(rig.cupti.count("cuptiUnsubscribe"), 1);
        rig.cupti.oldSubscriber = "CUPTI for Nsight Systems";
        rig.cupti.fail("cuptiSubscribe_v2", cupti::kMultipleSubscribers);
        rig.probe();
        QVERIFY(rig.says(GpuRungId::Activity, "Nsight Systems", "outside Nsight"));
    }

    // Every library that is missing, old or incomplete.
    void librariesAreExplained_data() {
        QTest::addColumn<QString>("driver");
        QTest::addColumn<QString>("cupti");
        QTest::addColumn<QString>("reason");
        QTest::addColumn<QString>("remedy");
        const auto row = [](const char* name, const char* driver, const char* cupti,
                            const char* reason, const char* remedy) {
            QTest::newRow(name) << driver << cupti << reason << remedy;
        };
        row("no driver", "/none/libcuda.so.1", FAKE_CUPTI, "no NVIDIA driver", "Install");
        row("incomplete driver", FAKE_DRIVER_INCOMPLETE, FAKE_CUPTI,
            "lacks cuDevicePrimaryCtxRelease_v2", "Update the driver");
        row("no CUPTI", FAKE_DRIVER, "/none/libcupti.so.13", "CUPTI is not installed",
            "CUDA Toolkit 13");
        row("CUPTI of CUDA 12", FAKE_DRIVER, FAKE_CUPTI_12, "too old (interface 28",
            "CUPTI of CUDA 13");
        row("later CUPTI", FAKE_DRIVER, FAKE_CUPTI_14, "newer than this program knows",
            "CUPTI of CUDA 13");
        row("incomplete CUPTI", FAKE_DRIVER, FAKE_CUPTI_INCOMPLETE, "lacks cuptiActivityFlushAll",
            "CUDA Toolkit 13");
    }
    void librariesAreExplained() {
        QFETCH(QString, driver);
        QFETCH(QString, cupti);
        QFETCH(QString, reason);
        QFETCH(QString, remedy);
        Rig rig;
        rig.options.libraries.driver = driver.toStdString();
        rig.options.libraries.cupti = cupti.toStdString();
        rig.options.pmSampling = rig.options.tryActivity = true;
        rig.probe();
        for (const GpuRungId id : {GpuRungId::PmSampling, GpuRungId::Activity}) {
            QCOMPARE(rig.state(id), State::Refused);
            QVERIFY(rig.says(id, qPrintable(reason), qPrintable(remedy)));
        }
        QCOMPARE(rig.state(GpuRungId::Gpm), State::Used);
    }

    void driversThatDoNotStartAreExplained_data() {
        QTest::addColumn<int>("error");
        QTest::addColumn<QString>("reason");
        QTest::addColumn<QString>("remedy");
        QTest::newRow("no device") << 100 << "no NVIDIA GPU"
                                   << "CUDA_VISIBLE_DEVICES";
        QTest::newRow("mismatch") << 803 << "different versions"
                                  << "Restart the machine";
        QTest::newRow("fabric") << 802 << "not ready yet"
                                << "nvidia-fabricmanager";
        QTest::newRow("stub") << 34 << "a stub of the driver"
                              << "stubs";
        QTest::newRow("unknown") << 999 << "CUDA error 999"
                                 << "nvidia-smi";
    }
    void driversThatDoNotStartAreExplained() {
        QFETCH(int, error);
        QFETCH(QString, reason);
        QFETCH(QString, remedy);
        Rig rig;
        rig.driver.fail("cuInit", error);
        rig.options.pmSampling = true;
        rig.probe();
        QVERIFY(rig.says(GpuRungId::PmSampling, qPrintable(reason), qPrintable(remedy)));
    }

    void oldDriversAreExplained() {
        Rig rig;
        rig.driver.version = 12040;
        rig.options.pmSampling = true;
        rig.probe();
        QVERIFY(rig.says(GpuRungId::PmSampling, "it supports CUDA 12.4", "580"));
        rig.driver.version = 13000;
        rig.driver.devices = 0;
        rig.probe();
        QVERIFY(rig.says(GpuRungId::PmSampling, "no NVIDIA GPU", "nvidia-smi -L"));
    }

    void nvmlOfAnOldDriverHasOnlyUtilisation() {
        Rig rig;
        rig.options.libraries.nvml = FAKE_NVML_OLD;
        fake::scriptOf<fake::Nvml>(FAKE_NVML_OLD, "fakeNvml").busyPercent = 30;
        rig.probe();
        QVERIFY(rig.says(GpuRungId::Gpm, "the driver is too old", "580"));
        QCOMPARE(rig.source->read().busy, 0.3);
        rig.options.libraries.nvml = FAKE_NVML_INCOMPLETE;
        rig.probe();
        QVERIFY(rig.says(GpuRungId::Utilisation, "lacks nvmlDeviceGetUtilizationRates", "580"));
        QVERIFY(!rig.source->available());
    }

    void nvmlThatRefusesIsExplained_data() {
        QTest::addColumn<QString>("symbol");
        QTest::addColumn<int>("result");
        QTest::addColumn<QString>("reason");
        QTest::addColumn<QString>("remedy");
        const auto row = [](const char* symbol, int result, const char* reason,
                            const char* remedy) {
            QTest::addRow("%s %d", symbol, result) << symbol << result << reason << remedy;
        };
        row("nvmlInit_v2", nvml::kDriverNotLoaded, "not loaded", "modprobe nvidia");
        row("nvmlInit_v2", nvml::kVersionMismatch, "different versions", "Restart the machine");
        row("nvmlInit_v2", nvml::kNoPermission, "does not allow it", "/dev/nvidia");
        row("nvmlInit_v2", nvml::kUnknown, "Unknown Error", "nvidia-smi");
        row("nvmlDeviceGetHandleByIndex_v2", nvml::kNotFound, "no NVIDIA GPU", "nvidia-smi -L");
        row("nvmlDeviceGetHandleByIndex_v2", nvml::kResetRequired, "needs a reset", "gpu-reset");
        row("nvmlDeviceGetUtilizationRates", nvml::kNotSupported, "does not report it", "MIG");
    }
    void nvmlThatRefusesIsExplained() {
        QFETCH(QString, symbol);
        QFETCH(int, result);
        QFETCH(QString, reason);
        QFETCH(QString, remedy);
        Rig rig;
        rig.nvml.fail(symbol.toStdString(), result);
        rig.probe();
        QVERIFY(rig.says(GpuRungId::Utilisation, qPrintable(reason), qPrintable(remedy)));
        const int shutdowns = symbol == "nvmlInit_v2" ? 0 : 1;
        rig.source.reset();
        QCOMPARE(rig.nvml.count("nvmlShutdown"), shutdowns);
        QCOMPARE(rig.nvml.samples, 0);
    }

    void withoutADriverEverySourceSaysSo() {
        Rig rig;
        rig.options.libraries = {.driver = "/none/libcuda.so.1",
                                 .cupti = "/none/libcupti.so.13",
                                 .nvml = "/none/libnvidia-ml.so.1"};
        rig.options.pmSampling = rig.options.tryActivity = true;
        rig.probe();
        QVERIFY(!rig.source->available());
        QCOMPARE(rig.source->reason(), "no NVIDIA driver");
        QCOMPARE(rig.source->smReason(), "no NVIDIA driver");
        QCOMPARE(rig.source->provenance(), "");
        for (const GpuRung& rung : rig.source->ladder()) {
            QCOMPARE(rung.state, State::Refused);
            QVERIFY(rung.refusal.message().starts_with("no NVIDIA driver"));
            QVERIFY(!rung.refusal.hint().empty());
        }
    }
};

QTEST_GUILESS_MAIN(TestGpuSource)
#include "test_gpu_source.moc"
