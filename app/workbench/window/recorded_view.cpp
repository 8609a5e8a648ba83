// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/workbench/window/recorded_view.h"

#include <limits>

#include "app/workbench/plots/plot_canvas.h"

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
    emit opened();
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
