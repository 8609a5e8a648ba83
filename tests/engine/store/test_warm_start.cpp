// SPDX-License-Identifier: GPL-3.0-or-later
// Data kept between runs: the hot list with its warm start, and the calibration.
#include <QtTest>

#include "engine/base/file.h"
#include "engine/base/machine.h"
#include "engine/store/calibration.h"
#include "engine/store/hot_list.h"
#include "store_fixture.h"

using namespace colibri;
using namespace colibri::test;

class TestWarmStart : public QObject {
    Q_OBJECT

    QTemporaryDir m_cache;

    static ContainerInfo model() {
        ContainerInfo info;
        info.fingerprint = "0123abcd";
        info.expertType = DType::Q4_0;
        info.config.numExperts = 8;
        info.expertLayers.resize(2);
        return info;
    }

private slots:
    void init() {
        QVERIFY(m_cache.isValid());
        qputenv("XDG_CACHE_HOME", m_cache.path().toUtf8());
    }

    void listComesBackAsWritten() {
        const ContainerInfo info = model();
        const auto path = hotListPath(info);
        QVERIFY(path.string().find(m_cache.path().toStdString() + "/colibri/") == 0);
        QVERIFY(readHotList(path, info)->empty());  // none yet
        const std::vector<HotExpert> list{{3, 90}, {15, 12}, {0, 1}};
        QVERIFY(writeHotList(path, info, list).ok());
        QVERIFY(*readHotList(path, info) == list);
        ContainerInfo other = info;
        other.expertType = DType::Q8_0;
        QVERIFY(hotListPath(other) != path);
        QVERIFY(!readHotList(path, other).ok());
        other = info;
        other.fingerprint = "other";
        QVERIFY(!readHotList(path, other).ok());
        other = info;
        other.config.numExperts = 4;
        QVERIFY(!readHotList(path, other).ok());
    }

    void everyDamageIsSeen() {
        const ContainerInfo info = model();
        const auto path = hotListPath(info);
        QVERIFY(writeHotList(path, info, {{3, 90}, {15, 12}}).ok());
        const std::string good = *readTextFile(path);
        for (size_t i = 0; i < good.size(); ++i) {
            QVERIFY(writeFileAtomically(path, good.substr(0, i)).ok());
            QVERIFY(!readHotList(path, info).ok());
            std::string changed = good;
            changed[i] ^= 1;
            QVERIFY(writeFileAtomically(path, changed).ok());
            const auto read = readHotList(path, info);
            QVERIFY(!read.ok());
            QVERIFY(read.status().message().find(path.string()) == 0);
        }
    }

    void earlierRunsFadeAway() {
        const std::vector<HotExpert> merged =
            mergeHotLists({{1, 100}, {2, 1}, {900, 5}}, {0, 10, 0, 60, 60});
        QVERIFY((merged == std::vector<HotExpert>{{1, 60}, {3, 60}, {4, 60}}));
    }

    void freeSlotsAreFilledHottestFirst() {
        Telemetry telemetry;
        RigOptions options;
        options.layers = 2;
        options.experts = 8;
        options.cacheSize = 3;
        options.telemetry = &telemetry;
        Rig rig = makeRig(options);
        QVERIFY(useLayer(rig, 0, {7}) == 0);
        QVERIFY(rig.store->warm({5, 7, 14, 1, 0, 2, 3, 99}).ok());
        StoreFactory::settle(*rig.store);
        // 6 slots: 7 was resident; used experts come before those read by the warm start.
        QCOMPARE(StoreFactory::order(*rig.store), (std::vector<uint32_t>{2, 0, 1, 14, 5, 7}));
        StoreStats stats = rig.store->stats();
        QCOMPARE(stats.warmReads, uint64_t(5));
        QCOMPARE(stats.demandReads, uint64_t(1));
        QCOMPARE(stats.prefetchIssued, uint64_t(0));
        QCOMPARE(useLayer(rig, 0, {5, 1, 3}), 2);
        QCOMPARE(rig.store->lookupCounts()[5], uint32_t(1));
        QCOMPARE(rig.store->lookupCounts()[14], uint32_t(0));
        std::vector<Event> events;
        telemetry.drain(events);
        const auto warm = std::count_if(events.begin(), events.end(), [](const Event& e) {
            return e.type == EventType::ExpertRead && e.expertRead.reason == ReadReason::WarmStart;
        });
        QCOMPARE(warm, std::ptrdiff_t(5));
    }

