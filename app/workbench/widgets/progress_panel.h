// SPDX-License-Identifier: GPL-3.0-or-later
// The progress of a running job: stage, amount of total, a 4 px bar, rate and time left, Cancel.
#pragma once

#include <QWidget>

#include "app/workbench/platform/job.h"
#include "app/workbench/widgets/controls.h"

namespace colibri::ui {

class ProgressPanel : public QWidget {
    Q_OBJECT

public:
    explicit ProgressPanel(QWidget* parent = nullptr);
    void begin(const QString& title);
    void setProgress(const JobProgress& progress);
    void setCancelling();
    QString stage() const { return m_progress.stage; }
    QSize sizeHint() const override { return {340, 66}; }

signals:
    void cancelled();

protected:
    void paintEvent(QPaintEvent*) override;
    void resizeEvent(QResizeEvent*) override;

private:
    JobProgress m_progress;
    QString m_title;
    bool m_cancelling = false;
    Button* m_cancel;
};

QString amountText(const JobProgress& progress);  // "0.42 / 0.69 GiB"
QString paceText(const JobProgress& progress);    // "6.20 GB/s, about 1 s left"

}  // namespace colibri::ui
