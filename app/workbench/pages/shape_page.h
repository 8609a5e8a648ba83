// SPDX-License-Identifier: GPL-3.0-or-later
// Makes a model of random weights in the shape of a real one, to tune a machine before a download:
// what it will be, the choices, and the job that writes it. A job that is cancelled or fails leaves
// nothing on the disk.
#pragma once

#include <QPointer>
#include <QWidget>

#include "app/workbench/session/job.h"

class QBoxLayout;
class QScrollArea;

namespace colibri {
struct ContainerInfo;
}

namespace colibri::ui {

class Button;
class CommandLine;
class FactList;
class IconButton;
class MessageStrip;
class ProgressPanel;
class ShapePanel;

class ShapePage : public QWidget {
    Q_OBJECT

public:
    explicit ShapePage(QWidget* parent = nullptr);
    void begin();                        // it is shown: looks at the disk again
    bool busy() const { return m_job; }
    ShapePanel* panel() const { return m_panel; }
    FactList* facts() const { return m_facts; }
    Button* mainButton() const { return m_main; }
    ProgressPanel* progress() const { return m_progress; }
    MessageStrip* strip() const { return m_strip; }

signals:
    void back();
    void made(const QString& folder);

public slots:
    void start();                        // Enter
    void cancel();                       // Esc: stop what runs, else back

protected:
    void paintEvent(QPaintEvent*) override;
    void resizeEvent(QResizeEvent*) override;
    void keyPressEvent(QKeyEvent*) override;

private:
    QWidget* buildHead();
    QWidget* buildFoot();
    void refresh();
    void ended(const Status& status, const QString& folder);

    QPointer<Job> m_job;
    IconButton* m_back;
    MessageStrip* m_strip;
    QScrollArea* m_scroll;
    QBoxLayout* m_columns;
    QWidget *m_factsColumn, *m_commandRow, *m_progressRow;
    FactList *m_facts, *m_tokenFacts;
    ShapePanel* m_panel;
    CommandLine* m_command;
    Button* m_main;
    ProgressPanel* m_progress;
};

}  // namespace colibri::ui
