// SPDX-License-Identifier: GPL-3.0-or-later
// TimePlot: exports to files and to the clipboard.
#include <QBuffer>
#include <QDateTime>
#include <QFileInfo>
#include <QSvgGenerator>
#include <cmath>

#include "app/workbench/platform/save_file.h"
#include "app/workbench/platform/text.h"
#include "app/workbench/plots/marker_lane.h"
#include "app/workbench/plots/plot_canvas.h"
#include "app/workbench/plots/plot_data.h"
#include "app/workbench/plots/plot_margins.h"
#include "app/workbench/plots/time_plot.h"

namespace colibri::ui {
namespace {

constexpr int kLine = 16, kPad = 12;  // of the lines below the plot

// The header of a series' column: "by_prefetch_percent".
QString columnOf(const PlotSeries& series) {
    QString unit = metricRow(series.id).unit;
    return series.name().toLower().replace(' ', '_') + "_" +
           (unit == "%" ? QString("percent") : unit.replace('/', "_per_"));
}

// Knobs that are not at their defaults: "cache size 12, link limit 25".
QString knobsOf(const SessionSource& source) {
    QStringList words;
    for (const KnobRow& row : knobTable()) {
        const int64_t value = source.knobState(row.id).effective;
        if (value == source.knobLimits(row.id).defaultValue) continue;
        words << (str(knobTitle(row)) + " " + str(knobValueText(row, value))).toLower();
    }
    return words.isEmpty() ? QString("all at their defaults") : words.join(", ");
}

}  // namespace

QString TimePlot::fileName() const {
    return m_spec.title.toLower().replace(' ', '-');
}

QStringList TimePlot::provenance() const {
    QStringList lines;
    const ModelFacts* model = m_source ? m_source->model() : nullptr;
    if (model) lines << "model: " + model->name + ", " + model->weights;
    if (m_snapshot && !m_snapshot->sessionFile.empty())
        lines << "session: " + QFileInfo(str(m_snapshot->sessionFile)).fileName();
    lines << "exported: " + QDateTime::currentDateTime().toString(Qt::ISODate);
    if (model) lines << "knobs now: " + knobsOf(*m_source);
    return lines;
}

QString TimePlot::csv() const {
    QString out = QString("# %1 (%2): %3\n").arg(m_spec.title, m_spec.unit(), m_spec.definition);
    for (const PlotSeries& series : m_spec.series) {
        const MetricRow& row = metricRow(series.id);
        out += "# " + columnOf(series) + ": " + row.label + ", " + row.definition + "\n";
    }
    out += "# time: seconds since the session began; an empty field is a gap\n";
    for (const QString& line : provenance()) out += "# " + line + "\n";
    if (m_snapshot) {
        for (const Marker& marker : m_snapshot->markers) {
            if (marker.kind != Marker::Kind::Knob || marker.t < m_view->lower() ||
                marker.t > m_view->upper())
                continue;
            const QString label = str(marker.label).replace("\u2192", "->");
            out += QString("# change at %1: %2%3\n")
                       .arg(QString::number(marker.t, 'f', 3), label,
                            marker.automatic ? ", by the engine" : "");
        }
    }
    QStringList head{"time_s"};
    for (const PlotSeries& series : m_spec.series) head << columnOf(series);
    out += head.join(',') + "\n";
    if (!m_snapshot) return out;
    const SeriesData& first = m_snapshot->series[size_t(m_spec.series[0].id)];
    for (size_t i = 0; i < first.t.size(); ++i) {
        const double t = first.t[i];
        if (t < m_view->lower() || t > m_view->upper()) continue;
        QStringList line{QString::number(t, 'f', 3)};
        for (const PlotSeries& series : m_spec.series) {
            const SeriesData& data = m_snapshot->series[size_t(series.id)];
            const double v =
                i < data.t.size() && data.t[i] == t ? data.y[i] : valueAt(data, t, 0.05);
            line << (std::isfinite(v) ? QString::number(v, 'g', 7) : QString());
        }
        out += line.join(',') + "\n";
    }
    return out;
}

QSize TimePlot::exportSize() const {
    PlotHeader header;
    header.setLegend(PlotHeader::Legend::Full);
    header.setContent(legend(false));
    const int lane = 48, plot = kExportRect + kPlotTop + kPlotBottomAxis;
    return {std::max(kExportWidth, width()),
            header.preferredHeight() + lane + plot + kLine * int(provenance().size()) + 2 * kPad};
}

// A picture has its own marker lane, time axis and legend, and shows no cursor.
bool TimePlot::render(QPaintDevice* device) const {
    const QSize size = exportSize();
    QCPPainter painter;
    if (!painter.begin(device)) return false;
    painter.setMode(QCPPainter::pmVectorized, true);
    painter.fillRect(QRect(QPoint(), size), tone(Tone::Bg1));
    MarkerLane lane(m_view);
    lane.resize(size.width(), lane.height());
    lane.setSnapshot(m_snapshot);
    lane.paint(painter, false);
    painter.translate(0, lane.height());
    PlotHeader header;
    header.setLegend(PlotHeader::Legend::Full);
    header.setContent(legend(false));
    header.render(painter, size.width());
    painter.translate(0, header.preferredHeight());
    const int height = kExportRect + kPlotTop + kPlotBottomAxis;
    painter.fillRect(QRect(0, 0, size.width(), height), tone(Tone::Plot));
    m_canvas->setExport(true);
    m_canvas->toPainter(&painter, size.width(), height);
    m_canvas->setExport(false);
    painter.translate(0, height + kPad);
    double y = 0;
    for (const QString& line : provenance()) {
        drawElided(painter, QRectF(kPlotLeft, y, size.width() - kPlotLeft - kPlotRight, kLine),
                   Qt::AlignVCenter, line, type::caption(), tone(Tone::Text2));
        y += kLine;
    }
    const bool ok = painter.end();
    m_canvas->refresh();
    return ok;
}

QImage TimePlot::image() const {
    QImage image(exportSize() * 2, QImage::Format_ARGB32_Premultiplied);
    image.setDevicePixelRatio(2);
    image.fill(tone(Tone::Plot));
    return render(&image) ? image : QImage();
}

Status TimePlot::saveImage(const QString& path) const {
    QByteArray bytes;
    QBuffer buffer(&bytes);
    buffer.open(QIODevice::WriteOnly);
    bool ok = false;
    if (path.endsWith(".svg", Qt::CaseInsensitive)) {
        QSvgGenerator svg;
        svg.setOutputDevice(&buffer);
        svg.setSize(exportSize());
        svg.setViewBox(QRect(QPoint(), exportSize()));
        svg.setTitle(m_spec.title + ", " + m_spec.unit());
        svg.setDescription(m_spec.definition + "\n" + provenance().join('\n'));
        ok = render(&svg);
    } else {
        const QImage picture = image();
        ok = !picture.isNull() && picture.save(&buffer, "PNG");
    }
    if (!ok) return Status(Code::Internal, path.toStdString() + ": the picture could not be drawn");
    return saveFile(path, bytes);
}

}  // namespace colibri::ui