    void demandGoesBeforeWarmStart() {
        RigOptions options;
        options.layers = 1;
        options.experts = 16;
        options.cacheSize = 16;
        Rig rig = makeRig(options);
        rig.reader->hold();
        QVERIFY(rig.store->warm({1, 2, 3, 4}).ok());
        rig.reader->waitStarted(1);
        std::vector<Ticket> tickets;
        rig.store->request(0, std::vector<uint16_t>{1, 9, 10}, tickets);
        rig.reader->waitStarted(3);
        QVERIFY(!tickets[0].hit);
        rig.reader->letGo();
        for (const Ticket& t : tickets) {
            auto pin = rig.store->wait(t);
            QVERIFY(pin.ok() && recordIs(pin->record(), 0, t.expert));
        }
        StoreFactory::settle(*rig.store);
        const std::vector<int64_t> started = rig.reader->started();
        QCOMPARE(started.front(), int64_t(1));
        QVERIFY((std::set<int64_t>(started.begin() + 1, started.begin() + 3) ==
                 std::set<int64_t>{9, 10}));
        QCOMPARE(rig.store->stats().warmReads, uint64_t(4));
        QCOMPARE(rig.store->stats().prefetchLate, uint64_t(0));
    }

    void failedReadAheadIsNoError() {
        RigOptions options;
        options.layers = 1;
        Rig rig = makeRig(options);
        rig.reader->failNext(2, 1);
        QVERIFY(rig.store->warm({1, 2, 3}).ok());
        StoreFactory::settle(*rig.store);
        QCOMPARE(rig.store->stats().warmReads, uint64_t(2));
        QCOMPARE(useLayer(rig, 0, {1, 2, 3}), 2);
    }

    void closesWhileWarming() {
        for (int round = 0; round < 10; ++round) {
            RigOptions options;
            options.linkLimit = 1;  // 8 ms for each record
            Rig rig = makeRig(options);
            QVERIFY(rig.store->warm({0, 1, 2, 3, 4, 5, 6, 7}).ok());
            if (round % 2 == 0) rig.reader->waitStarted(1);
            rig.store.reset();
        }
    }

    void calibrationIsMeasuredAndKept() {
        const ExpertFolder folder(2, 8, 65536);
        QVERIFY(!keptCalibration(folder.info));
        const std::atomic<bool> stop{false};
        const auto measured = measureCalibration(folder.info, stop);
        QVERIFY(measured.ok());
        QVERIFY(measured->diskBytesPerSecond > 0);
        QVERIFY(measured->memoryBytesPerSecond > 0);
        QCOMPARE(measured->reason.empty(), measured->direct);
        QVERIFY(keepCalibration(folder.info, *measured).ok());
        const auto kept = keptCalibration(folder.info);
        QVERIFY(kept.has_value());
        QCOMPARE(kept->diskBytesPerSecond, measured->diskBytesPerSecond);
        QCOMPARE(kept->reads, measured->reads);
        ExpertFolder other(2, 8, 4096);  // another read size has another rate
        QVERIFY(!keptCalibration(other.info));
        QVERIFY(writeFileAtomically(cacheDirectory() / "calibration.json", "{broken").ok());
        QVERIFY(!keptCalibration(folder.info));
        const std::atomic<bool> stopped{true};
        QCOMPARE(measureCalibration(folder.info, stopped).status().code(), Code::Cancelled);
    }

    void noHomeNoCache() {
        const QByteArray home = qgetenv("HOME");
        qputenv("XDG_CACHE_HOME", "relative");
        qunsetenv("HOME");
        QVERIFY(cacheDirectory().empty());
        QVERIFY(hotListPath(model()).empty());
        QVERIFY(readHotList(hotListPath(model()), model())->empty());
        qputenv("HOME", home);
    }
};

QTEST_GUILESS_MAIN(TestWarmStart)
#include "test_warm_start.moc"
