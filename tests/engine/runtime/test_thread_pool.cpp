// SPDX-License-Identifier: GPL-3.0-or-later
#include <sched.h>

#include <QtTest>
#include <atomic>
#include <chrono>
#include <set>
#include <thread>
#include <vector>

#include "engine/runtime/thread_pool.h"

using colibri::ThreadPool;

class TestThreadPool : public QObject {
    Q_OBJECT

private slots:
    void everyItemRunsOnce_data() {
        QTest::addColumn<int>("threads");
        for (const int n : {1, 2, 3, 8}) QTest::newRow(qPrintable(QString::number(n))) << n;
    }
    void everyItemRunsOnce() {
        QFETCH(int, threads);
        ThreadPool pool(threads);
        QCOMPARE(pool.threads(), threads);
        for (const int64_t items : {0, 1, 2, 7, 64, 1000, 12345}) {
            for (const int64_t grain : {1, 3, 100}) {
                std::vector<std::atomic<int>> seen(static_cast<size_t>(items));
                pool.parallelFor(items, grain, [&](int64_t begin, int64_t end) {
                    QVERIFY(begin >= 0 && begin < end && end <= items);
                    for (int64_t i = begin; i < end; ++i) ++seen[size_t(i)];
                });
                for (const auto& n : seen) QCOMPARE(n.load(), 1);
            }
        }
    }

    void resultsOfARegionAreVisible() {
        ThreadPool pool(4);
        std::vector<int64_t> data(1000, 0);  // plain memory, so that TSan sees races
        for (int round = 1; round <= 2000; ++round) {
            pool.parallelFor(1000, 1, [&](int64_t begin, int64_t end) {
                for (int64_t i = begin; i < end; ++i) data[size_t(i)] += i;
            });
        }
        for (size_t i = 0; i < data.size(); ++i) QCOMPARE(data[i], int64_t(2000 * i));
    }

    // A bug: a worker that checked while a region started took it for one it had already joined.
    void everyRegionIsJoined() {
        ThreadPool pool(2);
        for (int round = 0; round < 1500; ++round) {
            std::atomic<bool> joined{false};
            const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(20);
            pool.parallelForIndexed(1000, 1, [&](int thread, int64_t, int64_t) {
                if (thread == 1) joined = true;
                while (!joined && std::chrono::steady_clock::now() < end) std::this_thread::yield();
            });
            QVERIFY2(joined, qPrintable(QString::number(round)));
            for (int i = 0; i < round % 100 * 40; ++i) joined.store(false);  // what lies between
        }
    }

    void sleepingWorkersWakeUp() {
        ThreadPool pool(3);
        std::set<int> threads;
        for (int round = 0; round < 20; ++round) {
            std::this_thread::sleep_for(std::chrono::milliseconds(5));  // longer than workers spin
            std::vector<int> by(3, -1);
            // Each item waits for the others, so three threads must take part.
            std::atomic<int> arrived{0};
            pool.parallelForIndexed(3, 1, [&](int thread, int64_t begin, int64_t end) {
                QCOMPARE(end - begin, int64_t(1));
                by[size_t(begin)] = thread;
                ++arrived;
                while (arrived.load() < 3) std::this_thread::yield();
            });
            threads.insert(by.begin(), by.end());
            QCOMPARE(std::set<int>(by.begin(), by.end()).size(), size_t(3));
        }
        QCOMPARE(threads, (std::set<int>{0, 1, 2}));
    }

    void resizeKeepsWorking() {
        ThreadPool pool(1);
        for (const int n : {4, 2, 2, 1, 5}) {
            pool.resize(n);
            QCOMPARE(pool.threads(), n);
            std::atomic<int64_t> sum{0};
            pool.parallelFor(100, 1, [&](int64_t begin, int64_t end) {
                for (int64_t i = begin; i < end; ++i) sum += i;
            });
            QCOMPARE(sum.load(), int64_t(4950));
        }
    }

    // Threads run on the given cores if there is one for each.
    void threadsGoHomeAndKeepOff() {
        cpu_set_t allowed;
        QCOMPARE(sched_getaffinity(0, sizeof allowed, &allowed), 0);
        std::vector<int> cores;
        for (int core = 0; core < CPU_SETSIZE; ++core)
            if (CPU_ISSET(size_t(core), &allowed)) cores.push_back(core);
        const int first = cores.front(), last = cores.back();
        if (first == last) QSKIP("this process may run on one core only");
        const auto here = [] {
            cpu_set_t set;
            CPU_ZERO(&set);
            pthread_getaffinity_np(pthread_self(), sizeof set, &set);
            std::vector<int> list;
            for (int core = 0; core < CPU_SETSIZE; ++core)
                if (CPU_ISSET(size_t(core), &set)) list.push_back(core);
            return list;
        };
        std::thread([&] {  // does not change where the test's own thread may run
            ThreadPool pool(1);
            pool.place({first}, {});
            QCOMPARE(here(), std::vector<int>{first});
            pool.place({first}, {first});  // no core of the home set is left
            QCOMPARE(here(), std::vector<int>(cores.begin() + 1, cores.end()));
            pool.place({}, {last});
            QCOMPARE(here(), std::vector<int>(cores.begin(), cores.end() - 1));
            pool.place({}, cores);  // no core is left
            QCOMPARE(here(), cores);
            pool.place({last}, {});
            pool.resize(2);  // one core is not enough for two threads
            QCOMPARE(here(), cores);
            pool.resize(1);
            QCOMPARE(here(), std::vector<int>{last});
            pool.place({}, {});
            QCOMPARE(here(), cores);
        })
            .join();
    }
};

QTEST_GUILESS_MAIN(TestThreadPool)
#include "test_thread_pool.moc"
