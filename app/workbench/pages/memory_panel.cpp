// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/workbench/pages/memory_panel.h"

#include <QHBoxLayout>
#include <QVBoxLayout>
#include <algorithm>

#include "app/workbench/backend/engine_host.h"
#include "app/workbench/pages/load_facts.h"
#include "app/workbench/platform/text.h"
#include "app/workbench/widgets/controls.h"
#include "engine/base/format.h"
#include "engine/base/machine.h"

namespace colibri::ui {
namespace {

// A name above a figure of 20 px.
TextLine* addFigure(QHBoxLayout* row, const QString& name) {
    auto* column = new QVBoxLayout;
    column->setSpacing(0);
    column->addWidget(new TextLine(name, type::caption(), Tone::Text3, 14));
    auto* figure = new TextLine(26);
    column->addWidget(figure);
    row->addLayout(column);
    return figure;
}

void setFigure(TextLine* line, double bytes, int weight, const QString& unknown = "n/a") {
    const MemoryUnit unit = memoryUnitFor(int64_t(std::abs(bytes)));
    if (!(bytes != 0)) return line->setSpans({{unknown, Tone::Text3, monoFont(20, weight)}});
    QString text = unit.text(bytes);
    if (text.startsWith('-')) text.replace(0, 1, "−");
    line->setSpans({{text, bytes < 0 ? Tone::Error : Tone::Text1, monoFont(20, weight)},
                    {unit.name, Tone::Text2, type::dense()}},
                   5);
}

}  // namespace

MemoryPanel::MemoryPanel(QWidget* parent) : QWidget(parent) {
    auto* column = new QVBoxLayout(this);
    column->setContentsMargins(0, 0, 0, 0);
    column->setSpacing(0);
    m_head = new PanelHead(
        "Memory", "estimate compared with free memory now, and with actual use after loading");
    m_ageLine = new TextLine("updated now", type::caption(), Tone::Text3, 14);
    m_head->addWidget(m_ageLine);
    auto* again = new IconButton("reset", "Refresh free memory");
    m_head->addWidget(again);
    column->addWidget(m_head);

    auto* body = new QVBoxLayout;
    body->setContentsMargins(20, 14, 20, 14);
    body->setSpacing(10);
    auto* figures = new QHBoxLayout;
    figures->setSpacing(36);
    m_needs = addFigure(figures, "This model");
    m_freeNow = addFigure(figures, "Free now");
    m_left = addFigure(figures, "Left after loading");
    figures->addStretch(1);
    m_verdict = new TagRow;
    figures->addWidget(m_verdict, 0, Qt::AlignBottom);
    body->addLayout(figures);
    m_bar = new MemoryBar;
    body->addWidget(m_bar);
    m_table = new DataTable({{"Part", 150},
                             {"GiB", 70, true, true},
                             {"Share", 56, true, true, Tone::Text2},
                             {"What", 0, false, false, Tone::Text3},
                             {"Actual GiB", 110, true, true}},
                            true);
    body->addWidget(m_table);
    column->addLayout(body);

    m_timer.setInterval(1000);
    connect(&m_timer, &QTimer::timeout, this, &MemoryPanel::refreshFree);
    connect(again, &QAbstractButton::clicked, this, [this] {
        m_age.invalidate();
        refreshFree();
    });
}

void MemoryPanel::showEvent(QShowEvent*) {
    refreshFree();
    m_timer.start();
}

void MemoryPanel::hideEvent(QHideEvent*) {
    m_timer.stop();
}

void MemoryPanel::refreshFree() {
    // Figures change every two seconds, so that they can be read.
    if (!m_age.isValid() || m_age.elapsed() >= 2000) {
        const int64_t own = m_actual ? m_actual->parts.total() : 0;
        setFree(memoryFreeNow() > 0 ? memoryFreeNow() + own : 0);
        m_age.start();
    }
    const qint64 seconds = m_age.elapsed() / 1000;
    m_ageLine->setText(seconds ? QString("updated %1 s ago").arg(seconds) : "updated now");
}

void MemoryPanel::setModel(const ContainerInfo& info, const KnobValues& knobs) {
    m_info = info;
    m_knobs = knobs;
    refresh();
}

void MemoryPanel::setActual(const std::optional<EngineMemory>& actual) {
    m_actual = actual;
    m_age.invalidate();
    refreshFree();
    refresh();
}

void MemoryPanel::setFree(int64_t bytes) {
    m_free = bytes;
    m_limit = bytes > 0 ? std::max<int64_t>(1, bytes - kMemoryReserve) : 0;
    m_age.start();
    refresh();
    emit limitChanged();
}

void MemoryPanel::refresh() {
    if (m_info.config.numLayers == 0) return;
    LoadShape shape = loadShape(m_info, m_knobs);
    m_estimate = estimateMemory(m_info, shape);
    shape.cacheSize = m_info.config.numExperts;
    m_all = estimateMemory(m_info, shape);
    m_bar->setMemory(m_estimate, m_all, m_limit, m_free,
                     m_info.config.moeLayerCount() == 0
                         ? QString("a dense model")
                         : QString("all %1 per layer").arg(m_info.config.numExperts));
    const double total = double(m_estimate.total());
    setFigure(m_needs, total, QFont::DemiBold);
    setFigure(m_freeNow, double(m_free), QFont::Normal, "n/a: unknown");
    setFigure(m_left, m_free > 0 ? double(m_free) - total : 0, QFont::Normal);
    if (m_limit <= 0) {
        m_verdict->setTags({});
    } else if (fits()) {
        m_verdict->setTags({okTag("fits, " + sizeText(double(kMemoryReserve)) + " reserve kept")});
    } else {
        TagLook over = errorTag("over the limit by " + sizeText(total - double(m_limit)));
        over.icon = "error";
        m_verdict->setTags({over});
    }
    refreshTable();
}

void MemoryPanel::refreshTable() {
    const MemoryUnit unit = memoryUnitFor(m_estimate.total());
    m_table->setColumnTitle(1, unit.name);
    m_table->setColumnTitle(4, QString("Actual ") + unit.name);
    const LoadShape shape = loadShape(m_info, m_knobs);
    const int64_t layers = m_info.config.moeLayerCount();
    const QString what[] = {
        str(m_info.denseTypeNames()) + ", always resident",
        layers == 0 ? QString("none: a dense model")
                    : count(shape.cacheSize) + " per layer, " + count(shape.cacheSize * layers) +
                          " of " + count(m_info.config.numExperts * layers),
        count(shape.contextLength) + " tokens, " +
            knobRow(KnobId::KvDtype).choices[size_t(shape.kvType)],
        "activations, reads in flight",
        "rings and plots",
    };
    QVector<QVector<TableCell>> rows;
    const double total = double(std::max<int64_t>(1, m_estimate.total()));
    for (qsizetype i = 0; i < memoryParts().size(); ++i) {
        const MemoryPart& part = memoryParts()[i];
        const double bytes = double(m_estimate.*part.bytes);
        TableCell actual{"after loading", Tone::Count, Tone::Text3, false};
        if (m_actual) actual = {unit.text(double(m_actual->parts.*part.bytes))};
        rows.push_back({{part.name, part.series},
                        {unit.text(bytes)},
                        {str(formatPercent(bytes / total, 0))},
                        {what[i]},
                        actual});
    }
    m_table->setRows(rows);
}

}  // namespace colibri::ui
