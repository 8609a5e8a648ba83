// SPDX-License-Identifier: GPL-3.0-or-later
// MainWindow: a recorded session.
#include <QApplication>
#include <QClipboard>
#include <QKeyEvent>

#include "app/workbench/chat/chat_parts.h"
#include "app/workbench/platform/text.h"
#include "app/workbench/plots/plot_data.h"
#include "app/workbench/widgets/page_parts.h"
#include "app/workbench/window/main_window.h"
#include "engine/base/format.h"

namespace colibri::ui {

SessionSource* MainWindow::shownSource() const {
    return m_recorded->isOpen() ? static_cast<SessionSource*>(m_recorded->source()) : m_source;
}

void MainWindow::connectRecorded() {
    connect(m_recorded, &RecordedView::opened, this, [this] {
        const RecordedSource* source = m_recorded->source();
        m_top->chip()->setModel(source->model()->name, {});
        m_top->setRecorded(source->started().isNull() ? QString("") : source->started());
        m_top->setSessionVisible(true);
        m_status->setModelLoaded(true);
        m_statusTicks = 0;
        showPage("chat");
        setFocusHome(this, m_recorded->bar()->scrubber());
        m_recorded->bar()->scrubber()->setFocus();
        showRecordedProblems();
        wake();
        tick();
    });
    connect(m_recorded, &RecordedView::completed, this, [this] {
        showRecordedProblems();
        wake();
    });
    connect(m_recorded, &RecordedView::closed, this, [this] {
        m_top->setRecorded({});
        m_recordedProblems = QString();
        m_exportPanel->closePopover();
        showSource();
        showPage("chat");
        setFocusHome(this, m_chatPage->chat()->composer()->editor());
        m_chatPage->chat()->composer()->focusEditor();
        if (!m_source->model()) emit nothingShown();
    });
    connect(m_chatPage->plots()->verdict(), &QAbstractButton::clicked, this,
            &MainWindow::openVerdicts);
    connect(m_recorded->bar(), &PlayerBar::exportWanted, this, &MainWindow::openExport);
    connect(m_exportPanel, &ExportPanel::exported, this,
            [this](const QString& path) { postExported("Session exported.", path); });
    connect(m_exportPanel, &ExportPanel::failed, m_messages, &MessageCenter::error);
    connect(m_recorded, &RecordedView::chatWanted, this, [this](const Conversation& chat) {
        showPage("chat");
        m_chatPage->chat()->openConversation(Conversation(chat));
        m_chats->save(m_chatPage->chat()->conversation());
    });
}

void MainWindow::openExport() {
    const RecordedSource* source = m_recorded->source();
    if (m_exportPanel->isOpen()) return m_exportPanel->closePopover();
    if (!m_exportPanel->running()) m_exportPanel->setSession(source->path(), source->duration());
    QWidget* button = m_recorded->bar()->exportButton();
    m_exportPanel->openBelow(button->isVisible() ? button : m_recorded->bar()->scrubber());
}

// All verdicts, with their knobs.
void MainWindow::openVerdicts() {
    std::vector<PaletteList::Row> rows;
    for (const Verdict& verdict : m_chatPage->plots()->verdict()->verdicts()) {
        const KnobRow* knob = findKnob(verdict.knob);
        rows.push_back({"Largest effect first", "", str(verdict.text),
                        knob ? str(knobTitle(*knob)) : QString(), ""});
    }
    m_sheet->openSheet("What limits this session", std::move(rows));
}

// What of a damaged, old or unfinished file is missing; once for each text.
void MainWindow::showRecordedProblems() {
    const RecordedSource* source = m_recorded->source();
    if (!source) return;
    const QString problems = source->problems();
    if (!problems.isEmpty() && problems != m_recordedProblems)
        m_messages->error("A part of the session cannot be read.",
                          problems + ". The rest is shown; the file is not changed.");
    if (m_recordedProblems.isNull() && !source->summary().endedCleanly)
        m_messages->post({Message::Kind::Info, "This session has no clean end.",
                          "It is still being recorded, or its program ended unexpectedly. What is "
                          "recorded so far is shown."});
    m_recordedProblems = problems.isNull() ? QString("") : problems;
}

void MainWindow::addPlayerCommands() {
    const CommandGroup session(m_commands, "Session");
    const auto add = [&](const char* id, const char* title, const char* icon, const char* keys,
                         std::function<void(Player&)> run) {
        session.add(id, title, icon, "", [this, run] { run(*m_recorded->player()); },
                    {.enabled = [this] { return m_recorded->isOpen(); },
                     .needs = "no recorded session is open",
                     .detail = [keys] { return QString(keys); },
                     .also = "player recorded replay"});
    };
    add("session.play", "Play or pause the recorded session", "play", "Space",
        [](Player& player) { player.togglePlaying(); });
    add("session.back", "Step back one second", "left", "Left",
        [](Player& player) { player.step(-Player::kStep); });
    add("session.forward", "Step forward one second", "right", "Right",
        [](Player& player) { player.step(Player::kStep); });
    add("session.turn_before", "Go to the turn before", "left", "Shift+Left",
        [](Player& player) { player.stepTurn(-1); });
    add("session.next_turn", "Go to the next turn", "right", "Shift+Right",
        [](Player& player) { player.stepTurn(1); });
    add("session.begin", "Go to the beginning", "left", "Home",
        [](Player& player) { player.seek(0); });
    add("session.end", "Go to the end", "right", "End",
        [](Player& player) { player.seek(player.duration()); });
    add("session.faster", "Play faster", "plus", "+",
        [](Player& player) { player.setSpeed(player.speed() + 1); });
    add("session.slower", "Play slower", "clock", "−",
        [](Player& player) { player.setSpeed(player.speed() - 1); });
    const CommandGroup::Options needSession{.enabled = [this] { return m_recorded->isOpen(); },
                                            .needs = "no recorded session is open"};
    session.add(
        "session.totals", "Totals of the recorded session", "info", "",
        [this] { emit m_recorded->totalsWanted(m_recorded->source()->path()); }, needSession);
    session.add("session.verdicts", "What limits the recorded session", "info", "",
                [this] { openVerdicts(); },
                {.enabled = [this] { return !m_chatPage->plots()->verdict()->verdicts().empty(); },
                 .needs = "no recorded session is open, or it is still being read"});
    session.add(
        "session.export", "Export the recorded session", "save", "", [this] { openExport(); },
        needSession);
    session.add(
        "session.close", "Close the recorded session", "close", "", [this] { m_recorded->close(); },
        needSession);
}

// Keys that the focused widget did not use.
bool MainWindow::playerKey(QKeyEvent* event) {
    return m_recorded->isOpen() && m_current == "chat" && m_recorded->bar()->handleKey(event);
}

void MainWindow::showRecordedStatus(const Snapshot& snapshot) {
    using Cell = StatusBar::Cell;
    const RecordedSource* source = m_recorded->source();
    m_status->cell(Cell::State)
        ->setContent({.icon = "clock", .label = "Recorded session", .value = source->name()});
    m_status->cell(Cell::Memory)->setContent({.label = "Read only"});
    m_status->cell(Cell::Device)
        ->setContent(
            {.label = "At",
             .value = clockText(source->time(), 1) + " of " + clockText(source->duration(), 0)});
    showReads(snapshot);
    showGpu(snapshot);
    m_status->setWanted(Cell::Cost, false);
    m_status->setWanted(Cell::Dropped, false);
    m_status->cell(Cell::Session)
        ->setContent({.label = "On disk", .value = str(formatGiB(double(snapshot.sessionBytes)))});
    m_status->cell(Cell::Bell)
        ->setContent({.icon = "bell", .label = QString::number(m_messages->all().size())});
}

}  // namespace colibri::ui
