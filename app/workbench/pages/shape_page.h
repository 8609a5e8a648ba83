// SPDX-License-Identifier: GPL-3.0-or-later
// Makes a model of random weights in the shape of a real one, to tune a machine before a download:
// what it will be, the choices, and the job that writes it. A job that is cancelled or fails leaves
// nothing on the disk.
#pragma once

#include "app/workbench/pages/job_page.h"

namespace colibri::ui {

class FactList;
class ShapePanel;

class ShapePage : public JobPage {
    Q_OBJECT

public:
    explicit ShapePage(QWidget* parent = nullptr);
    void begin();  // it is shown: looks at the disk again
    ShapePanel* panel() const { return m_panel; }
    FactList* facts() const { return m_facts; }

signals:
    void made(const QString& folder);

public slots:
    void start() override;

private:
    void refreshState() override;
    void ended(const Status& status, const QString& folder);

    FactList *m_facts, *m_tokenFacts;
    ShapePanel* m_panel;
};

}  // namespace colibri::ui
