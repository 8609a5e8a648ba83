// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/workbench/pages/data_table.h"

#include <algorithm>

namespace colibri::ui {
namespace {

constexpr int kTableRow = 24, kTablePad = 8;

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

void DataTable::paintEvent(QPaintEvent*) {
    QPainter p(this);
    const int edge = m_framed ? 1 : 0;
    int fixed = 2 * edge;
    for (const TableColumn& column : m_columns) fixed += column.width;
    const int rest = std::max(40, width() - fixed);
    const auto line = [&](int y) { p.fillRect(edge, y, width() - 2 * edge, 1, tone(Tone::Line1)); };
    const qsizetype last = m_columns.size() - 1;
    int x = edge;
    for (qsizetype c = 0; c <= last; ++c) {
        const TableColumn& column = m_columns[c];
        const int w = column.width ? column.width : rest;
        const int left = c == 0 ? m_left : kTablePad, right = c == last ? m_right : kTablePad;
        const int align = Qt::AlignVCenter | (column.right ? Qt::AlignRight : Qt::AlignLeft);
        drawElided(p, QRectF(x + left, edge, w - left - right, kTableRow - 1), align, column.title,
                   uiFont(11, QFont::Medium), tone(Tone::Text3));
        for (qsizetype r = 0; r < m_rows.size(); ++r) {
            if (c >= m_rows[r].size()) continue;
            const TableCell& cell = m_rows[r][c];
            QRectF box(x + left, edge + kTableRow * int(r + 1), w - left - right, kTableRow - 1);
            if (cell.swatch != Tone::Count) {
                fillBox(p, QRectF(box.left(), box.top() + 8, 8, 8), tone(cell.swatch),
                        Qt::transparent, 1);
                box.setLeft(box.left() + 16);
            }
            drawElided(p, box, align, cell.text,
                       column.mono && cell.mono ? type::mono() : type::dense(),
                       tone(cell.tone == Tone::Count ? column.tone : cell.tone));
        }
        x += w;
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
