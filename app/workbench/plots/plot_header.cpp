// SPDX-License-Identifier: GPL-3.0-or-later
// PlotHeader: title line, definition and the legend table.
#include <QMouseEvent>
#include <cmath>

#include "app/workbench/plots/time_plot.h"

namespace colibri::ui {
namespace {

constexpr double kColumn = 46, kName = 84, kRow = 15, kTop = 6, kRight = 14;

}  // namespace

PlotHeader::PlotHeader(QWidget* parent) : QWidget(parent) {
    setSizePolicy(QSizePolicy::Expanding, QSizePolicy::Fixed);
}

void PlotHeader::setLegend(Legend legend) {
    m_legend = legend;
    setFixedHeight(preferredHeight());
    update();
}

void PlotHeader::setContent(const Content& content) {
    if (content == m_content) return;
    m_content = content;
    if (preferredHeight() != height()) setFixedHeight(preferredHeight());
    update();
}

int PlotHeader::preferredHeight() const {
    if (m_legend == Legend::Line || m_content.entries.empty()) return 28;
    const double rows = double(std::max<size_t>(2, m_content.entries.size()) + 1);
    return int(kTop + rows * kRow + 4);
}

QStringList PlotHeader::columns() const {
    // The column of the cursor is kept while there is no cursor, so that names do not move.
    QStringList out{"cursor"};
    if (m_legend == Legend::Full) {
        out << "last"
            << "min"
            << "third"
            << "max";
    } else {
        out << "last"
            << "max";
    }
    return out;
}

int PlotHeader::entryAt(const QPointF& at) const {
    if (m_legend == Legend::Line) return -1;
    const double left = width() - kRight - columns().size() * kColumn - kName;
    const int row = int(std::floor((at.y() - kTop) / kRow)) - 1;
    if (at.x() < left || row < 0 || row >= int(m_content.entries.size())) return -1;
    return row;
}

void PlotHeader::mousePressEvent(QMouseEvent* event) {
    const int entry = entryAt(event->position());
    if (event->button() == Qt::LeftButton && entry >= 0) emit entryClicked(entry);
}

void PlotHeader::mouseDoubleClickEvent(QMouseEvent* event) {
    const int entry = entryAt(event->position());
    if (entry >= 0) emit entryIsolated(entry);
}

void PlotHeader::paintEvent(QPaintEvent*) {
    QPainter p(this);
    render(p, width());
}

void PlotHeader::renderLine(QPainter& p, double width) const {
    double right = width - kRight;
    for (size_t i = m_content.entries.size(); i-- > 0;) {
        const Entry& e = m_content.entries[i];
        const QString value = e.cursor.isEmpty() ? e.last : e.cursor;
        const bool over = e.cursor.isEmpty() ? e.over : e.cursorOver;
        right -= textWidth(type::monoSmall(), value);
        drawText(p, QRectF(right, kTop, 100, 18), Qt::AlignVCenter, value, type::monoSmall(),
                 tone(over                           ? Tone::Error
                      : e.grey && e.cursor.isEmpty() ? Tone::Text3
                                                     : Tone::Text1));
        right -= 5 + textWidth(type::caption(), e.name);
        drawText(p, QRectF(right, kTop, 200, 18), Qt::AlignVCenter, e.name, type::caption(),
                 tone(e.hidden ? Tone::TextOff : Tone::Text2));
        right -= 15;
        p.fillRect(QRectF(right, kTop + 8, 10, 2), tone(seriesTone(e.color)));
        right -= 12;
    }
    if (m_content.cursorTime.isEmpty()) return;
    right -= textWidth(type::monoSmall(), m_content.cursorTime);
    drawText(p, QRectF(right, kTop, 100, 18), Qt::AlignVCenter, m_content.cursorTime,
             type::monoSmall(), tone(Tone::Accent));
}

void PlotHeader::renderTable(QPainter& p, double width, double* left) const {
    const QStringList cols = columns();
    double x = width - kRight - cols.size() * kColumn;
    const double nameX = x - kName;
    *left = nameX;
    for (size_t i = 0; i < m_content.entries.size(); ++i) {
        const Entry& e = m_content.entries[i];
        const double y = kTop + (double(i) + 1) * kRow;
        const QRectF swatch(nameX, y + 7, 10, 2);
        if (e.hidden) {
            p.setPen(tone(Tone::TextOff));
            p.drawRect(QRectF(nameX, y + 5, 9, 4));
        } else {
            p.fillRect(swatch, tone(seriesTone(e.color)));
        }
        drawElided(p, QRectF(nameX + 16, y, kName - 18, kRow), Qt::AlignVCenter, e.name,
                   type::caption(), tone(e.hidden ? Tone::TextOff : Tone::Text2));
    }
    for (const QString& column : cols) {
        const QRectF head(x, kTop, kColumn, kRow);
        const bool cursor = column == "cursor";
        drawText(p, head, Qt::AlignRight | Qt::AlignVCenter,
                 cursor              ? m_content.cursorTime
                 : column == "third" ? m_content.thirdName
                                     : column,
                 cursor ? type::monoSmall() : type::caption(),
                 tone(cursor ? Tone::Accent : Tone::Text3));
        for (size_t i = 0; i < m_content.entries.size(); ++i) {
            const Entry& e = m_content.entries[i];
            QString value = e.last;
            bool over = e.over;
            const bool grey = cursor ? false : column == "third" ? e.thirdGrey : e.grey;
            if (cursor) value = e.cursor, over = e.cursorOver;
            if (column == "min") value = e.min, over = e.minOver;
            if (column == "third") value = e.third, over = e.thirdOver;
            if (column == "max") value = e.max, over = e.maxOver;
            const QRectF cell(x, kTop + (double(i) + 1) * kRow, kColumn, kRow);
            const Tone ink = e.hidden ? Tone::TextOff
                             : over   ? Tone::Error
                             : cursor ? Tone::Accent
                             : grey   ? Tone::Text3
                                      : Tone::Text1;
            drawText(p, cell, Qt::AlignRight | Qt::AlignVCenter, value, type::monoSmall(),
                     tone(ink));
            if (over) {
                const double w = textWidth(type::monoSmall(), value);
                p.fillRect(
                    QRectF(std::round(cell.right() - w), cell.bottom() - 2, std::round(w), 1),
                    tone(ink));
            }
        }
        x += kColumn;
    }
}

void PlotHeader::render(QPainter& p, double width) const {
    p.fillRect(QRectF(0, 0, width, preferredHeight()), tone(Tone::Bg1));
    double left = width - kRight;
    if (!m_content.entries.empty()) {
        if (m_legend == Legend::Line) {
            renderLine(p, width);
        } else {
            renderTable(p, width, &left);
        }
    } else if (!m_content.right.isEmpty()) {
        const double w = textWidth(type::caption(), m_content.right);
        left -= w + m_content.rightInset;
        drawText(p, QRectF(left, kTop, w, 18), Qt::AlignVCenter, m_content.right, type::caption(),
                 tone(Tone::Text3));
    }
    double x = 12;
    drawText(p, QRectF(x, kTop, 300, 18), Qt::AlignVCenter, m_content.title, type::bodyBold(),
             tone(Tone::Text1));
    x += textWidth(type::bodyBold(), m_content.title) + 6;
    drawText(p, QRectF(x, kTop, 100, 18), Qt::AlignVCenter, m_content.unit, type::body(),
             tone(Tone::Text3));
    x += textWidth(type::body(), m_content.unit) + 8;
    if (m_legend != Legend::Line) {
        for (const TagLook& tag : m_content.tags) {
            if (x + tagWidth(tag) > left - 8) break;
            drawTag(p, x, kTop + 9, tag);
            x += tagWidth(tag) + 6;
        }
    }
    if (m_legend != Legend::Line && !m_content.entries.empty()) {
        drawElided(p, QRectF(12, kTop + 20, left - 12 - 12, 14), Qt::AlignVCenter,
                   m_content.definition, type::caption(), tone(Tone::Text3));
    }
}

}  // namespace colibri::ui
