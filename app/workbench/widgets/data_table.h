// SPDX-License-Identifier: GPL-3.0-or-later
// A small read-only table of figures: column heads in the caption font, rows of 24 px, hairlines.
#pragma once

#include <QVector>
#include <QWidget>

#include "app/workbench/widgets/paint.h"

namespace colibri::ui {

struct TableColumn {
    QString title;
    int width = 0;       // px; 0: takes the rest
    bool right = false;  // aligned right
    bool mono = false;
    Tone tone = Tone::Text1;
};
struct TableCell {
    QString text;
    Tone swatch = Tone::Count;  // a square of this colour before the text
    Tone tone = Tone::Count;    // Count: that of the column
    bool mono = true;           // false: a word among figures
};

class DataTable : public QWidget {
    Q_OBJECT

public:
    DataTable(const QVector<TableColumn>& columns, bool framed, QWidget* parent = nullptr);
    void setRows(const QVector<QVector<TableCell>>& rows);
    void setColumnTitle(int column, const QString& title);
    const QVector<QVector<TableCell>>& rows() const { return m_rows; }
    void setPadding(int left, int right);           // of the first and the last column
    void setInnerPadding(int px) { m_inner = px; }  // between columns, on either side
    // Whether all texts fit their cells at the current width.
    bool fits() const;
    QSize sizeHint() const override;

protected:
    void paintEvent(QPaintEvent*) override;

private:
    QVector<TableColumn> m_columns;
    QVector<QVector<TableCell>> m_rows;
    bool m_framed;
    struct Slot {
        int left, width;
    };  // of the text in a column
    QVector<Slot> textSlots() const;
    int m_left = 8, m_right = 8, m_inner = 8;
};

}  // namespace colibri::ui
