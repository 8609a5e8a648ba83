// SPDX-License-Identifier: GPL-3.0-or-later
#include <QTemporaryDir>
#include <QtTest>
#include <cmath>
#include <fstream>

#include "engine/base/machine.h"
#include "profiler/machine/kernel_probe.h"
#include "profiler/machine/measure_machine.h"

using namespace colibri;
namespace fs = std::filesystem;

class TestMachineProfile : public QObject {
    Q_OBJECT
    QTemporaryDir m_dir, m_cache;

    static MachineProfile made() {
        MachineProfile p;
        p.machine = machineFingerprint();
        p.folder = "/data";
        p.readPath = "io_uring";
        p.direct = true;
        p.isa = "AVX2";
        p.measuredAt = 1'700'000'000;
        p.memory = {{1, -1, -1, 10e9}, {2, 0, 1, 15e9}};
        p.disk = {{65536, 4, 1e9}};
        p.kernels = {{DType::Q8_0, 12e9, 150e9}};
        p.gpu = {20e9, 18e9, ""};
        return p;
    }

private slots:
    void initTestCase() { qputenv("XDG_CACHE_HOME", m_cache.path().toUtf8()); }

    void profilesAreKept() {
        QVERIFY(!keptProfile());
        QVERIFY(keepProfile(made()).ok());
        const std::optional<MachineProfile> kept = keptProfile();
        QVERIFY(kept.has_value());
        QCOMPARE(profileJson(*kept), profileJson(made()));
        QCOMPARE(kept->bestMemory(), 15e9);
        QVERIFY(kept->kernel(DType::Q8_0) != nullptr);
        QVERIFY(kept->kernel(DType::F32) == nullptr);
    }
    void profilesOfOtherMachinesAndDamagedOnesAreIgnored() {
        MachineProfile other = made();
        other.machine = "another";
        QVERIFY(keepProfile(other).ok());
        QVERIFY(!keptProfile());
        for (const char* text : {"", "[]", "{", R"({"schema": 1})", R"({"schema": 99})"}) {
            std::ofstream(cacheDirectory() / "machine.json") << text;
            QVERIFY2(!keptProfile(), text);
        }
    }
    void everythingIsMeasured() {
        const CancelFlag cancel = false;
        std::set<std::string> stages;
        const Result<MachineProfile> p = measureMachine(
            m_dir.path().toStdString(), [&](const Progress& step) { stages.insert(step.stage); },
            cancel);
        QVERIFY2(p.ok(), p.status().text().c_str());
        QCOMPARE(stages.size(), size_t(4));
        QCOMPARE(p->disk.size(), size_t(16));
        for (const auto& d : p->disk) QVERIFY(d.bytesPerSecond > 0);
        QVERIFY(!p->memory.empty());
        for (const auto& m : p->memory) QVERIFY(m.bytesPerSecond > 0);
        QCOMPARE(p->kernels.size(), size_t(kDTypeCount));
        for (const auto& k : p->kernels)
            QVERIFY2(k.weightBytesPerSecond > 0 && k.flopsPerSecond > 0,
                     std::string(dtypeName(k.type)).c_str());
        QVERIFY(p->gpu.reason.empty() == (p->gpu.toGpu > 0));
        QCOMPARE(p->machine, machineFingerprint());
        // The temporary file is gone.
        QVERIFY(fs::is_empty(m_dir.path().toStdString()));
    }
    void errorsAndCancellation() {
        CancelFlag cancel = true;
        QCOMPARE(measureMachine(m_dir.path().toStdString(), {}, cancel).status().code(),
                 Code::Cancelled);
        QVERIFY(fs::is_empty(m_dir.path().toStdString()));
        cancel = false;
        QCOMPARE(measureMachine("/nonexistent", {}, cancel).status().code(), Code::BadInput);
    }
    // Processors that do not exist give no rate instead of a wrong one.
    void memoryOfMissingProcessorsIsUnknown() {
        QCOMPARE(measureMemoryRead(1, 0.01, {{1000}, {}}), 0.0);
        QVERIFY(measureMemoryRead(1, 0.01, {{}, {}}) > 0);
    }
};

QTEST_GUILESS_MAIN(TestMachineProfile)
#include "test_machine_profile.moc"
