// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/workbench/pages/expected_panel.h"

#include <algorithm>
#include <cmath>

#include "app/workbench/backend/recent_list.h"
#include "app/workbench/platform/text.h"
#include "app/workbench/widgets/paint.h"
#include "engine/base/format.h"
#include "profiler/metrics/metric_table.h"

namespace colibri::ui {
namespace {

struct Cell {
    QString name, value, unit, note;
    Tone tone = Tone::Text1;
};

QVector<Cell> cellsOf(const ModelRun& run) {
    const bool enough = run.gaps >= kEnoughForP99;
    const QString n = str(formatCount(int64_t(run.gaps)));
    const double megabytes = run.bytesPerToken / 1e6;
    return {
        {"Decode rate", str(formatSig(run.decodeTokS)), "tok/s", "over " + n + " tokens"},
        {"ITL P99", str(formatSig(run.itlP99Ms)), "ms",
         "n = " + n + (enough ? QString() : QString(" < %1").arg(kEnoughForP99)),
         enough ? Tone::Text1 : Tone::Text3},
        {"Read per token", str(formatSig(megabytes)), "MB",
         str(formatPercent(run.missShare)) + " of lookups miss"},
        {"Waiting for the disk", str(formatFixed(run.stallShare * 100, 0)), "%",
         "share of reply time"},
    };
}

}  // namespace

ExpectedPanel::ExpectedPanel(QWidget* parent) : QWidget(parent) {
    setFixedHeight(68);
    setSizePolicy(QSizePolicy::Expanding, QSizePolicy::Fixed);
}

void ExpectedPanel::setRun(const std::optional<ModelRun>& run) {
    m_run = run;
    QString text = "No measurement yet";
    if (run) {
        text.clear();
        for (const Cell& cell : cellsOf(*run))
            text += cell.name + " " + cell.value + " " + cell.unit + ", " + cell.note + "; ";
    }
    setAccessibleName(text);
    update();
}

QString ExpectedPanel::caption() const {
    if (!m_run) return {};
    return "from the last session on this machine, " +
           usedText(m_run->when, QDateTime::currentDateTime()) +
           (m_run->knobs.isEmpty() ? QString() : ": " + m_run->knobs);
}

void ExpectedPanel::paintEvent(QPaintEvent*) {
    QPainter p(this);
    if (!m_run) {
        const QString what = "No measurement yet";
        const QString why = "Chat with the model once to see its speed here.";
        paintIcon(p, "chart", QRectF(20, 24, 20, 20), tone(Tone::Text3));
        drawElided(p, QRectF(52, 16, width() - 64, 18), Qt::AlignVCenter, what, type::bodyMedium(),
                   tone(Tone::Text1));
        drawElided(p, QRectF(52, 34, width() - 64, 16), Qt::AlignVCenter, why, type::dense(),
                   tone(Tone::Text3));
        return;
    }
    const QVector<Cell> cells = cellsOf(*m_run);
    const double each = double(width()) / double(cells.size());
    for (qsizetype i = 0; i < cells.size(); ++i) {
        const Cell& cell = cells[i];
        const double x = std::round(double(i) * each);
        if (i) p.fillRect(QRectF(x, 0, 1, height()), tone(Tone::Line1));
        const QRectF box(x + (i ? 16 : 20), 7, each - 20, 54);
        drawElided(p, QRectF(box.left(), 7, box.width(), 14), Qt::AlignVCenter, cell.name,
                   type::caption(), tone(Tone::Text3));
        QFont figure = type::figure();
        figure.setLetterSpacing(QFont::AbsoluteSpacing, -0.3);
        drawSpans(p, QRectF(box.left(), 21, box.width(), 26),
                  {{cell.value, cell.tone, figure}, {cell.unit, Tone::Text2, type::dense()}}, 4);
        drawElided(p, QRectF(box.left(), 47, box.width(), 14), Qt::AlignVCenter, cell.note,
                   type::caption(), tone(Tone::Text3));
    }
}

}  // namespace colibri::ui
