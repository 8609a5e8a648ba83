// SPDX-License-Identifier: GPL-3.0-or-later
#include <QTest>

#include <algorithm>
#include <cmath>
#include <random>

#include "profiler/metrics/histogram.h"

using namespace colibri;

class TestHistogram : public QObject {
    Q_OBJECT

    static double nearestRank(std::vector<uint64_t> values, double q) {
        std::sort(values.begin(), values.end());
        const size_t rank = size_t(std::max(1.0, std::ceil(q * double(values.size()))));
        return double(values[rank - 1]);
    }

private slots:
    void quantilesHoldThreeDigits() {
        std::mt19937_64 random(1);
        std::lognormal_distribution<double> ns(std::log(5e6), 2);
        std::vector<uint64_t> values;
        Histogram histogram;
        for (int i = 0; i < 20000; ++i) {
            values.push_back(uint64_t(std::clamp(ns(random), 1e6, 9e10)));
            histogram.add(values.back());
        }
        for (double q : {0.0, 0.01, 0.5, 0.9, 0.99, 0.999, 1.0}) {
            const double exact = nearestRank(values, q);
            QVERIFY2(std::abs(histogram.quantile(q) - exact) <= exact / 1024,
                     qPrintable(QString::number(q)));
        }
        QCOMPARE(histogram.min(), double(*std::min_element(values.begin(), values.end())));
        QCOMPARE(histogram.max(), double(*std::max_element(values.begin(), values.end())));
    }
    void aSingleValueIsExact() {
        Histogram histogram;
        histogram.add(1234567);
        for (double q : {0.0, 0.5, 0.99, 1.0}) QCOMPARE(histogram.quantile(q), 1234567.0);
        QCOMPARE(histogram.mean(), 1234567.0);
    }
    void emptyIsNotZero() {
        Histogram histogram;
        QVERIFY(std::isnan(histogram.quantile(0.5)) && std::isnan(histogram.mean()) &&
                std::isnan(histogram.min()) && std::isnan(histogram.max()));
    }
    void mergingEqualsAddingAll() {
        std::mt19937_64 random(2);
        Histogram a, b, all;
        for (int i = 0; i < 5000; ++i) {
            const uint64_t value = random() % 3'000'000'000;
            (i % 3 ? a : b).add(value);
            all.add(value);
        }
        a.merge(b);
        QCOMPARE(a.count(), all.count());
        for (double q : {0.01, 0.5, 0.99}) QCOMPARE(a.quantile(q), all.quantile(q));
        QCOMPARE(a.min(), all.min());
        QCOMPARE(a.max(), all.max());
    }
    void aSlidingWindowKeepsItsQuantiles() {
        std::mt19937_64 random(3);
        std::vector<uint64_t> values;
        Histogram window;
        for (int i = 0; i < 3000; ++i) {
            values.push_back(1'000 + random() % 50'000'000);
            window.add(values.back());
            if (values.size() > 500) window.remove(values[values.size() - 501]);
        }
        const std::vector<uint64_t> last(values.end() - 500, values.end());
        QCOMPARE(window.count(), 500);
        for (double q : {0.01, 0.5, 0.99, 1.0}) {
            const double exact = nearestRank(last, q);
            QVERIFY(std::abs(window.quantile(q) - exact) <= std::max(exact / 512, 600.0));
        }
        for (uint64_t value : last) window.remove(value);
        QCOMPARE(window.count(), 0);
        QVERIFY(std::isnan(window.max()));
    }
    void binsAreTheWholeRange() {
        Histogram histogram;
        for (uint64_t ns = 100; ns < 200'000'000'000; ns += ns / 7 + 1) histogram.add(ns);
        uint64_t count = 0;
        double last = -1;
        for (const auto& bin : histogram.bins()) {
            QVERIFY(bin.lowNs < bin.highNs && bin.lowNs >= last);
            last = bin.highNs;
            count += bin.count;
        }
        QCOMPARE(count, histogram.count());
    }
};

QTEST_GUILESS_MAIN(TestHistogram)
#include "test_histogram.moc"
