// SPDX-License-Identifier: GPL-3.0-or-later
// A model before it is loaded: what it is, what memory it will take, the knobs of loading; or a
// checkpoint before it is converted. Runs the load, the verification and the conversion.
#pragma once

#include <QPointer>
#include <QWidget>

#include "app/workbench/session/engine_host.h"
#include "app/workbench/session/inspection.h"

class QBoxLayout;
class QCheckBox;
class QScrollArea;

namespace colibri::ui {

class AtLoadPanel;
class Button;
class CommandLine;
class ConvertPanel;
class DataTable;
class ExpectedPanel;
class FactList;
class IconButton;
class MemoryPanel;
class MessageStrip;
class PanelHead;
class ProgressPanel;
class TagRow;
class TextLine;

class LoadPage : public QWidget {
    Q_OBJECT

public:
    explicit LoadPage(EngineHost& host, QWidget* parent = nullptr);
    // REQUIRES: not a session. `knobs`: where the controls begin.
    void showModel(const Inspection& inspection, const KnobValues& knobs);
    void setGpuReason(const QString& reason);
    void refreshMeasurements();
    bool busy() const;                           // converting, verifying or loading
    const Inspection& inspection() const { return m_inspection; }
    QString command() const;
    MemoryPanel* memoryPanel() const { return m_memory; }
    AtLoadPanel* atLoad() const { return m_atLoad; }
    ConvertPanel* convertPanel() const { return m_convert; }
    Button* mainButton() const { return m_main; }
    QCheckBox* overLimit() const { return m_override; }
    MessageStrip* strip() const { return m_strip; }
    TagRow* badges() const { return m_badges; }

signals:
    void back();
    void loaded();                               // the model runs
    void converted(const QString& folder);

public slots:
    void start();                                // Enter: load or convert
    void cancel();                               // Esc: stop what runs, else back
    void verify();

protected:
    void paintEvent(QPaintEvent*) override;
    void resizeEvent(QResizeEvent*) override;
    void keyPressEvent(QKeyEvent*) override;

private:
    QWidget* buildHead();
    QWidget* buildModelColumn();
    QWidget* buildMemoryColumn();
    QWidget* buildFoot();
    bool converting() const { return m_inspection.kind == Inspection::Kind::Checkpoint; }
    bool isLoadedModel() const;
    void showFacts();
    void showBadges();
    void refreshState();
    void beginProgress(const QString& title);
    void endProgress();
    void convert();
    void onHostState();

    EngineHost& m_host;
    Inspection m_inspection;
    QPointer<Job> m_job;                         // verifying or converting
    bool m_loading = false;                      // the host loads this page's model
    bool m_verified = false;
    QString m_gpuReason;

    TextLine *m_title, *m_subtitle;
    TagRow* m_badges;
    Button* m_verify;
    IconButton* m_back;
    MessageStrip* m_strip;
    QScrollArea* m_scroll;
    QWidget *m_body, *m_modelColumn, *m_memoryColumn;
    QBoxLayout* m_columns;
    FactList *m_facts, *m_tokenFacts;
    DataTable* m_weights;
    MemoryPanel* m_memory;
    PanelHead *m_expectedHead, *m_settingsHead;
    ExpectedPanel* m_expected;
    AtLoadPanel* m_atLoad;
    ConvertPanel* m_convert;
    QWidget* m_overrideRow;
    QCheckBox* m_override;
    QWidget *m_commandRow, *m_progressRow;
    CommandLine* m_command;
    Button *m_cancel, *m_main;
    ProgressPanel* m_progress;
};

}  // namespace colibri::ui
