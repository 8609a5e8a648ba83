// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/workbench/window/recorded_view.h"

#include <limits>

#include "app/workbench/platform/job.h"
#include "profiler/explain/verdicts.h"

namespace colibri::ui {

RecordedView::RecordedView(ChatPage* page, ViewState* view, PlayerBar* bar, QObject* parent)
    : QObject(parent), m_page(page), m_view(view), m_bar(bar) {
    connect(bar, &PlayerBar::closeWanted, this, &RecordedView::close);
    connect(page->recordedKnobs(), &RecordedKnobs::goToWanted, view, &ViewState::seek);
    connect(page->recordedChat(), &RecordedChat::continueWanted, this, [this] {
        const Conversation chat = m_page->recordedChat()->continued();
        close();
        emit chatWanted(chat);
    });
}

RecordedView::~RecordedView() {
    if (m_source) clear();
}

void RecordedView::clear() {
    if (m_explaining) m_explaining->abandon();
    m_explaining = nullptr;
    m_page->plots()->setVerdicts({});
    m_bar->setPlayer(nullptr);
    m_page->setRecorded(nullptr);
    m_player.reset();
    m_source.reset();
    m_view->setCursor(std::numeric_limits<double>::quiet_NaN());
}

void RecordedView::open(const OpenedSession& session) {
    if (m_source) clear();
    m_source = std::make_unique<RecordedSource>(session);
    m_view->setPaused(false);
    m_player = std::make_unique<Player>(m_source.get(), m_view);
    m_view->advance(m_source->duration());
    m_view->reset();
    m_page->setRecorded(m_source.get());
    m_bar->setPlayer(m_player.get());
    connect(m_source.get(), &RecordedSource::completed, this, &RecordedView::completed);
    connect(m_source.get(), &RecordedSource::completed, this, &RecordedView::explain);
    emit opened();
}

// Finds what limits the session. It scans the file once more, so it runs after the rest was read.
void RecordedView::explain() {
    const auto verdicts = std::make_shared<std::vector<Verdict>>();
    const std::filesystem::path path = m_source->summary().path;
    const double length = m_source->duration();
    m_explaining = new Job(
        [verdicts, path, length](const ProgressFn& progress, const CancelFlag* cancel) {
            auto db = SessionDb::open(path, Totals::None);
            if (!db) return db.status();
            const auto facts = readSessionFacts(*db, {0, length}, progress, cancel);
            if (!facts) return facts.status();
            *verdicts = verdictsOf(*facts);
            return Status();
        },
        this);
    // A session without the tables that verdicts need has none; the rest is shown.
    connect(m_explaining, &Job::finished, this, [this, verdicts](const Status& status) {
        m_explaining = nullptr;
        if (!status.ok()) return;
        m_page->plots()->setVerdicts(*verdicts);
        emit verdictsKnown();
    });
    m_explaining->start();
}

void RecordedView::close() {
    if (!m_source) return;
    clear();
    emit closed();
}

void RecordedView::tick(bool shown) {
    if (!m_source) return;
    m_player->tick();
    m_view->advance(m_source->duration());
    if (!shown) return;
    const int columns = std::max(200, m_page->plots()->width());
    m_source->setWindow({m_view->lower(), m_view->upper(), columns});
    m_page->recordedChat()->tick();
    m_page->recordedKnobs()->tick(m_source->snapshot());
}

bool RecordedView::atWork() const {
    return m_source && (m_player->playing() || !m_source->current() || !m_source->complete());
}

}  // namespace colibri::ui
