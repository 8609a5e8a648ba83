// SPDX-License-Identifier: GPL-3.0-or-later
#include <QTest>

#include "fake_machine.h"
#include "profiler/gpu/copy_rates.h"

using namespace colibri;

namespace {
constexpr double kSeconds = 0.02;
}

class TestCopyRates : public QObject {
    Q_OBJECT

private slots:
    void bothDirectionsAreMeasured() {
        FakeMachine machine;
        const Result<GpuCopyRates> rates = measureGpuCopies(0, kSeconds, machine.libraries.driver);
        QVERIFY2(rates.ok(), rates.status().text().c_str());
        // The library takes at least 1 and 2 ms for 64 MiB.
        QVERIFY(rates->toGpu > 0 && rates->toGpu <= (64 << 20) / 1e-3);
        QVERIFY(rates->fromGpu > 0 && rates->fromGpu <= (64 << 20) / 2e-3);
        QVERIFY(machine.driver.copiedToDevice > 0 && machine.driver.copiedToHost > 0);
        QCOMPARE(machine.driver.allocations, 0);
        QCOMPARE(machine.driver.contexts, 0);
    }
    void refusalsLeaveNothingBehind_data() {
        QTest::addColumn<QString>("symbol");
        QTest::addColumn<int>("error");
        QTest::newRow("no context") << "cuDevicePrimaryCtxRetain" << 46;
        QTest::newRow("no current context") << "cuCtxPushCurrent_v2" << 201;
        QTest::newRow("no host memory") << "cuMemAllocHost_v2" << 2;
        QTest::newRow("no GPU memory") << "cuMemAlloc_v2" << 2;
        QTest::newRow("device lost") << "cuMemcpyHtoD_v2" << 719;
        QTest::newRow("device lost later") << "cuMemcpyDtoH_v2" << 719;
    }
    void refusalsLeaveNothingBehind() {
        QFETCH(QString, symbol);
        QFETCH(int, error);
        FakeMachine machine;
        machine.driver.fail(symbol.toStdString(), error);
        const Result<GpuCopyRates> rates = measureGpuCopies(0, kSeconds, machine.libraries.driver);
        QCOMPARE(rates.status().code(), Code::Unsupported);
        QVERIFY(!rates.status().message().empty() && !rates.status().hint().empty());
        QCOMPARE(machine.driver.allocations, 0);
        QCOMPARE(machine.driver.contexts, 0);
    }
    void missingDriversAndFunctionsAreNamed() {
        QCOMPARE(measureGpuCopies(0, kSeconds, "/nonexistent").status().message(),
                 std::string("no NVIDIA driver (libcuda.so.1 cannot be loaded)"));
        const Status lacks = measureGpuCopies(0, kSeconds, FAKE_DRIVER_INCOMPLETE).status();
        QVERIFY2(lacks.message().find("cuDevicePrimaryCtxRelease_v2") != std::string::npos,
                 lacks.text().c_str());
        FakeMachine machine;
        QCOMPARE(measureGpuCopies(5, kSeconds, machine.libraries.driver).status().message(),
                 std::string("there is no GPU with this index"));
    }
};

QTEST_GUILESS_MAIN(TestCopyRates)
#include "test_copy_rates.moc"
