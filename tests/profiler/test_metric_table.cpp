// SPDX-License-Identifier: GPL-3.0-or-later
// One table names the metrics; what is written about them elsewhere says the same.
#include <QFile>
#include <QTest>
#include <set>

#include "profiler/metrics/metric_table.h"

using namespace colibri;

class TestMetricTable : public QObject {
    Q_OBJECT

private slots:
    void eachMetricIsItsOwnRow() {
        std::set<std::string> labels;
        for (int i = 0; i < kSeriesCount; ++i) {
            const MetricRow& row = metricRow(SeriesId(i));
            QCOMPARE(row.id, SeriesId(i));
            QVERIFY2(labels.insert(row.label).second, row.label);
        }
    }

    // Label, unit and definition used to differ between plots, figures and the documentation.
    void theDocumentationNamesEveryMetricAsTheTableDoes() {
        QFile file(COLIBRI_SOURCE_DIR "/resources/help/session-file.md");
        QVERIFY(file.open(QIODevice::ReadOnly));
        const QString text = QString::fromUtf8(file.readAll());
        for (int i = 0; i < kSeriesCount; ++i) {
            const MetricRow& row = metricRow(SeriesId(i));
            const QString line =
                QString("\n| %1 | %2 | %3 |\n").arg(row.label, row.unit, row.definition);
            QVERIFY2(text.contains(line), qPrintable("not in session-file.md:" + line));
        }
    }
};

QTEST_GUILESS_MAIN(TestMetricTable)
#include "test_metric_table.moc"
