// SPDX-License-Identifier: GPL-3.0-or-later
// The Load test dock: prompts, number of users, rate and duration; live figures and the report. GUI
// thread only.
#pragma once

#include <QLineEdit>

#include "app/workbench/backend/load_test.h"
#include "app/workbench/docks/dock_parts.h"

class QCheckBox;

namespace colibri::ui {

class Button;
class CommandLine;
class DataTable;
class Note;
class ProgressPanel;
class Segment;
class SliderRow;

class LoadTestPanel : public DockPanel {
    Q_OBJECT

public:
    // Source and load test must outlive the panel.
    LoadTestPanel(SessionSource* source, LoadTest* test, QWidget* parent = nullptr);
    void tick();  // live figures; a few times a second while shown
    void startTest();
    LoadPlan plan() const;  // from the controls
    void exportReport();    // opens a file dialog
    void exportTo(const QString& path);

    Segment* promptsFrom() const { return m_from; }  // shipped, file
    QLineEdit* promptsFile() const { return m_file; }
    Segment* loop() const { return m_loop; }  // closed, open
    SliderRow* users() const { return m_users; }
    SliderRow* rate() const { return m_rate; }  // tenths of requests / s
    Segment* until() const { return m_until; }  // requests, seconds
    SliderRow* requests() const { return m_requests; }
    SliderRow* seconds() const { return m_seconds; }
    SliderRow* maxTokens() const { return m_maxTokens; }
    QCheckBox* ignoreEos() const { return m_ignoreEos; }
    Button* startButton() const { return m_start; }
    DataTable* latencies() const { return m_latencies; }  // TTFT, ITL, request
    DataTable* totals() const { return m_totals; }
    QString note() const;

signals:
    void exported(const QString& path);
    void failed(const QString& what, const QString& why);

protected:
    void keyPressEvent(QKeyEvent*) override;

private:
    void buildForm();
    void buildResult();
    SliderRow* addSlider(DockSection* section, const QString& label, const QString& unit,
                         int64_t max, int64_t value);
    void refresh();
    void showResult();
    void showTotals();

    SessionSource* m_source;
    LoadTest* m_test;
    Segment *m_from, *m_loop, *m_until;
    QLineEdit* m_file;
    QWidget* m_fileRow;
    Note *m_arrivals, *m_note, *m_few;
    SliderRow *m_users, *m_rate, *m_seed, *m_requests, *m_seconds, *m_maxTokens;
    QCheckBox* m_ignoreEos;
    std::vector<DockSection*> m_form;
    DockSection* m_result;
    DataTable *m_latencies, *m_totals;
    Button *m_start, *m_export;
    CommandLine* m_command;
    ProgressPanel* m_progress;
    bool m_wasRunning = false;
};

}  // namespace colibri::ui
