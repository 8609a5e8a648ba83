// SPDX-License-Identifier: GPL-3.0-or-later
// A page with choices for one job: a head with Back, messages, two columns that scroll (below each
// other in a narrow window), and a foot with the equivalent command line, Cancel and the main
// button, or the progress. Enter starts; Esc stops, or goes back.
#pragma once

#include <QPointer>
#include <QWidget>
#include <functional>

#include "app/workbench/platform/job.h"

class QBoxLayout;
class QHBoxLayout;
class QScrollArea;

namespace colibri::ui {

class Button;
class CommandLine;
class MessageStrip;
class PageHead;
class ProgressPanel;

class JobPage : public QWidget {
    Q_OBJECT

public:
    virtual bool busy() const { return m_job; }
    Button* mainButton() const { return m_main; }
    MessageStrip* strip() const { return m_strip; }
    ProgressPanel* progress() const { return m_progress; }

signals:
    void back();

public slots:
    virtual void start() = 0;
    virtual void cancel();

protected:
    explicit JobPage(const QString& action, QWidget* parent);
    void setTitle(const QString& title, const QString& subtitle);
    QString title() const;
    QHBoxLayout* headRow() const;  // of the title; widgets can be added at the right
    void setColumns(QWidget* left, QWidget* right);
    // px of the left column if the columns are side by side.
    virtual int leftWidth() const { return 424; }
    bool stacked() const;
    QScrollArea* scroll() const { return m_scroll; }

    void setCommand(const QString& command);
    // Shows progress in the foot and hides Back, or shows the command line again.
    void beginProgress(const QString& title);
    void endProgress();
    // Runs `work` as the job of the page, with progress. `ended` is called after endProgress().
    void run(const QString& title, Job::Work work, std::function<void(const Status&)> ended);
    // Enables and disables controls; called whenever busy() changes.
    virtual void refreshState();

    void paintEvent(QPaintEvent*) override;
    void resizeEvent(QResizeEvent*) override;
    void keyPressEvent(QKeyEvent*) override;

private:
    QWidget* buildFoot(const QString& action);

    QPointer<Job> m_job;
    PageHead* m_head;
    MessageStrip* m_strip;
    QScrollArea* m_scroll;
    QBoxLayout* m_columns;
    QWidget* m_left = nullptr;
    QWidget *m_commandRow, *m_progressRow;
    CommandLine* m_command;
    Button* m_main;
    ProgressPanel* m_progress;
};

}  // namespace colibri::ui
