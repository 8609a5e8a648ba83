// SPDX-License-Identifier: GPL-3.0-or-later
// Exports a recorded session: format, range, the size that it will have about, the command line
// that does the same, and the progress of a running export. An export continues while the popover
// is closed. GUI thread only.
#pragma once

#include <QPointer>

#include "app/workbench/plots/view_state.h"
#include "app/workbench/widgets/controls.h"
#include "app/workbench/widgets/overlay.h"
#include "profiler/export/export.h"

class QLabel;

namespace colibri::ui {

class CommandLine;
class Job;
class ProgressPanel;

class ExportPanel : public Popover {
    Q_OBJECT

public:
    ExportPanel(ViewState* view, QWidget* window);
    ~ExportPanel() override;
    void setSession(const QString& path, double duration);
    void openBelow(QWidget* anchor);
    Select* format() const { return m_format; }
    Segment* range() const { return m_range; }
    QString estimateText() const;  // "About 6.1 MiB", or why it is not known
    QString command() const;
    bool running() const { return !m_job.isNull(); }
    void exportTo(const QString& path);  // what the button does after the dialog
    void cancel();
    QSize sizeHint() const override { return {420, 304}; }

signals:
    void exported(const QString& path);
    void failed(const QString& what, const QString& why);

protected:
    void keyPressEvent(QKeyEvent*) override;

private:
    ExportOptions options() const;
    void refresh();
    void estimate();
    void askPath();
    void ended(const Status& status, const QString& path);

    ViewState* m_view;
    QString m_session;
    double m_duration = 0;
    Select* m_format;
    Segment* m_range;
    QLabel *m_times, *m_estimate;
    CommandLine* m_command;
    Button* m_export;
    ProgressPanel* m_progress;
    QPointer<Job> m_job, m_estimating;
    uint64_t m_generation = 0;  // of the estimate
};

}  // namespace colibri::ui
