// SPDX-License-Identifier: GPL-3.0-or-later
// What the docks beside the plots are made of: a panel with a 32 px head, sections that scroll and
// a foot that does not; rows of a label and a control.
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

// A part of a dock: hairline above (not the first), title, content with a padding of 12.
class DockSection : public QWidget {
    Q_OBJECT

public:
    DockSection(const QString& title, bool first, QWidget* parent = nullptr);
    void setTitle(const QString& title);
    QVBoxLayout* body() const { return m_body; }
    // A row 28 high: label at the left, the control takes the rest or stands at the right.
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
    void setHeadVisible(bool on);     // a narrow window names the dock in its tab
    void setTag(const TagLook& tag);  // at the right of the head; no text: none

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

// Docks of one place: a stack, and their tabs at its bottom edge.
class SideDocks : public QWidget {
    Q_OBJECT

public:
    explicit SideDocks(QWidget* parent = nullptr);
    // Takes the dock; one that was here before comes back to its place.
    void put(const QString& key, const QString& title, QWidget* dock);
    void showDock(const QString& key);
    QString current() const;

protected:
    void paintEvent(QPaintEvent*) override;

private:
    struct Place {
        QString key;
        QWidget* holder;
        TabButton* tab;
    };
    QStackedWidget* m_stack;
    QHBoxLayout* m_tabs;
    std::vector<Place> m_places;
};

}  // namespace colibri::ui
