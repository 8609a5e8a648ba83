// SPDX-License-Identifier: GPL-3.0-or-later
// Everything before the chat: welcome, load, shape, session summary and diagnosis, and the ways
// between them. The window shows it while no model runs or when one of its pages is asked for.
#pragma once

#include <QPointer>
#include <QTimer>
#include <QWidget>

#include "app/workbench/backend/engine_host.h"
#include "app/workbench/backend/inspection.h"
#include "app/workbench/backend/machine_facts.h"

class QStackedLayout;

namespace colibri::ui {

class DiagnosePage;
class LoadPage;
class MessageStrip;
class ProgressPanel;
class SessionPage;
class ShapePage;
class WelcomePage;

class StartPages : public QWidget {
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
    // Looks for a session that a killed program left; once, when the window is shown.
    void checkLastSession();
    const MachineFacts& facts() const { return m_facts; }
    void tick();  // while shown: what changes by the second

    // A session that a killed program left, until it is answered: what is left of it; "" none.
    QString interruptedText() const;
    void recoverInterrupted();

    // What the choice of folder or file hangs under while another page than this is shown.
    void setModelAnchor(QWidget* anchor) { m_modelAnchor = anchor; }
    bool opening() const { return m_opening != nullptr; }

public slots:
    void openModel();    // asks for a folder or a file
    void openSession();  // asks for a file
    // Loads the bundled model at once; `knobs` over those of the demo.
    void openDemo(const colibri::KnobValues& knobs = {});
    // A container, a checkpoint or a session. `knobs` apply where it is a model.
    void openPath(const QString& path, const colibri::KnobValues& knobs = {});
    // As openPath, and begins to load at once.
    void loadPath(const QString& path, const colibri::KnobValues& knobs);
    void showLoaded();  // the load page of the model that runs
    void showWelcome();
    void showDiagnose();
    void showShape();  // a model of random weights in a real one's shape
    void measure();    // disk and memory; again: cancels

signals:
    void wanted();      // show these pages: something of them was opened
    void modelReady();  // show the chat
    // `what` names what was to be opened; `elsewhere`: these pages were not shown, and are not now.
    void openFailed(const QString& what, const colibri::Status& status, bool elsewhere);
    void leave();  // Back, while a model runs
    void interruptedFound();
    void machineKnown();  // facts() are there
    void keyboardSheetWanted();
    void guideWanted();

protected:
    void paintEvent(QPaintEvent*) override;
    void keyPressEvent(QKeyEvent*) override;

private:
    void setPage(QWidget* page);
    void goBack();
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
    Calibration m_rates;  // of disk and memory: the newest known
    QPointer<Job> m_opening, m_measuring;
    std::optional<SessionSummary> m_interrupted;  // offered until it is answered
    QPointer<QWidget> m_modelAnchor;
    QPointer<QWidget> m_before;    // the page before something is being opened
    bool m_fromElsewhere = false;  // another page of the window was shown then
    uint64_t m_generation = 0;     // of opening: what comes late is dropped

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
