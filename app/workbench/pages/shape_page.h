// SPDX-License-Identifier: GPL-3.0-or-later
// Creates a model with random weights in the shape of a real one, to tune a machine before a
// download: facts, choices, and the job that writes it. A cancelled or failed job leaves no files.
// GUI thread only.
#pragma once

#include "app/workbench/pages/job_page.h"

namespace colibri::ui {

class FactList;
class ShapePanel;

class ShapePage : public JobPage {
    Q_OBJECT

public:
    explicit ShapePage(QWidget* parent = nullptr);
    void begin();  // called when the page is shown: checks the disk again
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
