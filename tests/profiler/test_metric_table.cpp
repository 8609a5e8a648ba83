// SPDX-License-Identifier: GPL-3.0-or-later
// One table defines the metrics, and other texts about them agree with it.
#include <QFile>
#include <QTest>
#include <set>

#include "profiler/metrics/metric_table.h"

using namespace colibri;

class TestMetricTable : public QObject {
    Q_OBJECT

    static QString textOf(const QString& name) {
        QFile file(COLIBRI_SOURCE_DIR "/resources/help/" + name);
        return file.open(QIODevice::ReadOnly) ? QString::fromUtf8(file.readAll()) : QString();
    }

private slots:
    void eachMetricIsItsOwnRow() {
        std::set<std::string> labels;
        for (int i = 0; i < kSeriesCount; ++i) {
            const MetricRow& row = metricRow(SeriesId(i));
            QCOMPARE(row.id, SeriesId(i));
            QVERIFY2(labels.insert(row.label).second, row.label);
        }
    }

    // Labels, units and definitions differed between plots, figures and the documentation.
    void theDocumentationNamesEveryMetricAsTheTableDoes() {
        const QString text = textOf("session-file.md");
        for (int i = 0; i < kSeriesCount; ++i) {
            const MetricRow& row = metricRow(SeriesId(i));
            const QString line =
                QString("\n| %1 | %2 | %3 |\n").arg(row.label, row.unit, row.definition);
            QVERIFY2(text.contains(line), qPrintable("not in session-file.md:" + line));
        }
    }

    // The number of values for a P99 was defined in five places.
    void theGuideNamesTheThresholdOfAP99() {
        const QString text = textOf("user-guide.md");
        const QString words =
            QString("P99 is grey while there are fewer than %1 gaps").arg(kEnoughForP99);
        QVERIFY2(text.contains(words), qPrintable("not in user-guide.md: " + words));
    }
};

QTEST_GUILESS_MAIN(TestMetricTable)
#include "test_metric_table.moc"
