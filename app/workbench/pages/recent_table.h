// SPDX-License-Identifier: GPL-3.0-or-later
// The recent list of the welcome page. Each row is a button: Enter or a click opens it.
#pragma once

#include <QAbstractButton>
#include <QVector>
#include <QWidget>

#include "app/workbench/backend/recent_list.h"
#include "app/workbench/widgets/controls.h"

class QScrollArea;
class QVBoxLayout;

namespace colibri::ui {

class RecentRow : public QAbstractButton {
    Q_OBJECT

public:
    RecentRow(const RecentEntry& entry, bool last, QWidget* parent = nullptr);
    const RecentEntry& entry() const { return m_entry; }
    QSize sizeHint() const override { return {400, 44}; }

protected:
    void paintEvent(QPaintEvent*) override;
    void enterEvent(QEnterEvent*) override { update(); }
    void leaveEvent(QEvent*) override { update(); }
    void keyPressEvent(QKeyEvent*) override;

private:
    RecentEntry m_entry;
    bool m_last;
};

class RecentTable : public QWidget {
    Q_OBJECT

public:
    explicit RecentTable(RecentList& list, QWidget* parent = nullptr);
    Segment* filter() const { return m_filter; }
    QVector<RecentRow*> rows() const;
    int heightFor(int rows) const;

signals:
    void openRequested(const QString& path);
    void removeRequested(const colibri::ui::RecentEntry& entry);

protected:
    void paintEvent(QPaintEvent*) override;
    void resizeEvent(QResizeEvent*) override;

private:
    void refresh();
    void showMenu(RecentRow* row, const QPoint& at);

    RecentList& m_list;
    Segment* m_filter;
    QScrollArea* m_scroll;
    QWidget* m_content;
    QVBoxLayout* m_rows;
    QString m_emptyTitle, m_emptyText;
};

}  // namespace colibri::ui
