// SPDX-License-Identifier: GPL-3.0-or-later
// The page of a model before it is loaded: facts, memory, knobs; or of a checkpoint before it is
// converted. Runs loading, verification and conversion. GUI thread only.
#pragma once

#include "app/workbench/backend/engine_host.h"
#include "app/workbench/backend/inspection.h"
#include "app/workbench/pages/job_page.h"

class QCheckBox;

namespace colibri::ui {

class AtLoadPanel;
class Button;
class ConvertPanel;
class DataTable;
class ExpectedPanel;
class FactList;
class MemoryPanel;
class PanelHead;
class TagRow;

class LoadPage : public JobPage {
    Q_OBJECT

public:
    explicit LoadPage(EngineHost& host, QWidget* parent = nullptr);
    // `knobs`: initial values of the controls. REQUIRES: not a session.
    void showModel(const Inspection& inspection, const KnobValues& knobs);
    void setGpuReason(const QString& reason);
    void refreshMeasurements();
    void setRates(const Calibration& rates);  // measured while the page is shown
    bool busy() const override;               // converting, verifying or loading
    const Inspection& inspection() const { return m_inspection; }
    QString command() const;
    MemoryPanel* memoryPanel() const { return m_memory; }
    AtLoadPanel* atLoad() const { return m_atLoad; }
    ConvertPanel* convertPanel() const { return m_convert; }
    QCheckBox* overLimit() const { return m_override; }
    TagRow* badges() const { return m_badges; }
    // Asks the user before a loaded model is replaced: runs the action at once, or after the
    // answer. Without it, loading starts at once.
    using Ask =
        std::function<void(const QString& question, const QString& answer, std::function<void()>)>;
    void setAsk(Ask ask) { m_ask = std::move(ask); }

signals:
    void loaded();  // the model is loaded
    void converted(const QString& folder);
    void formerWanted(const QString& folder,
                      const colibri::KnobValues& knobs);  // load the former model again

public slots:
    void start() override;  // load or convert
    void cancel() override;
    void verify();

protected:
    void paintEvent(QPaintEvent*) override;
    void resizeEvent(QResizeEvent*) override;

private:
    void buildHead();
    QWidget* buildModelColumn();
    QWidget* buildMemoryColumn();
    int leftWidth() const override;
    bool converting() const { return m_inspection.kind == Inspection::Kind::Checkpoint; }
    bool isLoadedModel() const;
    void showFacts();
    void showBadges();
    void refreshState() override;
    void load();
    void convert();
    void offerFormerModel(const QString& what);
    void offerDiscard(const std::filesystem::path& target);
    void onHostState();

    EngineHost& m_host;
    Inspection m_inspection;
    bool m_loading = false;  // the host is loading the model of this page
    bool m_verified = false;
    Ask m_ask;
    // The model that was closed for the load; name "": none.
    struct Former {
        QString name;
        std::filesystem::path dir;
        KnobValues knobs;
    } m_former;

    TagRow* m_badges;
    Button* m_verify;
    QWidget* m_memoryColumn;
    FactList *m_facts, *m_tokenFacts;
    DataTable* m_weights;
    MemoryPanel* m_memory;
    PanelHead *m_expectedHead, *m_settingsHead;
    ExpectedPanel* m_expected;
    AtLoadPanel* m_atLoad;
    ConvertPanel* m_convert;
    QWidget* m_overrideRow;
    QCheckBox* m_override;
};

}  // namespace colibri::ui
