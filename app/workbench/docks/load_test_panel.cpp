// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/workbench/docks/load_test_panel.h"

#include <QCheckBox>
#include <QKeyEvent>
#include <QScrollBar>

#include "app/workbench/platform/ask_file.h"
#include "app/workbench/platform/text.h"
#include "app/workbench/widgets/controls.h"
#include "app/workbench/widgets/data_table.h"
#include "app/workbench/widgets/page_parts.h"
#include "app/workbench/widgets/progress_panel.h"
#include "app/workbench/widgets/slider_row.h"
#include "engine/base/format.h"
#include "profiler/metrics/metric_table.h"

namespace colibri::ui {
namespace {

constexpr int kLatencyColumn = 59;  // px: "25.4 s", "1,230 s"
constexpr int kRateScale = 10;      // the slider of the rate has steps of 0.1

// A quantile in ns with three digits: in ms, from ten seconds on in s.
TableCell milliseconds(double ns, bool vague = false) {
    if (!std::isfinite(ns)) return {"n/a", Tone::Count, Tone::Text3};
    const double ms = ns * 1e-6;
    const QString text = str(ms >= 9999.5 ? formatMs(ms) : formatSig(ms));
    return {text, Tone::Count, vague ? Tone::Text3 : Tone::Count};
}

// The command line of the same load test.
QString commandOf(const LoadPlan& plan, const QString& model) {
    const LoadOptions& load = plan.load;
    QString text = "colibri load " + shellQuoted(model);
    if (!plan.prompts.isEmpty()) text += " --prompts " + shellQuoted(plan.prompts);
    if (load.rate > 0)
        text += QString(" --rate %1 --seed %2").arg(load.rate).arg(load.seed);
    else
        text += QString(" --users %1").arg(load.users);
    if (load.requests > 0) text += QString(" --requests %1").arg(load.requests);
    if (load.durationS > 0) text += QString(" --duration %1").arg(load.durationS);
    text += QString(" --max-tokens %1").arg(plan.maxTokens);
    if (plan.ignoreEos) text += " --ignore-eos";
    return text;
}

}  // namespace

LoadTestPanel::LoadTestPanel(SessionSource* source, LoadTest* test, QWidget* parent)
    : DockPanel("pulse", "Load test", parent), m_source(source), m_test(test) {
    buildForm();
    buildResult();
    m_note = new Note;
    foot()->addWidget(m_note);
    m_command = new CommandLine;
    foot()->addWidget(m_command);
    m_start = new Button("Start test", Button::Kind::Primary);
    foot()->addWidget(m_start);
    m_progress = new ProgressPanel;
    m_progress->hide();
    foot()->addWidget(m_progress);
    connect(m_start, &QAbstractButton::clicked, this, &LoadTestPanel::startTest);
    connect(m_progress, &ProgressPanel::cancelled, m_test, &LoadTest::stop);
    connect(m_test, &LoadTest::changed, this, &LoadTestPanel::refresh);
    connect(m_source, &SessionSource::stateChanged, this, &LoadTestPanel::refresh);
    refresh();
}

// ---- parts

SliderRow* LoadTestPanel::addSlider(DockSection* section, const QString& label, const QString& unit,
                                    int64_t max, int64_t value) {
    auto* row = new SliderRow(label, unit);
    SliderRange range{1, max, 1, value};
    range.logarithmic = true;
    row->setRange(range);
    row->setValue(value);
    section->body()->addWidget(row);
    connect(row, &SliderRow::edited, this, &LoadTestPanel::refresh);
    return row;
}

void LoadTestPanel::buildForm() {
    DockSection* what = addSection({});
    m_from = new Segment({"built-in set", "file"});
    what->addRow("Prompts", m_from, false)
        ->setToolTip(
            "A file has one prompt per line: text, or JSON with \"prompt\" or \"messages\".");
    m_fileRow = new QWidget;
    auto* row = new QHBoxLayout(m_fileRow);
    row->setContentsMargins(0, 0, 0, 0);
    row->setSpacing(8);
    m_file = new QLineEdit;
    m_file->setFont(type::mono());
    m_file->setPlaceholderText("path to a file");
    m_file->setAccessibleName("File of prompts");
    row->addWidget(m_file, 1);
    auto* choose = new Button("Choose");
    row->addWidget(choose);
    what->body()->addWidget(m_fileRow);
    m_maxTokens = addSlider(what, "Max tokens", "tokens", 4096, 128);
    m_ignoreEos = new QCheckBox("Replies continue to the token limit");
    what->body()->addWidget(m_ignoreEos);

    DockSection* when = addSection({});
    m_loop = new Segment({"closed loop", "open loop"});
    when->addRow("Arrivals", m_loop, false);
    m_users = addSlider(when, "Users", "users", 256, 4);
    m_rate = addSlider(when, "Rate", "requests / s", 1000, 10);
    m_rate->setScale(kRateScale, 1);
    SliderRange rate = m_rate->slider()->range();
    rate.minText = "0.1";
    rate.maxText = "100";
    rate.defaultText = "1.0";
    m_rate->setRange(rate);
    m_seed = addSlider(when, "Seed", "", 999'999, 1);
    m_arrivals = new Note;
    when->body()->addWidget(m_arrivals);
    m_until = new Segment({"requests", "seconds"});
    when->addRow("Until", m_until, false);
    m_requests = addSlider(when, "Requests", "requests", 100'000, 32);
    m_seconds = addSlider(when, "Duration", "s", 86'400, 60);
    m_form = {what, when};

    for (Segment* segment : {m_from, m_loop, m_until})
        connect(segment, &Segment::chosen, this, &LoadTestPanel::refresh);
    connect(m_file, &QLineEdit::textEdited, this, &LoadTestPanel::refresh);
    connect(m_ignoreEos, &QCheckBox::toggled, this, &LoadTestPanel::refresh);
    connect(choose, &QAbstractButton::clicked, this, [this] {
        const QString path = askOpenFile(
            window(), "Prompts", "Prompts (*.txt *.jsonl *.json);;All files (*)", m_file->text());
        if (path.isEmpty()) return;
        m_file->setText(path);
        refresh();
    });
}

void LoadTestPanel::buildResult() {
    m_result = addSection({});
    m_result->layout()->setContentsMargins(0, 1, 0, 12);
    QVector<TableColumn> columns{{"ms", 0}};
    for (const char* title : {"P50", "P90", "P99", "max"})
        columns << TableColumn{title, kLatencyColumn, true, true};
    columns.back().width += 8;  // the last column has more padding
    m_latencies = new DataTable(columns, false);
    m_latencies->setInnerPadding(4);
    m_latencies->setPadding(12, 12);
    m_latencies->setToolTip(
        "Successful replies only. TTFT and reply time count from the scheduled arrival of a "
        "request, so they include waiting for the engine.");
    m_result->body()->setSpacing(0);
    m_result->body()->addWidget(m_latencies);
    m_totals = new DataTable({{"Total", 0}, {"", 150, true, true}}, false);
    m_totals->setPadding(12, 12);
    m_result->body()->addWidget(m_totals);
    auto* below = new QWidget;
    auto* row = new QHBoxLayout(below);
    row->setContentsMargins(12, 8, 12, 0);
    row->setSpacing(8);
    m_few = new Note;
    row->addWidget(m_few, 1);
    m_export = new Button("Export", Button::Kind::Default, Button::Size::Dense);
    m_export->setIconName("save");
    row->addWidget(m_export, 0, Qt::AlignTop);
    m_result->body()->addWidget(below);
    connect(m_export, &QAbstractButton::clicked, this, &LoadTestPanel::exportReport);
}

// ---- state

LoadPlan LoadTestPanel::plan() const {
    LoadPlan plan;
    if (m_from->current() == 1) plan.prompts = m_file->text().trimmed();
    plan.maxTokens = int(m_maxTokens->value());
    plan.ignoreEos = m_ignoreEos->isChecked();
    plan.load.users = int(m_users->value());
    if (m_loop->current() == 1) plan.load.rate = double(m_rate->value()) / kRateScale;
    plan.load.seed = uint64_t(m_seed->value());
    if (m_until->current() == 0)
        plan.load.requests = m_requests->value();
    else
        plan.load.durationS = double(m_seconds->value());
    return plan;
}

QString LoadTestPanel::note() const {
    return m_note->text();
}

void LoadTestPanel::startTest() {
    if (!m_start->isEnabled() || m_test->running()) return;
    m_progress->begin("Load test");
    m_test->start(plan());
}

void LoadTestPanel::refresh() {
    const bool running = m_test->running(), open = m_loop->current() == 1;
    const bool file = m_from->current() == 1, byCount = m_until->current() == 0;
    const ModelFacts* model = m_source->model();
    m_fileRow->setVisible(file);
    m_users->setVisible(!open);
    m_rate->setVisible(open);
    m_seed->setVisible(open);
    m_arrivals->setNote(open
                            ? "Requests arrive at random times, whether or not the engine keeps up."
                            : "Each user sends the next request after the reply.");
    m_requests->setVisible(byCount);
    m_seconds->setVisible(!byCount);
    m_command->setCommand(commandOf(plan(), model ? model->folder : QString("DIR")));
    m_command->setToolTip(m_command->command());

    QString why;
    if (!m_source->engine())
        why = "Open a model first: the test sends requests to the loaded model.";
    else if (!model->chatProblem.isEmpty())
        why = model->chatProblem;
    else if (file && m_file->text().trimmed().isEmpty())
        why = "Choose a file of prompts.";
    const Status& error = m_test->error();
    if (!error.ok())
        m_note->setNote(str(error.text()), "error", Tone::Error, Tone::Text1);
    else
        m_note->setNote(why);
    m_note->setVisible(!running && (!error.ok() || !why.isEmpty()));
    for (DockSection* section : m_form) section->setEnabled(!running);
    m_start->setEnabled(why.isEmpty());
    m_start->setVisible(!running);
    m_command->setVisible(!running);
    m_progress->setVisible(running);
    if (m_test->stopping()) m_progress->setCancelling();
    setTag(running
               ? TagLook{m_test->stopping() ? "stopping" : "running", "", Tone::Tint, Tone::Accent}
               : TagLook{});

    m_result->setVisible(running || m_test->report());
    m_latencies->setVisible(m_test->report().has_value());
    m_export->setVisible(m_test->report().has_value());
    m_few->setVisible(m_test->report().has_value());
    if (m_test->report()) showResult();
    showTotals();
    if (running != m_wasRunning) {  // live figures first, then the report
        m_wasRunning = running;
        QTimer::singleShot(0, this, [this] {
            scroll()->verticalScrollBar()->setValue(scroll()->verticalScrollBar()->maximum());
        });
    }
    tick();
}

void LoadTestPanel::tick() {
    if (!m_test->running()) return;
    m_progress->setProgress(m_test->progress());
    showTotals();
}

void LoadTestPanel::showResult() {
    const LoadReport& r = *m_test->report();
    const auto row = [](const char* name, const Histogram& h) {
        return QVector<TableCell>{{name},
                                  milliseconds(h.quantile(0.5)),
                                  milliseconds(h.quantile(0.9)),
                                  milliseconds(h.quantile(0.99), h.count() < kEnoughForP99),
                                  milliseconds(h.max())};
    };
    m_latencies->setRows({row("TTFT", r.ttft), row("ITL", r.itl), row("Reply", r.endToEnd)});
    const auto n = [](const Histogram& h) { return count(int64_t(h.count())); };
    QString text = "n = " + n(r.ttft) + ", " + n(r.itl) + ", " + n(r.endToEnd);
    if (r.ttft.count() < kEnoughForP99 || r.itl.count() < kEnoughForP99)
        text += "; P99 is grey below " + count(int64_t(kEnoughForP99));
    m_few->setNote(text);
}

void LoadTestPanel::showTotals() {
    const auto row = [](const QString& name, const QString& value, Tone ink = Tone::Count) {
        return QVector<TableCell>{{name}, {value, Tone::Count, ink}};
    };
    QVector<QVector<TableCell>> rows;
    if (const auto& report = m_test->report()) {
        const LoadReport& r = *report;
        m_totals->setColumnTitle(0, m_test->stopped() ? "Total until stopped" : "Total");
        rows = {row("Completed", count(r.completed) + " of " + count(int64_t(r.samples.size()))),
                row("Time", str(formatFixed(r.durationS, 1)) + " s"),
                row("Throughput", str(formatSig(r.requestsPerSecond())) + " req/s"),
                row("Generated", str(formatSig(r.tokensPerSecond())) + " tok/s"),
                row("Tokens", r.tokens ? count(int64_t(*r.tokens)) : "n/a")};
        for (const auto& [kind, n] : r.errors)
            rows << row("Ended: " + str(kind), count(n), Tone::Warn);
    } else {
        const LoadNow now = m_test->now();
        m_totals->setColumnTitle(0, "So far");
        rows = {row("Completed", count(now.completed)), row("In flight", count(now.inFlight())),
                row("Failed", count(now.failed), now.failed ? Tone::Warn : Tone::Count),
                row("Tokens", count(int64_t(now.tokens))),
                row("Time", str(formatFixed(now.seconds, 1)) + " s")};
    }
    m_totals->setRows(rows);
}

// ---- export

void LoadTestPanel::exportReport() {
    if (!m_test->report()) return;
    const QString path = askSaveFile(window(), "Export the load test", "load-test.json",
                                     "JSON (*.json);;CSV, one line per request (*.csv)");
    if (!path.isEmpty()) exportTo(path);
}

void LoadTestPanel::exportTo(const QString& path) {
    const Status status = m_test->save(path);
    if (status.ok())
        emit exported(path);
    else
        emit failed("The load test was not exported.", str(status.text()));
}

void LoadTestPanel::keyPressEvent(QKeyEvent* event) {
    if (event->key() == Qt::Key_Escape && m_test->running()) return m_test->stop();
    DockPanel::keyPressEvent(event);
}

}  // namespace colibri::ui
