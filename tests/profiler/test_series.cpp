// SPDX-License-Identifier: GPL-3.0-or-later
#include <QTest>

#include <algorithm>
#include <cmath>

#include "profiler/metrics/series.h"

using namespace colibri;

class TestSeries : public QObject {
    Q_OBJECT
private slots:
    void memoryStaysFlatAndPeaksSurvive() {
        Series series(256);
        // One hour at 30 Hz, one spike.
        for (int i = 0; i < 108000; ++i) series.add(i / 30.0, i == 20000 ? 99.0 : std::sin(i));
        const auto [t, y, unavailable] = series.data();
        QVERIFY(t.size() <= 256 * 10 + 20 && t.size() == y.size());
        QVERIFY(std::is_sorted(t.begin(), t.end()));
        const auto peak = std::max_element(y.begin(), y.end());
        QCOMPARE(*peak, 99.0);
        QCOMPARE(t[size_t(peak - y.begin())], 20000 / 30.0);
        QVERIFY(t.front() < 60);
        // The newest points are complete.
        QCOMPARE(t[t.size() - 256], (107999 - 255) / 30.0);
        QCOMPARE(t.back(), 107999 / 30.0);
    }
    void gapsStayGaps() {
        Series series(16);
        for (int i = 0; i < 1000; ++i) series.add(i, i >= 300 && i < 600 ? std::nan("") : 1.0);
        const auto [t, y, unavailable] = series.data();
        bool gap = false;
        for (size_t i = 0; i < y.size(); ++i)
            gap = gap || (std::isnan(y[i]) && t[i] >= 290 && t[i] < 600);
        QVERIFY(gap);
    }
    void repeatedGapsAreOne() {
        Series series(64);
        series.add(0, std::nan(""));
        QCOMPARE(series.data().t.size(), 0);
        series.add(1, 5);
        for (int i = 2; i < 50; ++i) series.add(i, std::nan(""));
        QCOMPARE(series.data().t.size(), 2);
    }
};

QTEST_GUILESS_MAIN(TestSeries)
#include "test_series.moc"
