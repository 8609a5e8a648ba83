// SPDX-License-Identifier: GPL-3.0-or-later
// The top bar: menu, model, tabs, time range, recording, commands, messages. It displays the values
// that the window sets and emits signals for clicks. GUI thread only.
#pragma once

#include <QAbstractButton>
#include <QWidget>
#include <vector>

#include "app/workbench/plots/view_state.h"
#include "app/workbench/widgets/controls.h"
#include "app/workbench/widgets/window_class.h"

class QHBoxLayout;

namespace colibri::ui {

// The name and weight type of the model. A click opens the model menu.
class ModelChip : public QAbstractButton {
    Q_OBJECT

public:
    explicit ModelChip(QWidget* parent = nullptr);
    void setModel(const QString& name, const QString& weights);  // "" = none
    void setCompact(bool on);
    QSize sizeHint() const override;
    QSize minimumSizeHint() const override { return {80, 28}; }

protected:
    void paintEvent(QPaintEvent*) override;
    void enterEvent(QEnterEvent*) override { update(); }
    void leaveEvent(QEvent*) override { update(); }

private:
    QString m_name, m_weights;
    bool m_compact = false;
};

// The button that opens the command palette.
class CommandField : public QAbstractButton {
    Q_OBJECT

public:
    explicit CommandField(QWidget* parent = nullptr);

protected:
    void paintEvent(QPaintEvent*) override;
    void enterEvent(QEnterEvent*) override { update(); }
    void leaveEvent(QEvent*) override { update(); }
};

// Dot, label and duration of the recording. A click copies the path of the session file.
class RecordingMark : public QAbstractButton {
    Q_OBJECT

public:
    explicit RecordingMark(QWidget* parent = nullptr);
    void setState(bool on, double seconds, const QString& error);
    QSize sizeHint() const override;

protected:
    void paintEvent(QPaintEvent*) override;

private:
    bool m_on = false;
    QString m_time, m_error;
};

class TopBar : public QWidget {
    Q_OBJECT

public:
    TopBar(ViewState* view, QWidget* parent = nullptr);
    void addTab(const QString& key, const QString& icon, const QString& title);
    void setCurrentTab(const QString& key);  // "" = none
    void setWindowClass(WindowClass windowClass);
    void setSessionVisible(bool on);  // shows pause, follow, range and recording
    void setDot(bool on);
    // A recorded session of this date: a tag replaces pause, follow and recording. Null: none.
    void setRecorded(const QString& date);

    ModelChip* chip() const { return m_chip; }
    RecordingMark* recording() const { return m_recording; }
    IconButton* menuButton() const { return m_menu; }
    IconButton* docksButton() const { return m_docks; }
    IconButton* bell() const { return m_bell; }
    QAbstractButton* followButton() const { return m_follow; }
    Select* range() const { return m_range; }
    void refreshTheme();

signals:
    void tabChosen(const QString& key);
    void commandsWanted();
    void themeWanted();
    void docksWanted();  // opens the drawer of a compact window
    void helpWanted();

protected:
    void paintEvent(QPaintEvent*) override;

private:
    class Line;
    class RecordedTag;
    void makeRangeControls();
    void makeButtons();
    void layOut();
    void connectRangeControls();
    void refreshRange();
    void refreshMode();

    ViewState* m_view;
    WindowClass m_windowClass = WindowClass::Normal;
    bool m_session = true, m_recorded = false;
    QHBoxLayout* m_tabsLayout;
    IconButton *m_menu, *m_pause, *m_search, *m_theme, *m_docks, *m_bell, *m_help, *m_followIcon;
    QWidget* m_logo;
    ModelChip* m_chip;
    std::vector<std::pair<QString, TabButton*>> m_tabs;
    Button* m_follow;
    Select* m_range;
    RecordingMark* m_recording;
    RecordedTag* m_recordedTag;
    CommandField* m_commands;
    Line *m_lineA, *m_lineB;
};

}  // namespace colibri::ui
