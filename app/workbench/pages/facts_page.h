// SPDX-License-Identifier: GPL-3.0-or-later
// A page with facts in sections and the equivalent command line: the summary of a session, the
// diagnosis of the machine.
#pragma once

#include <QWidget>
#include <vector>

#include "app/workbench/backend/inspection.h"
#include "app/workbench/backend/machine_facts.h"
#include "app/workbench/widgets/controls.h"

class QHBoxLayout;
class QVBoxLayout;

namespace colibri::ui {

class CommandLine;
class PageHead;

class FactsPage : public QWidget {
    Q_OBJECT

public:
    explicit FactsPage(QWidget* parent = nullptr);
    QString text() const { return m_text; }  // all facts as text, to copy

signals:
    void back();

protected:
    void setHead(const QString& title, const QString& subtitle);
    void setSections(const QVector<MachineSection>& sections);
    void setCommand(const QString& command);
    Button* addButton(const QString& text, Button::Kind kind = Button::Kind::Default);
    void paintEvent(QPaintEvent*) override;
    void keyPressEvent(QKeyEvent*) override;
    void resizeEvent(QResizeEvent*) override;

    QString m_text;

private:
    void arrange();

    PageHead* m_head;
    QHBoxLayout* m_row;
    QVBoxLayout* m_columns[2];  // the second one is used in a wide window
    QVector<MachineSection> m_sections;
    bool m_wide = false;
    CommandLine* m_command;
};

class DiagnosePage : public FactsPage {
    Q_OBJECT

public:
    explicit DiagnosePage(QWidget* parent = nullptr);
    void showFacts(const MachineFacts& facts, const Calibration& rates, const QString& dataDir);
    void setMeasuring(const QString& stage);  // "" = not measuring

signals:
    void measureRequested();
    void refreshRequested();

private:
    Button* m_measure;
};

class SessionPage : public FactsPage {
    Q_OBJECT

public:
    explicit SessionPage(QWidget* parent = nullptr);
    void showSession(const SessionSummary& summary, const SessionDetails& details = {});
    const QString& path() const { return m_path; }
    const QVector<MachineSection>& sections() const { return m_shown; }

signals:
    void openModelRequested(const QString& folder);

private:
    QString m_path, m_model;
    QVector<MachineSection> m_shown;
    Button* m_openModel;
};

}  // namespace colibri::ui
