// SPDX-License-Identifier: GPL-3.0-or-later
// The pages before the chat: welcome, load, shape, session summary and diagnosis, and the
// navigation between them. The window shows them while no model is loaded, or on request. GUI
// thread only.
#pragma once

#include <QPointer>
#include <QTimer>
#include <QWidget>

#include "app/workbench/backend/engine_host.h"
#include "app/workbench/backend/inspection.h"
#include "app/workbench/backend/machine_facts.h"
#include "app/workbench/backend/snapshot_view.h"

class QStackedLayout;

namespace colibri::ui {

class DiagnosePage;
class LoadPage;
class MessageStrip;
class ProgressPanel;
class SessionPage;
class ShapePage;
class WelcomePage;

class StartPages : public QWidget, public SnapshotView {
    Q_OBJECT

public:
    explicit StartPages(EngineHost& host, QWidget* parent = nullptr);

    WelcomePage* welcome() const { return m_welcome; }
    LoadPage* load() const { return m_load; }
    ShapePage* shape() const { return m_shape; }
    SessionPage* session() const { return m_session; }
    DiagnosePage* diagnose() const { return m_diagnose; }
    MessageStrip* strip() const { return m_strip; }
    QWidget* current() const;
    // Looks for the session file of a program that was killed. Called once at the start.
    void checkLastSession();
    const MachineFacts& facts() const { return m_facts; }
    void tick(const std::shared_ptr<const Snapshot>&) override;

    // How complete the interrupted session is; "": there is none, or it was recovered or discarded.
    QString interruptedText() const;
    void recoverInterrupted();

    // The menu of openModel() opens below this widget while another page is shown.
    void setModelAnchor(QWidget* anchor) { m_modelAnchor = anchor; }
    bool opening() const { return m_opening != nullptr; }

public slots:
    void openModel();    // with a dialog for a folder or a file
    void openSession();  // with a file dialog
    // Loads the bundled model at once; `knobs` over those of the demo.
    void openDemo(const colibri::KnobValues& knobs = {});
    // Opens a container, a checkpoint or a session. `knobs` apply to a model.
    void openPath(const QString& path, const colibri::KnobValues& knobs = {});
    // The same, and loads the model at once.
    void loadPath(const QString& path, const colibri::KnobValues& knobs);
    // The totals of a session file, on a page; Back returns to the page before.
    void showTotals(const QString& path);
    void showLoaded();  // the load page of the loaded model
    void showWelcome();
    void showDiagnose();
    void showShape();  // a model of random weights in a real one's shape
    void measure();    // disk and memory; cancels if already measuring

signals:
    void wanted();      // the window should show these pages
    void modelReady();  // the window should show the chat
    void sessionOpened(const colibri::ui::OpenedSession& session);  // the window should play it
    // `what` says what could not be opened; `elsewhere`: the window shows another page.
    void openFailed(const QString& what, const colibri::Status& status, bool elsewhere);
    void totalsLeft();  // Back, on the page of a session's totals
    void leave();       // Back, while a model is loaded
    void interruptedFound();
    void machineKnown();  // facts() are available
    void keyboardSheetWanted();
    void guideWanted();

protected:
    void paintEvent(QPaintEvent*) override;
    void keyPressEvent(QKeyEvent*) override;

private:
    void makeOpeningPage();
    void connectWelcome();
    void connectPages();
    void setPage(QWidget* page);
    void goBack();
    void rememberSession(const Inspection& session);
    void opened(const QString& path, const Result<Inspection>& result, const KnobValues& knobs,
                bool loadNow);
    void open(const QString& path, const KnobValues& knobs, bool loadNow);
    void stopOpening();
    void cancelOpening();
    void returnFromOpening();
    void refreshMachine();
    void showRates(const QString& stage);
    void offerRecovery();
    void recover(const QString& path);
    void discard(const QString& path);
    void removeRecent(const RecentEntry& entry);
    bool refuseWhileBusy();

    EngineHost& m_host;
    MachineFacts m_facts;
    Calibration m_rates;  // of disk and memory, the newest
    QPointer<Job> m_opening, m_measuring;
    std::optional<SessionSummary> m_interrupted;  // until recovered or discarded
    QPointer<QWidget> m_modelAnchor;
    QPointer<QWidget> m_before;    // the page shown before opening began
    bool m_fromElsewhere = false;  // the window showed another page then
    uint64_t m_generation = 0;     // of opening; results of earlier ones are dropped

    MessageStrip* m_strip;
    QStackedLayout* m_stack;
    WelcomePage* m_welcome;
    LoadPage* m_load;
    ShapePage* m_shape;
    SessionPage* m_session;
    DiagnosePage* m_diagnose;
    QWidget* m_openingPage;
    ProgressPanel* m_openingPanel;
    QTimer m_openingDelay;
};

}  // namespace colibri::ui
