// SPDX-License-Identifier: GPL-3.0-or-later
// MainWindow: status bar, figures of the top bar, sheets.
#include <QMenuBar>
#include <cmath>

#include "app/workbench/platform/text.h"
#include "app/workbench/window/main_window.h"
#include "engine/base/format.h"
#include "engine/base/machine.h"

namespace colibri::ui {
namespace {

constexpr int kGpuWidth = 1000;  // px of the window from which the GPU is shown

QString gibNumber(int64_t bytes) {
    return str(formatFixed(double(bytes) / double(1 << 30), 2));
}

QString threadsText(int64_t threads) {
    return QString("%1 thread%2").arg(threads).arg(threads == 1 ? "" : "s");
}

// "1.25 of 8.00 GiB"
QString usedOf(int64_t used, int64_t limit) {
    return limit > 0 ? gibNumber(used) + " of " + gibNumber(limit) + " GiB"
                     : gibNumber(used) + " GiB";
}

}  // namespace

void MainWindow::updateTopBar(const Snapshot* snapshot) {
    if (!snapshot || snapshot->recorded) return;
    m_top->recording()->setState(!snapshot->sessionFile.empty() && snapshot->sessionError.empty(),
                                 snapshot->now, str(snapshot->sessionError));
}

void MainWindow::updateStatus(const Snapshot* snapshot) {
    const ModelFacts* model = m_source->model();
    const MemoryNow memory = m_source->memory();
    if (snapshot && snapshot->recorded) {
        showRecordedStatus(*snapshot);
    } else if (!model || !snapshot) {
        showMachine(memory);
    } else {
        showEngine(*model, *snapshot, memory);
        showReads(*snapshot);
        showGpu(*snapshot);
        showRecording(*snapshot);
        m_status->cell(StatusBar::Bell)
            ->setContent({.icon = "bell", .label = QString::number(m_messages->all().size())});
    }
    m_status->fit();
}

// The cells while no model is loaded.
void MainWindow::showMachine(const MemoryNow& memory) {
    using Cell = StatusBar::Cell;
    const bool loading = m_source->state() == SessionSource::State::Loading;
    m_status->cell(Cell::State)
        ->setContent({.label = loading ? "Loading" : "No model",
                      .dot = loading ? Tone::Accent : Tone::Text3});
    const QString free = memory.free > 0 ? usedOf(memory.free, memoryTotal()) : QString("n/a");
    m_status->cell(Cell::Memory)->setContent({.icon = "mem", .label = "Free", .value = free});
    m_status->cell(Cell::Device)
        ->setContent(
            {.label = "CPU", .value = m_device.isEmpty() ? threadsText(logicalCpus()) : m_device});
    m_status->cell(Cell::Gpu)->setContent({.label = "GPU",
                                           .value = m_gpu.isEmpty() ? QString("n/a") : m_gpu,
                                           .muted = m_gpu.startsWith("n/a")});
    m_status->setWanted(Cell::Gpu, !m_gpu.isEmpty() && width() >= kGpuWidth);
    m_status->setWanted(Cell::LinkBadge, false);
}

void MainWindow::showEngine(const ModelFacts& model, const Snapshot& snapshot,
                            const MemoryNow& memory) {
    using Cell = StatusBar::Cell;
    const bool generating = m_source->activeRequests() > 0;
    m_status->cell(Cell::State)
        ->setContent({.label = generating ? "Generating" : "Idle", .dot = Tone::Ok});
    const bool small = windowClassOf(width()) == WindowClass::Small;
    const double share = memory.limit > 0 ? double(memory.used) / double(memory.limit) : -1;
    m_status->cell(Cell::Memory)
        ->setContent({.icon = "mem",
                      .value = usedOf(memory.used, memory.limit),
                      .bar = small ? -1 : share,
                      .valueTone = share >= 1 ? Tone::Error : Tone::Text1});
    const int64_t threads = snapshot.knob(KnobId::ComputeThreads).effective;
    m_status->cell(Cell::Device)
        ->setContent({.label = "CPU", .value = model.device + ", " + threadsText(threads)});
}

void MainWindow::showReads(const Snapshot& snapshot) {
    using Cell = StatusBar::Cell;
    m_status->cell(Cell::Disk)
        ->setContent({.label = "Read", .value = str(formatRate(snapshot.readNowBytesPerS))});
    const int64_t limit = snapshot.knob(KnobId::LinkLimit).effective;
    StatusCell* badge = m_status->cell(Cell::LinkBadge);
    badge->setContent({.icon = "warn",
                       .label = "Link limit",
                       .value = count(limit) + " MB/s",
                       .badge = true,
                       .briefLabel = false});
    badge->setToolTip(
        "Expert reads are slowed down to emulate a slower disk. Click to go to the knob.");
    m_status->setWanted(Cell::LinkBadge, limit > 0);
}

void MainWindow::showGpu(const Snapshot& snapshot) {
    const SeriesData& sm = snapshot.series[size_t(SeriesId::SmUtilisation)];
    const SeriesData& busy = snapshot.series[size_t(SeriesId::GpuBusy)];
    StatusCell::Content content{.label = "GPU"};
    // A share of the time in which something ran is not the share of the GPU that it used.
    const bool onlyBusy = !sm.unavailable.empty() && busy.unavailable.empty();
    const SeriesData& shown = onlyBusy ? busy : sm;
    if (shown.unavailable.empty() && !shown.y.empty()) {
        if (onlyBusy) content.label = "GPU busy";
        const double now = snapshot.recorded ? valueAt(shown, snapshot.now) : shown.y.back();
        content.value = str(formatFixed(now, 0)) + " %";
    } else {
        content.value = "n/a: " + str(shown.unavailable);
        content.brief = "n/a";
    }
    if (snapshot.gpuClocksLocked) {
        content.icon = "warn";
        content.brief = content.value;
        content.value += ", clocks locked";
        content.badge = true;
    }
    m_status->cell(StatusBar::Gpu)->setContent(content);
    m_status->cell(StatusBar::Gpu)
        ->setToolTip(snapshot.gpuClocksLocked
                         ? "PM sampling locks the GPU's clocks, so kernels take another time than "
                           "without it. Turn it off with the command \"Precise GPU counters\"."
                         : "");
    m_status->setWanted(StatusBar::Gpu, width() >= kGpuWidth);
}

void MainWindow::showRecording(const Snapshot& snapshot) {
    using Cell = StatusBar::Cell;
    m_status->cell(Cell::Cost)
        ->setContent({.label = "Recording cost",
                      .value = str(formatPercent(snapshot.figures.recordingCost, 1))});
    const bool dropped = snapshot.eventsDropped > 0;
    m_status->cell(Cell::Dropped)
        ->setContent({.icon = dropped ? "warn" : "",
                      .label = "Dropped",
                      .value = count(int64_t(snapshot.eventsDropped)),
                      .badge = dropped});
    const QString file = str(snapshot.sessionFile).section('/', -1);
    const QString size = str(formatGiB(double(snapshot.sessionBytes)));
    const bool compact = windowClassOf(width()) == WindowClass::Compact;
    const QString text = file.isEmpty() ? QString("no session file")
                         : compact      ? size
                                        : file.section('.', 0, 0) + ", " + size;
    m_status->cell(Cell::Session)
        ->setContent({.icon = "clock",
                      .value = text,
                      .muted = file.isEmpty(),
                      .brief = file.isEmpty() ? "none" : size});
}

void MainWindow::updateServing() {
    StatusCell* cell = m_status->cell(StatusBar::Serving);
    const bool on = m_server->state() == ModelServer::State::On;
    m_status->setWanted(StatusBar::Serving, on);
    if (!on) return;
    const QString inFlight = count(int64_t(m_server->figures().inFlight)) + " in flight";
    // A server that other machines can reach is shown as a badge.
    const QString port = ":" + QString::number(m_server->port());
    cell->setContent({.icon = "send",
                      .label = "Serving",
                      .value = width() >= 1600 ? port + ", " + inFlight : port,
                      .badge = !m_server->local(),
                      .brief = port,
                      .briefLabel = false});
    cell->setToolTip(m_server->address() + ", " + inFlight);
    m_status->fit();
}

void MainWindow::whenUnused(const QString& question, const QString& answer,
                            std::function<void()> action) {
    QStringList ends;
    if (m_server->state() == ModelServer::State::On) ends << "serving at " + m_server->address();
    if (m_loadTest->running()) ends << "the load test";
    if (!m_chatPage->chat()->replying().isEmpty()) ends << "the reply that is being written";
    if (ends.isEmpty()) return action();
    const QString last = ends.takeLast();
    m_messages->post(
        {.kind = Message::Kind::Warning,
         .text = question,
         .detail = "This ends " + (ends.isEmpty() ? last : ends.join(", ") + " and " + last) + ".",
         .actionText = answer,
         .action = std::move(action),
         .stays = true});
}

// Messages about the recording: dropped events, a session file that cannot be written.
void MainWindow::watchSession(const Snapshot& snapshot) {
    if (snapshot.eventsDropped > m_droppedSeen) {
        const uint64_t lost = snapshot.eventsDropped - m_droppedSeen;
        if (m_droppedSeen == 0)
            m_messages->post({Message::Kind::Warning,
                              QString("Recording dropped %1 events.").arg(count(int64_t(lost))),
                              "A ring was full; figures of this moment are low."});
        m_droppedSeen = snapshot.eventsDropped;
    }
    const QString error = str(snapshot.sessionError);
    if (error != m_sessionErrorSeen) {
        m_sessionErrorSeen = error;
        if (!error.isEmpty()) m_messages->error("Recording to the session file stopped.", error);
    }
}

// A click on a cell shows more about its figure; it changes nothing.
void MainWindow::statusClicked(StatusBar::Cell cell) {
    using Cell = StatusBar::Cell;
    const bool ofFile = cell == Cell::State || cell == Cell::Memory || cell == Cell::Device ||
                        cell == Cell::Session;
    if (m_recorded->isOpen() && ofFile) {
        m_commands->run("session.totals");
        return;
    }
    switch (cell) {
        case StatusBar::Serving:
            m_commands->run("engine.serve");
            break;
        case StatusBar::LinkBadge:
            showKnob(KnobId::LinkLimit);
            break;
        case StatusBar::Bell:
            m_top->bell()->click();
            break;
        case StatusBar::Disk:
            showPage("chat");
            m_chatPage->plots()->setFocus();
            break;
        case StatusBar::State:
        case StatusBar::Memory:
        case StatusBar::Cost:
        case StatusBar::Dropped:
        case StatusBar::Session:
            if (m_source->model())
                openSessionSheet();
            else
                openDiagnostics();
            break;
        case StatusBar::Device:
        case StatusBar::Gpu:
        case StatusBar::Version:
        case StatusBar::CellCount:
            openDiagnostics();
            break;
    }
}

void MainWindow::showKnob(KnobId id) {
    showPage("chat");
    m_chatPage->showKnobs();
    if (KnobControl* control = m_chatPage->knobs()->control(id)) control->focusControl();
}

void MainWindow::openKeyboardSheet() {
    std::vector<PaletteList::Row> rows;
    for (const QString& group : m_commands->groups())
        for (const Command& command : m_commands->all())
            if (command.group == group && !command.key.isEmpty())
                rows.push_back({group, command.icon, command.title, "",
                                command.key.toString(QKeySequence::NativeText)});
    const auto row = [&](const QString& group, const QString& title, const QString& key) {
        rows.push_back({group, "", title, "", key});
    };
    row("In a recorded session", "Play or pause", "Space");
    row("In a recorded session", "Step one second", "Left, Right");
    row("In a recorded session", "Turn before or after", "Shift+Left, Shift+Right");
    row("In a recorded session", "Beginning, end", "Home, End");
    row("In a recorded session", "Faster, slower", "+, −");
    row("In a recorded session", "Go to a time", "click in a plot");
    row("In a plot", "Move the cursor", "Left, Right");
    row("In a plot", "Move the range", "A, D or Shift+Left, Shift+Right");
    row("In a plot", "Zoom", "W, S or wheel");
    row("In a plot", "Select a range", "Shift+drag");
    row("In a plot", "Reset the range", "0 or double click");
    row("On a slider", "Step, ten steps", "arrows, Shift+arrows");
    row("On a slider", "Ends, default", "Home, End, Ctrl+0");
    row("In a reply", "Token by token", "Left, Right");
    row("While a reply streams", "Stop", "Esc");
    row("In the message field", "Send, new line", "Enter, Shift+Enter");
    row("In the message field", "Scroll the conversation", "PageUp, PageDown");
    for (const PlotSpec& spec : plotSpecs())  // the details of the tooltips
        rows.push_back(
            {"What the plots count", "", spec.title + ", " + spec.unit(), spec.definition, ""});
    m_sheet->openSheet("Keyboard", std::move(rows));
}

void MainWindow::openAbout() {
    std::vector<PaletteList::Row> rows;
    const auto row = [&](const char* group, const char* title, const QString& value) {
        rows.push_back({group, "", title, value, ""});
    };
    const QString version = QCoreApplication::applicationVersion();
    row("Program", "Colibri Workbench",
        version.isEmpty() ? QString("n/a: not built as a program") : version);
    row("Program", "Copyright", "The Colibri Workbench authors");
    row("Program", "Warranty", "none, to the extent permitted by law");
    row("Licence", "Window, command line, server", "GNU General Public License 3 or later");
    row("Licence", "Engine, kernels, profiler", "Apache License 2.0");
    row("Made with", "Qt", qVersion());
    row("Made with", "QCustomPlot", "GPL 3 or later");
    row("Made with", "SQLite, nlohmann/json, CLI11, cpp-httplib", "their own free licences");
    row("Made with", "PCRE2, utf8proc, xxHash, liburing, libnuma", "their own free licences");
    row("Fonts where installed", "Inter, JetBrains Mono", "SIL Open Font License 1.1");
    m_sheet->openSheet("About", std::move(rows));
}

// All figures of the status bar in full.
void MainWindow::openSessionSheet() {
    const auto snapshot = m_source->snapshot();
    const ModelFacts* model = m_source->model();
    if (!snapshot || !model) return;
    std::vector<PaletteList::Row> rows;
    const auto row = [&](const char* group, const char* title, const QString& value) {
        rows.push_back({group, "", title, value, ""});
    };
    const int active = m_source->activeRequests();
    row("Engine", "State",
        active > 0 ? "generating, " + count(active) + " at once" : QString("idle"));
    row("Engine", "Model, weights", model->name + ", " + model->weights);
    row("Engine", "Experts",
        count(model->moeLayers) + " layers × " + count(model->experts) + ", top-" +
            count(model->topK));
    row("Engine", "Instruction set", model->device);
    row("Engine", "Folder", model->folder);
    const MemoryNow memory = m_source->memory();
    row("Memory", "This process", str(formatGiB(double(memory.used))));
    row("Memory", "Available without swapping",
        memory.limit > 0 ? str(formatGiB(double(memory.limit)))
                         : QString("n/a: not reported by the system"));
    row("Recording", "Session file",
        snapshot->sessionFile.empty() ? QString("none") : str(snapshot->sessionFile));
    row("Recording", "Size", str(formatGiB(double(snapshot->sessionBytes))));
    row("Recording", "Cost, of the time of all cores",
        str(formatPercent(snapshot->figures.recordingCost, 1)));
    row("Recording", "Events recorded", count(int64_t(snapshot->eventsRecorded)));
    row("Recording", "Events dropped",
        count(int64_t(snapshot->eventsDropped)) +
            (snapshot->eventsDropped ? ": a ring was full; figures of those moments are low" : ""));
    if (!snapshot->sessionError.empty()) row("Recording", "Stopped", str(snapshot->sessionError));
    for (const KnobRow& knob : knobTable()) {
        const KnobState state = m_source->knobState(knob.id);
        if (state.requested == state.effective) continue;
        row("Knobs not as requested", knob.label,
            str(knobValueText(knob, state.requested)) + " → " +
                str(knobValueText(knob, state.effective)) + ": " + str(state.reason));
    }
    m_sheet->openSheet("This session", std::move(rows));
}

void MainWindow::openDiagnostics() {
    if (m_diagnose) return m_diagnose();
    std::vector<PaletteList::Row> rows;
    const auto row = [&](const QString& group, const QString& title, const QString& value) {
        rows.push_back({group, "", title, value, ""});
    };
    row("This machine", "Processor", str(processorName()));
    row("This machine", "Cores, threads this process may use",
        QString("%1, %2").arg(physicalCores()).arg(logicalCpus()));
    row("This machine", "NUMA nodes", QString::number(numaNodes()));
    row("This machine", "Memory", str(formatGiB(double(memoryTotal()))));
    row("Program", "Qt", qVersion());
    row("Program", "Platform", QGuiApplication::platformName());
    m_sheet->openSheet("Diagnose this machine", std::move(rows));
}

}  // namespace colibri::ui
