// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/workbench/pages/start_pages.h"

#include <QCoreApplication>
#include <QDir>
#include <QFileInfo>
#include <QKeyEvent>
#include <QMenu>
#include <QStackedLayout>
#include <QVBoxLayout>
#include <algorithm>

#include "app/workbench/pages/facts_page.h"
#include "app/workbench/pages/load_page.h"
#include "app/workbench/pages/shape_page.h"
#include "app/workbench/pages/welcome_page.h"
#include "app/workbench/platform/ask_file.h"
#include "app/workbench/platform/text.h"
#include "app/workbench/widgets/focus.h"
#include "app/workbench/widgets/message_strip.h"
#include "app/workbench/widgets/page_parts.h"
#include "app/workbench/widgets/progress_panel.h"
#include "engine/base/format.h"
#include "engine/store/folder_calibration.h"

namespace colibri::ui {
namespace {

constexpr int kShowProgressAfterMs = 300;
constexpr const char* kEndedUnexpectedly = "The last session ended unexpectedly.";

}  // namespace

StartPages::StartPages(EngineHost& host, QWidget* parent) : QWidget(parent), m_host(host) {
    auto* column = new QVBoxLayout(this);
    column->setContentsMargins(0, 0, 0, 0);
    column->setSpacing(0);
    m_strip = new MessageStrip;
    column->addWidget(m_strip);
    auto* pages = new QWidget;
    m_stack = new QStackedLayout(pages);
    column->addWidget(pages, 1);
    m_welcome = new WelcomePage(host.kept().recent);
    m_load = new LoadPage(host);
    m_shape = new ShapePage;
    m_session = new SessionPage;
    m_diagnose = new DiagnosePage;
    makeOpeningPage();
    for (QWidget* page : std::initializer_list<QWidget*>{m_welcome, m_load, m_shape, m_session,
                                                         m_diagnose, m_openingPage})
        m_stack->addWidget(page);
    connectWelcome();
    connectPages();
    // Loading a model may measure disk and memory.
    connect(&m_host, &SessionSource::stateChanged, this, [this] {
        if (m_host.state() == SessionSource::State::Ready) refreshMachine();
    });
    m_host.kept().recent.checkFiles();
    refreshMachine();
}

// Progress of an inspection that takes longer than kShowProgressAfterMs.
void StartPages::makeOpeningPage() {
    m_openingPage = new QWidget;
    auto* opening = new QVBoxLayout(m_openingPage);
    m_openingPanel = new ProgressPanel;
    m_openingPanel->setMaximumWidth(420);
    opening->addStretch(1);
    auto* centred = new QHBoxLayout;
    centred->addStretch(1);
    centred->addWidget(m_openingPanel, 2);
    centred->addStretch(1);
    opening->addLayout(centred);
    opening->addStretch(1);
    m_openingDelay.setSingleShot(true);
    m_openingDelay.setInterval(kShowProgressAfterMs);
    connect(&m_openingDelay, &QTimer::timeout, this, [this] {
        setPage(m_openingPage);
        emit wanted();
    });
    connect(m_openingPanel, &ProgressPanel::cancelled, this, &StartPages::cancelOpening);
}

void StartPages::connectWelcome() {
    connect(m_welcome, &WelcomePage::openModelRequested, this, &StartPages::openModel);
    connect(m_welcome, &WelcomePage::demoRequested, this, [this] { openDemo(); });
    connect(m_welcome, &WelcomePage::openSessionRequested, this, &StartPages::openSession);
    connect(m_welcome, &WelcomePage::diagnoseRequested, this, &StartPages::showDiagnose);
    connect(m_welcome, &WelcomePage::shapeRequested, this, &StartPages::showShape);
    connect(m_welcome, &WelcomePage::openRequested, this,
            [this](const QString& path) { openPath(path); });
    connect(m_welcome, &WelcomePage::removeRequested, this, &StartPages::removeRecent);
    connect(m_welcome, &WelcomePage::keyboardSheetRequested, this,
            &StartPages::keyboardSheetWanted);
    connect(m_welcome, &WelcomePage::guideRequested, this, &StartPages::guideWanted);
    connect(m_welcome->machine(), &MachineStrip::measureRequested, this, &StartPages::measure);
}

void StartPages::connectPages() {
    const auto openFolder = [this](const QString& folder) { openPath(folder); };
    connect(m_load, &LoadPage::back, this, &StartPages::goBack);
    connect(m_load, &LoadPage::loaded, this, &StartPages::modelReady);
    connect(m_load, &LoadPage::formerWanted, this, &StartPages::loadPath);
    connect(m_load, &LoadPage::converted, this, openFolder);
    connect(m_shape, &ShapePage::back, this, &StartPages::goBack);
    connect(m_shape, &ShapePage::made, this, openFolder);
    connect(m_session, &FactsPage::back, this, [this] {
        goBack();
        emit totalsLeft();
    });
    connect(m_session, &SessionPage::openModelRequested, this, openFolder);
    connect(m_diagnose, &FactsPage::back, this, &StartPages::goBack);
    connect(m_diagnose, &DiagnosePage::measureRequested, this, &StartPages::measure);
    connect(m_diagnose, &DiagnosePage::refreshRequested, this, &StartPages::refreshMachine);
}

QWidget* StartPages::current() const {
    return m_stack->currentWidget();
}

void StartPages::setPage(QWidget* page) {
    if (m_stack->currentWidget() == page) return;
    m_stack->setCurrentWidget(page);
    setFocusHome(this, page);
    page->setFocus();
}

void StartPages::showWelcome() {
    m_host.kept().recent.checkFiles();
    if (m_interrupted && !m_strip->isVisibleTo(this)) offerRecovery();
    setPage(m_welcome);
    m_welcome->setFocus();
    emit wanted();
}

void StartPages::showDiagnose() {
    if (refuseWhileBusy()) return;
    refreshMachine();
    setPage(m_diagnose);
    emit wanted();
}

void StartPages::showShape() {
    if (refuseWhileBusy()) return;
    m_strip->hide();
    m_shape->begin();
    setPage(m_shape);
    emit wanted();
}

// To the chat if a model is loaded, else to the welcome page.
void StartPages::goBack() {
    showWelcome();
    if (m_host.state() == SessionSource::State::Ready) emit leave();
}

// ---- opening

void StartPages::openModel() {
    // A model is a folder or a file, and no system dialog offers both.
    QMenu menu(this);
    QAction* folder = menu.addAction("Folder: a container, or safetensors with config.json");
    QAction* file = menu.addAction("File: .gguf, .safetensors, model.json or config.json");
    // Below the button that was pressed, or below the name of the current model.
    const QWidget* anchor =
        isVisible() && current() == m_welcome ? m_welcome->tile(0) : m_modelAnchor.data();
    const QPoint at =
        anchor ? anchor->mapToGlobal(QPoint(0, anchor->height() + 2)) : mapToGlobal(QPoint(16, 8));
    menu.setActiveAction(folder);
    const QAction* chosen = menu.exec(at);
    QString path;
    if (chosen == folder) {
        path = askModelFolder(window());
    } else if (chosen == file) {
        path = askModelFile(window());
    }
    if (!path.isEmpty()) openPath(path);
}

void StartPages::openSession() {
    const QString path =
        askOpenFile(window(), "Open a session", "Sessions (*." + kSessionSuffix + ")",
                    m_host.kept().sessions.dir());
    if (!path.isEmpty()) openPath(path);
}

void StartPages::openDemo(const KnobValues& knobs) {
    const QString path = demoModelPath();
    if (path.isEmpty()) {
        emit wanted();
        const Status status(
            Code::BadInput,
            "There is no resources/demo-model/container beside the program or above it",
            "Set COLIBRI_DEMO_MODEL to its folder, or open your own model");
        m_strip->showError("The demo model is not installed.", status);
        emit openFailed("The demo model is not installed.", status, false);
        return;
    }
    KnobValues all = demoKnobs();
    for (size_t i = 0; i < all.size(); ++i)
        if (knobs[i]) all[i] = knobs[i];
    open(path, all, true);
}

void StartPages::openPath(const QString& path, const KnobValues& knobs) {
    open(path, knobs, false);
}

void StartPages::loadPath(const QString& path, const KnobValues& knobs) {
    open(path, knobs, true);
}

bool StartPages::refuseWhileBusy() {
    if (!m_load->busy() && !m_shape->busy()) return false;
    if (m_load->busy())
        setPage(m_load);
    else
        setPage(m_shape);
    emit wanted();
    m_strip->showMessage(MessageStrip::Kind::Warning, "Another operation is still running.",
                         "Wait for it to finish, or cancel it with Esc.");
    m_strip->addClose();
    return true;
}

void StartPages::open(const QString& path, const KnobValues& knobs, bool loadNow) {
    if (refuseWhileBusy()) return;
    stopOpening();
    m_before = current();
    m_fromElsewhere = !isVisibleTo(window());  // true also before the window is shown
    m_strip->hide();
    const auto result = std::make_shared<Result<Inspection>>(Status(Code::Cancelled, ""));
    m_opening = new Job(
        [path, result](const ProgressFn& progress, const CancelFlag* cancel) {
            progress({"reading headers and tables"});
            *result = inspectPath(path.toStdString(), cancel);
            return result->status();
        },
        this);
    connect(m_opening, &Job::progressed, this,
            [this] { m_openingPanel->setProgress(m_opening->progress()); });
    const uint64_t generation = ++m_generation;
    connect(m_opening, &Job::finished, this, [=, this] {
        if (generation != m_generation) return;
        m_opening = nullptr;
        m_openingDelay.stop();
        opened(path, *result, knobs, loadNow);
    });
    m_openingPanel->begin("Opening " + QFileInfo(path).fileName());
    m_openingDelay.start();
    m_opening->start();
}

void StartPages::stopOpening() {
    m_openingDelay.stop();
    ++m_generation;
    if (m_opening) m_opening->abandon();
    m_opening = nullptr;
}

// Shows the page from which opening began.
void StartPages::returnFromOpening() {
    if (current() == m_openingPage) setPage(m_before ? m_before.data() : m_welcome);
    if (m_fromElsewhere && isVisible()) emit leave();
}

void StartPages::cancelOpening() {
    stopOpening();
    returnFromOpening();
}

void StartPages::rememberSession(const Inspection& session) {
    const SessionSummary& summary = session.session.playback->summary();
    RecentEntry entry;
    entry.kind = RecentEntry::Kind::Session;
    entry.path = exactText(session.path.string());
    const auto model = summary.meta.find("model");
    entry.name =
        model == summary.meta.end() ? QFileInfo(entry.path).completeBaseName() : str(model->second);
    const double seconds = session.session.playback->facts()->duration;
    entry.what = "session, " + str(formatClock(seconds)).section('.', 0, 0);
    entry.bytes = summary.bytes;
    entry.used = QDateTime::currentDateTime();
    m_host.kept().recent.add(entry);
}

void StartPages::showTotals(const QString& path) {
    if (refuseWhileBusy()) return;
    stopOpening();
    m_before = current();
    m_fromElsewhere = !isVisibleTo(window());
    m_strip->hide();
    const auto result = std::make_shared<Result<SessionTotals>>(Status(Code::Cancelled, ""));
    m_opening = new Job(
        [path, result](const ProgressFn& progress, const CancelFlag*) {
            progress({"counting the rows"});
            *result = readTotals(path.toStdString());
            return result->status();
        },
        this);
    const uint64_t generation = ++m_generation;
    connect(m_opening, &Job::finished, this, [=, this] {
        if (generation != m_generation) return;
        m_opening = nullptr;
        m_openingDelay.stop();
        if (!*result) {
            returnFromOpening();
            emit openFailed(shortPath(path) + " could not be read.", result->status(),
                            m_fromElsewhere);
            return;
        }
        m_session->showSession((*result)->summary, (*result)->details);
        setPage(m_session);
        emit wanted();
    });
    m_openingPanel->begin("Reading the totals of " + QFileInfo(path).fileName());
    m_openingDelay.start();
    m_opening->start();
}

void StartPages::opened(const QString& path, const Result<Inspection>& result,
                        const KnobValues& knobs, bool loadNow) {
    if (!result) {
        returnFromOpening();
        // The folder distinguishes it from the model of the page below, which may have the same
        // name.
        const QString what = shortPath(path) + " could not be opened.";
        if (!m_fromElsewhere) m_strip->showError(what, result.status());
        emit openFailed(what, result.status(), m_fromElsewhere);
        m_host.kept().recent.checkFiles();
        return;
    }
    if (result->kind == Inspection::Kind::Session) {
        rememberSession(*result);
        returnFromOpening();
        emit sessionOpened(result->session);
        return;
    }
    emit wanted();
    m_load->showModel(*result, knobs);
    setPage(m_load);
    if (loadNow) m_load->start();
}

void StartPages::showLoaded() {
    const auto engine = m_host.engine();
    if (!engine) return showWelcome();
    openPath(exactText(engine->info().dir.string()), m_host.requestedKnobs());
}

// ---- machine

void StartPages::refreshMachine() {
    const auto facts = std::make_shared<MachineFacts>();
    const auto rates = std::make_shared<Calibration>();
    auto* job = new Job(
        [facts, rates](const ProgressFn&, const CancelFlag*) {
            *facts = gatherMachineFacts();
            *rates = machineCalibration();
            return Status();
        },
        this);
    connect(job, &Job::finished, this, [this, facts, rates] {
        m_facts = *facts;
        m_rates = *rates;
        emit machineKnown();
        showRates({});
        m_load->setGpuReason(m_facts.gpuReason.isEmpty() ? "this build runs models on the CPU"
                                                         : m_facts.gpuReason);
    });
    job->start();
}

// Free memory, the same value as in the status bar.
void StartPages::tick(const std::shared_ptr<const Snapshot>&) {
    const int64_t free = m_host.memory().free;
    if (free == m_facts.memoryFree || m_facts.threads == 0) return;
    m_facts.memoryFree = free;
    m_welcome->machine()->setFacts(m_facts, m_rates);
}

void StartPages::showRates(const QString& stage) {
    m_welcome->machine()->setFacts(m_facts, m_rates);
    m_diagnose->showFacts(m_facts, m_rates, shortPath(m_host.kept().sessions.dir()));
    if (m_measuring || !stage.isEmpty()) {
        m_welcome->machine()->setMeasuring(stage);
        m_diagnose->setMeasuring(stage);
    } else {
        m_diagnose->setMeasuring({});
    }
}

void StartPages::measure() {
    if (m_measuring) return m_measuring->cancel();
    // The disk to measure is the one with the most recently used model that still exists.
    QString model;
    for (const RecentEntry& entry : m_host.kept().recent.entries()) {
        if (entry.kind == RecentEntry::Kind::Model && !entry.missing) {
            model = entry.path;
            break;
        }
    }
    const auto rates = std::make_shared<Calibration>();
    const QString own = QFileInfo(m_host.kept().sessions.dir()).path();
    m_measuring = new Job(
        [model, own, rates](const ProgressFn&, const CancelFlag* cancel) {
            auto measured = calibrateDisk((model.isEmpty() ? own : model).toStdString(), *cancel);
            // The folder may be read-only and have no file that is large enough to read.
            if (!measured && measured.status().code() != Code::Cancelled && !model.isEmpty())
                measured = calibrateDisk(own.toStdString(), *cancel);
            if (measured) *rates = *measured;
            return measured.status();
        },
        this);
    connect(m_measuring, &Job::finished, this, [this, rates](const Status& status) {
        m_measuring = nullptr;
        m_welcome->machine()->setMeasuring({});
        if (status.ok()) {
            m_rates = *rates;
            m_load->setRates(m_rates);
        }
        showRates({});
        if (!status.ok() && status.code() != Code::Cancelled)
            m_strip->showError("The machine could not be measured.", status);
    });
    m_measuring->start();
    showRates("disk and memory");
}

// ---- recent and recovery

void StartPages::removeRecent(const RecentEntry& entry) {
    m_host.kept().recent.remove(entry.path);
    m_strip->showMessage(MessageStrip::Kind::Info, "Removed \"" + entry.name + "\" from the list.",
                         "No file was changed.");
    connect(m_strip->addAction("Undo"), &QAbstractButton::clicked, this, [this, entry] {
        m_host.kept().recent.restore(entry);
        m_strip->hide();
    });
    m_strip->addClose();
}

void StartPages::checkLastSession() {
    const auto found = std::make_shared<std::optional<SessionSummary>>();
    auto* job = new Job(
        [found, sessions = m_host.kept().sessions](const ProgressFn&, const CancelFlag*) {
            *found = sessions.interrupted();
            return Status();
        },
        this);
    connect(job, &Job::finished, this, [this, found] {
        m_interrupted = std::move(*found);
        // A visible error is not replaced; the welcome page shows the offer later.
        if (m_interrupted && !m_strip->isVisibleTo(this)) offerRecovery();
        if (m_interrupted) emit interruptedFound();
    });
    job->start();
}

QString StartPages::interruptedText() const {
    if (!m_interrupted) return {};
    const SessionSummary& summary = *m_interrupted;
    const QString path = exactText(summary.path.string());
    // The time of day of the last record, or the time of the file if the start is not recorded.
    const auto meta = summary.meta.find("started");
    const QDateTime started = meta == summary.meta.end()
                                  ? QDateTime()
                                  : QDateTime::fromString(str(meta->second), Qt::ISODate);
    const QDateTime whole = started.isValid()
                                ? started.toLocalTime().addMSecs(qint64(summary.lastTime * 1000))
                                : QFileInfo(path).lastModified();
    const bool today = whole.date() == QDate::currentDate();
    return "The recording is intact up to " +
           whole.toString(today ? "HH:mm:ss" : "yyyy-MM-dd HH:mm:ss") + "; at most 1 s was lost.";
}

void StartPages::recoverInterrupted() {
    if (m_interrupted) recover(exactText(m_interrupted->path.string()));
}

void StartPages::offerRecovery() {
    const QString path = exactText(m_interrupted->path.string());
    m_strip->showMessage(MessageStrip::Kind::Warning, kEndedUnexpectedly, interruptedText());
    connect(m_strip->addAction("Recover session"), &QAbstractButton::clicked, this,
            [this, path] { recover(path); });
    connect(m_strip->addAction("Discard", true), &QAbstractButton::clicked, this,
            [this, path] { discard(path); });
}

void StartPages::recover(const QString& path) {
    m_interrupted.reset();
    m_strip->hide();
    auto* job = new Job(
        [path](const ProgressFn&, const CancelFlag*) { return recoverSession(path.toStdString()); },
        this);
    connect(job, &Job::finished, this, [this, path](const Status& status) {
        if (status.ok()) {
            openPath(path);
        } else {
            m_strip->showError("The session could not be recovered.", status);
        }
    });
    job->start();
}

void StartPages::discard(const QString& path) {
    if (const Status status = SessionFolder::discard(path); !status.ok())
        return m_strip->showError("The session could not be discarded.", status);
    m_interrupted.reset();
    m_host.kept().recent.remove(path);
    m_strip->showMessage(MessageStrip::Kind::Info, "The session was discarded.",
                         "Its file will be deleted at the next start.");
    connect(m_strip->addAction("Undo"), &QAbstractButton::clicked, this, [this, path] {
        if (const Status status = SessionFolder::restore(path); !status.ok())
            return m_strip->showError("The session could not be restored.", status);
        m_strip->hide();
        checkLastSession();
    });
    m_strip->addClose();
}

// ---- events

void StartPages::keyPressEvent(QKeyEvent* event) {
    if (event->key() == Qt::Key_Escape && m_opening) return cancelOpening();
    QWidget::keyPressEvent(event);
}

void StartPages::paintEvent(QPaintEvent*) {
    QPainter p(this);
    p.fillRect(rect(), tone(Tone::Bg1));
}

}  // namespace colibri::ui
