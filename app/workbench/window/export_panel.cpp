// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/workbench/window/export_panel.h"

#include <QFileInfo>
#include <QKeyEvent>
#include <QLabel>
#include <QVBoxLayout>

#include "app/workbench/platform/ask_file.h"
#include "app/workbench/platform/job.h"
#include "app/workbench/platform/text.h"
#include "app/workbench/plots/plot_data.h"
#include "app/workbench/widgets/page_parts.h"
#include "app/workbench/widgets/progress_panel.h"
#include "engine/base/format.h"

namespace colibri::ui {
namespace {

struct FormatChoice {
    ExportFormat format;
    const char *title, *suffix, *filter;
};
constexpr FormatChoice kFormats[] = {
    {ExportFormat::Perfetto, "Trace for Perfetto", "perfetto-trace", "Trace (*.perfetto-trace)"},
    {ExportFormat::Chrome, "Trace for Chrome", "json", "JSON (*.json)"},
    {ExportFormat::Csv, "Series as CSV", "csv", "CSV (*.csv)"},
    {ExportFormat::Json, "Series as JSON", "json", "JSON (*.json)"},
    {ExportFormat::Html, "Report as HTML", "html", "HTML (*.html)"},
    {ExportFormat::Markdown, "Report as Markdown", "md", "Markdown (*.md)"},
};

QLabel* noteLabel() {
    auto* label = new QLabel;
    label->setFont(type::dense());
    label->setProperty("tone", "text2");
    return label;
}

QHBoxLayout* labelled(const char* name, QWidget* control) {
    auto* line = new QHBoxLayout;
    auto* label = new QLabel(name);
    label->setFont(type::body());
    line->addWidget(label);
    line->addStretch();
    line->addWidget(control);
    return line;
}

}  // namespace

ExportPanel::ExportPanel(ViewState* view, QWidget* window)
    : Popover(window),
      m_view(view),
      m_format(new Select),
      m_range(new Segment({"Whole session", "Visible range"})),
      m_times(noteLabel()),
      m_estimate(noteLabel()),
      m_command(new CommandLine),
      m_export(new Button("Export", Button::Kind::Primary)),
      m_progress(new ProgressPanel) {
    setAccessibleName("Export session");
    for (const FormatChoice& choice : kFormats) m_format->addItem(choice.title);
    m_format->setFixedWidth(190);
    m_format->setAccessibleName("Format");
    m_range->setAccessibleName("Range");
    auto* column = new QVBoxLayout(this);
    column->setContentsMargins(1, 1, 1, 12);
    column->setSpacing(8);
    auto* head = new PanelHead("Export session");
    head->setIcon("save");
    column->addWidget(head);
    auto* body = new QVBoxLayout;
    body->setContentsMargins(12, 4, 12, 0);
    body->setSpacing(8);
    body->addLayout(labelled("Format", m_format));
    body->addLayout(labelled("Range", m_range));
    auto* facts = new QHBoxLayout;
    facts->addWidget(m_times);
    facts->addStretch();
    facts->addWidget(m_estimate);
    body->addLayout(facts);
    body->addWidget(m_command);
    body->addWidget(m_progress);
    body->addStretch();
    auto* foot = new QHBoxLayout;
    foot->addStretch();
    foot->addWidget(m_export);
    body->addLayout(foot);
    column->addLayout(body, 1);
    m_progress->hide();
    connect(m_format, &QComboBox::activated, this, &ExportPanel::refresh);
    connect(m_range, &Segment::chosen, this, &ExportPanel::refresh);
    connect(m_view, &ViewState::rangeChanged, this, [this] {
        if (isOpen() && m_range->current() == 1) refresh();
    });
    connect(m_export, &QAbstractButton::clicked, this, &ExportPanel::askPath);
    connect(m_progress, &ProgressPanel::cancelled, this, &ExportPanel::cancel);
}

ExportPanel::~ExportPanel() {
    delete m_job;  // cancels and joins
    delete m_estimating;
}

void ExportPanel::setSession(const QString& path, double duration) {
    m_session = path;
    m_duration = duration;
    m_range->setCurrent(0);
}

void ExportPanel::openBelow(QWidget* anchor) {
    refresh();
    openAt(anchor, false, true);
    m_format->setFocus();
}

ExportOptions ExportPanel::options() const {
    ExportOptions options;
    options.session = m_session.toStdString();
    options.format = kFormats[m_format->currentIndex()].format;
    if (m_range->current() == 1) {
        options.from = std::max(0.0, m_view->lower());
        options.to = std::min(m_duration, m_view->upper());
    }
    return options;
}

QString ExportPanel::command() const {
    return m_command->command();
}

QString ExportPanel::estimateText() const {
    return m_estimate->text();
}

void ExportPanel::refresh() {
    const ExportOptions chosen = options();
    const bool part = m_range->current() == 1;
    const double to = part ? chosen.to : m_duration;
    m_times->setText(clockText(chosen.from, 1) + " to " + clockText(to, 1));
    const FormatChoice& choice = kFormats[m_format->currentIndex()];
    QString command =
        "colibri export " + shellQuoted(m_session) + " --format " + exportFormatName(choice.format);
    if (part)
        command += QString(" --from %1 --to %2")
                       .arg(QString::number(chosen.from, 'f', 1), QString::number(to, 'f', 1));
    m_command->setCommand(
        command + " -o " +
        shellQuoted(QFileInfo(m_session).completeBaseName() + "." + choice.suffix));
    estimate();
}

// Counting rows reads the file, so it is a job; only the newest counts.
void ExportPanel::estimate() {
    if (m_estimating) m_estimating->abandon();
    m_estimate->setText("Estimating the size");
    const auto bytes = std::make_shared<int64_t>(0);
    const uint64_t generation = ++m_generation;
    m_estimating = new Job(
        [bytes, chosen = options()](const ProgressFn&, const CancelFlag*) {
            const auto result = estimateExport(chosen);
            if (!result) return result.status();
            *bytes = *result;
            return Status();
        },
        this);
    connect(m_estimating, &Job::finished, this, [this, bytes, generation](const Status& status) {
        if (generation != m_generation) return;
        m_estimate->setText(status.ok() ? "About " + sizeText(double(*bytes))
                                        : "n/a: " + str(status.message()));
    });
    m_estimating->start();
}

void ExportPanel::askPath() {
    const FormatChoice& choice = kFormats[m_format->currentIndex()];
    const QString path =
        askSaveFile(window(), "Export session",
                    QFileInfo(m_session).completeBaseName() + "." + choice.suffix, choice.filter);
    if (!path.isEmpty()) exportTo(path);
}

void ExportPanel::exportTo(const QString& path) {
    if (running()) return;
    ExportOptions chosen = options();
    chosen.output = path.toStdString();
    m_job = new Job(
        [chosen](const ProgressFn& progress, const CancelFlag* cancel) {
            return exportSession(chosen, progress, cancel).status();
        },
        this);
    connect(m_job, &Job::progressed, this, [this] { m_progress->setProgress(m_job->progress()); });
    connect(m_job, &Job::finished, this,
            [this, path](const Status& status) { ended(status, path); });
    m_progress->begin("Exporting to " + QFileInfo(path).fileName());
    m_progress->show();
    m_export->setEnabled(false);
    m_job->start();
}

void ExportPanel::cancel() {
    if (!running()) return;
    m_progress->setCancelling();
    m_job->cancel();
}

void ExportPanel::ended(const Status& status, const QString& path) {
    m_job = nullptr;
    m_progress->hide();
    m_export->setEnabled(true);
    if (status.ok()) {
        closePopover();
        emit exported(path);
    } else if (status.code() != Code::Cancelled) {
        emit failed("The session was not exported.", str(status.text()));
    }
}

// Esc cancels a running export before it closes the popover.
void ExportPanel::keyPressEvent(QKeyEvent* event) {
    if (event->key() == Qt::Key_Escape && running()) return cancel();
    Popover::keyPressEvent(event);
}

}  // namespace colibri::ui
