// SPDX-License-Identifier: GPL-3.0-or-later
// Parts of the docks beside the plots: a panel with a head of 32 px, sections that scroll, a foot
// that does not, and rows with a label and a control. GUI thread only.
#pragma once

#include <QScrollArea>
#include <QVBoxLayout>
#include <QWidget>
#include <vector>

#include "app/workbench/widgets/paint.h"

class QHBoxLayout;
class QStackedWidget;

namespace colibri::ui {

class TabButton;
class TextLine;

// A section of a dock: a hairline above (except the first one), a title, content with a padding of
// 12 px.
class DockSection : public QWidget {
    Q_OBJECT

public:
    DockSection(const QString& title, bool first, QWidget* parent = nullptr);
    void setTitle(const QString& title);
    QVBoxLayout* body() const { return m_body; }
    // Adds a row, 28 px high, with the label at the left. The control takes the rest, or is at the
    // right.
    QWidget* addRow(const QString& label, QWidget* control, bool stretch);

protected:
    void paintEvent(QPaintEvent*) override;

private:
    bool m_first;
    TextLine* m_title;
    QVBoxLayout* m_body;
};

class DockPanel : public QWidget {
    Q_OBJECT

public:
    DockPanel(const QString& icon, const QString& title, QWidget* parent = nullptr);
    void setHeadVisible(bool on);     // a small window shows the name in a tab instead
    void setTag(const TagLook& tag);  // at the right of the head; without text: none

protected:
    DockSection* addSection(const QString& title);
    QVBoxLayout* foot() const { return m_foot; }
    QScrollArea* scroll() const { return m_scroll; }
    void paintEvent(QPaintEvent*) override;

private:
    class Head;
    Head* m_head;
    QScrollArea* m_scroll;
    QVBoxLayout *m_sections, *m_foot;
};

// A stack of docks, with tabs at the bottom edge.
class SideDocks : public QWidget {
    Q_OBJECT

public:
    explicit SideDocks(QWidget* parent = nullptr);
    // Takes the dock. A dock that was here before returns to its old position.
    void put(const QString& key, const QString& title, QWidget* dock);
    void showDock(const QString& key);
    QString current() const;

protected:
    void paintEvent(QPaintEvent*) override;

private:
    struct Entry {
        QString key;
        QWidget* holder;
        TabButton* tab;
    };
    QStackedWidget* m_stack;
    QHBoxLayout* m_tabs;
    std::vector<Entry> m_entries;
};

}  // namespace colibri::ui
