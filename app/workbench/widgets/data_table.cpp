// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/workbench/widgets/data_table.h"

#include <algorithm>

namespace colibri::ui {
namespace {

constexpr int kTableRow = 24;

}  // namespace

DataTable::DataTable(const QVector<TableColumn>& columns, bool framed, QWidget* parent)
    : QWidget(parent), m_columns(columns), m_framed(framed) {
    setSizePolicy(QSizePolicy::Expanding, QSizePolicy::Fixed);
}

void DataTable::setPadding(int left, int right) {
    m_left = left;
    m_right = right;
}

void DataTable::setColumnTitle(int column, const QString& title) {
    m_columns[column].title = title;
    update();
}

void DataTable::setRows(const QVector<QVector<TableCell>>& rows) {
    m_rows = rows;
    QStringList lines;
    for (const auto& row : rows) {
        QStringList cells;
        for (const TableCell& cell : row) cells.push_back(cell.text);
        lines.push_back(cells.join(" "));
    }
    setAccessibleName(lines.join("; "));
    updateGeometry();
    update();
}

QSize DataTable::sizeHint() const {
    return {320, kTableRow * (1 + int(m_rows.size())) + (m_framed ? 2 : 0)};
}

QVector<DataTable::Slot> DataTable::textSlots() const {
    const int edge = m_framed ? 1 : 0;
    int fixed = 2 * edge;
    for (const TableColumn& column : m_columns) fixed += column.width;
    const int rest = std::max(40, width() - fixed);
    QVector<Slot> textSlots;
    int x = edge;
    for (qsizetype c = 0; c < m_columns.size(); ++c) {
        const int w = m_columns[c].width ? m_columns[c].width : rest;
        const int left = c == 0 ? m_left : m_inner;
        const int right = c + 1 == m_columns.size() ? m_right : m_inner;
        textSlots.push_back({x + left, w - left - right});
        x += w;
    }
    return textSlots;
}

bool DataTable::fits() const {
    const QVector<Slot> all = textSlots();
    for (const auto& row : m_rows)
        for (qsizetype c = 0; c < row.size(); ++c) {
            const bool mono = m_columns[c].mono && row[c].mono;
            const double swatch = row[c].swatch == Tone::Count ? 0 : 16;
            if (textWidth(mono ? type::mono() : type::dense(), row[c].text) + swatch >
                all[c].width + 0.5)
                return false;
        }
    return true;
}

void DataTable::paintEvent(QPaintEvent*) {
    QPainter p(this);
    const int edge = m_framed ? 1 : 0;
    const QVector<Slot> all = textSlots();
    const auto line = [&](int y) { p.fillRect(edge, y, width() - 2 * edge, 1, tone(Tone::Line1)); };
    const qsizetype last = m_columns.size() - 1;
    for (qsizetype c = 0; c <= last; ++c) {
        const TableColumn& column = m_columns[c];
        const auto [x, w] = all[c];
        const int align = Qt::AlignVCenter | (column.right ? Qt::AlignRight : Qt::AlignLeft);
        drawElided(p, QRectF(x, edge, w, kTableRow - 1), align, column.title,
                   uiFont(11, QFont::Medium), tone(Tone::Text3));
        for (qsizetype r = 0; r < m_rows.size(); ++r) {
            if (c >= m_rows[r].size()) continue;
            const TableCell& cell = m_rows[r][c];
            QRectF box(x, edge + kTableRow * int(r + 1), w, kTableRow - 1);
            if (cell.swatch != Tone::Count) {
                fillBox(p, QRectF(box.left(), box.top() + 8, 8, 8), tone(cell.swatch),
                        Qt::transparent, 1);
                box.setLeft(box.left() + 16);
            }
            drawElided(p, box, align, cell.text,
                       column.mono && cell.mono ? type::mono() : type::dense(),
                       tone(cell.tone == Tone::Count ? column.tone : cell.tone));
        }
    }
    line(edge + kTableRow - 1);
    for (qsizetype r = 0; r + 1 < m_rows.size(); ++r) line(edge + kTableRow * int(r + 2) - 1);
    if (m_framed) {
        p.setPen(QPen(tone(Tone::Line1), 1));
        p.setBrush(Qt::NoBrush);
        p.drawRect(QRectF(0.5, 0.5, width() - 1, height() - 1));
    }
}

}  // namespace colibri::ui
