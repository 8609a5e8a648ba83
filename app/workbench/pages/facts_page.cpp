// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/workbench/pages/facts_page.h"

#include <QDateTime>
#include <QFileInfo>
#include <QKeyEvent>
#include <QScrollArea>
#include <QVBoxLayout>
#include <map>
#include <set>

#include "app/workbench/platform/text.h"
#include "app/workbench/widgets/page_parts.h"
#include "app/workbench/widgets/slider_row.h"
#include "engine/base/format.h"

namespace colibri::ui {
namespace {

constexpr int kTwoColumnsFrom = 1200;
constexpr int kHeadFacts = 3;  // height of the head of a section, in lines

// The end of a request in words.
QString stopText(const std::string& stop) {
    static const std::map<std::string, const char*> kWords = {
        {"eos", "end of text"},     {"length", "the token limit"},       {"stop", "a stop string"},
        {"cancelled", "cancelled"}, {"context", "the context was full"}, {"error", "an error"}};
    const auto it = kWords.find(stop);
    return it == kWords.end() ? stop.empty() ? QString("not finished") : str(stop)
                              : QString(it->second);
}

MachineFact percentiles(const QString& name, const Histogram& values) {
    if (values.count() == 0) return {name, "n/a: none recorded", "", true};
    return {name, "P50 " + str(formatMs(values.quantile(0.5) / 1e6)) + ", P99 " +
                      str(formatMs(values.quantile(0.99) / 1e6)) +
                      ", n = " + count(int64_t(values.count()))};
}

MachineSection requestsOf(const SessionDetails& details) {
    MachineSection section{"Requests", {}};
    int64_t all = 0;
    QStringList ends;
    for (const auto& [stop, n] : details.stops) {
        all += n;
        ends << stopText(stop) + " " + count(n);
    }
    if (all == 0) return section;
    section.facts = {
        {"Ended by", ends.join(", ")},
        percentiles("TTFT", details.ttft),
        percentiles("ITL", details.itl),
        percentiles("Expert load", details.expertLoad),
        {"Prompt tokens", count(int64_t(details.promptTokens)) + ", " +
                              count(int64_t(details.cachedTokens)) + " of them cached"}};
    return section;
}

// Knob changes with their measured effect, and notes, by time.
MachineSection changesOf(const SessionDetails& details) {
    MachineSection section{"Changes and notes", {}};
    for (const SessionDetails::Mark& mark : details.marks) {
        // The conditions of the effect wrap below it.
        const QString label = typographic(str(mark.label));
        const qsizetype basis = label.indexOf(", from ");
        section.facts.push_back({str(formatClock(mark.t)), label.left(basis),
                                 basis < 0 ? QString() : label.mid(basis + 2)});
    }
    return section;
}

MachineSection knobsOf(const SessionDetails& details) {
    MachineSection section{"Knobs at the start", {}};
    for (const SessionDetails::KnobLine& line : details.atStart) {
        const KnobRow* row = findKnob(line.name);
        QString value = str(line.effective);
        bool number = false;
        const int64_t n = value.toLongLong(&number);
        if (number) value = count(n);
        const bool unlimited = row && row->id == KnobId::LinkLimit && number && n == 0;
        if (unlimited)
            value = "none";
        else if (row && row->unit[0])
            value += " " + unitFor(row->unit, number ? n : 0);
        if (line.requested != line.effective)
            value += ", requested " + str(line.requested) +
                     (line.reason.empty() ? QString() : ": " + str(line.reason));
        section.facts.push_back({row ? str(knobTitle(*row)) : str(line.name), value});
    }
    return section;
}

// The data about model and machine in the file, in the order in which they are shown.
struct MetaRow {
    enum class Kind { Text, Count, Bytes, Rate, Seconds, UnixTime };
    const char* key;
    const char* label;
    Kind kind = Kind::Text;
};

QString metaText(const MetaRow& row, const QString& value) {
    bool number = false;
    const double v = value.toDouble(&number);
    if (!number) return value;
    switch (row.kind) {
        case MetaRow::Kind::Text:
            return value;
        case MetaRow::Kind::Count:
            return count(int64_t(v));
        case MetaRow::Kind::Bytes:
            return sizeText(v);
        case MetaRow::Kind::Rate:
            return str(formatRate(v));
        case MetaRow::Kind::Seconds:
            return str(formatClock(v));
        case MetaRow::Kind::UnixTime:
            return QDateTime::fromSecsSinceEpoch(qint64(v)).toString("yyyy-MM-dd HH:mm:ss");
    }
    return value;
}

MachineSection startOf(const SessionSummary& summary) {
    using Kind = MetaRow::Kind;
    static const std::vector<MetaRow> kRows = {
        {"family", "Family"},
        {"layers", "Layers"},
        {"experts", "Experts / layer"},
        {"top_k", "Experts per token"},
        {"expert_bytes", "Expert size", Kind::Bytes},
        {"bytes_per_token", "Weights per token", Kind::Bytes},
        {"context_length", "Context length", Kind::Count},
        {"isa", "Instruction set"},
        {"machine", "Machine"},
        {"read_path", "Reads"},
        {"disk_bytes_per_s", "Disk rate", Kind::Rate},
        {"memory_bytes_per_s", "Memory rate", Kind::Rate},
        {"kernel_bytes_per_s", "Kernel rate", Kind::Rate},
        {"rates_measured_at", "Rates measured", Kind::UnixTime},
        {"thinned_detail_before", "Layer steps and reads from", Kind::Seconds},
        {"thinned_tokens_before", "Tokens and series from", Kind::Seconds},
        {"model_dir", "Model folder"},
        {"model_fingerprint", "Model fingerprint"},
        {"version", "Program version"}};
    MachineSection section{"Model and machine", {}};
    // Shown elsewhere on the page, or part of another row.
    std::set<std::string> listed = {"model",   "started",      "ended",    "schema", "processor",
                                    "cores",   "memory_bytes", "requests", "tokens", "reads",
                                    "lookups", "hits",         "duration"};
    for (const MetaRow& row : kRows) {
        listed.insert(row.key);
        const auto it = summary.meta.find(row.key);
        if (it == summary.meta.end()) continue;
        section.facts.push_back({row.label, metaText(row, str(it->second))});
    }
    for (const auto& [key, value] : summary.meta)  // may be of a later version
        if (!listed.contains(key))
            section.facts.push_back({str(key).replace('_', ' '), str(value)});
    return section;
}

// Stored in UTC, shown in local time.
QString localTime(const QString& iso) {
    const QDateTime time = QDateTime::fromString(iso, Qt::ISODate);
    return time.isValid() ? time.toLocalTime().toString("yyyy-MM-dd HH:mm:ss") : iso;
}

}  // namespace

FactsPage::FactsPage(QWidget* parent) : QWidget(parent) {
    setFocusPolicy(Qt::ClickFocus);
    auto* page = new QVBoxLayout(this);
    page->setContentsMargins(0, 0, 0, 0);
    page->setSpacing(0);
    m_head = new PageHead;
    m_head->row()->setStretch(1, 1);  // the buttons are at the right
    page->addWidget(m_head);

    auto* scroll = new QScrollArea;
    scroll->setWidgetResizable(true);
    scroll->setFrameShape(QFrame::NoFrame);
    scroll->setHorizontalScrollBarPolicy(Qt::ScrollBarAlwaysOff);
    auto* content = new QWidget;
    m_row = new QHBoxLayout(content);
    m_row->setContentsMargins(0, 0, 0, 0);
    m_row->setSpacing(1);
    for (QVBoxLayout*& column : m_columns) {
        column = new QVBoxLayout;
        column->setSpacing(0);
        m_row->addLayout(column, 1);
    }
    scroll->setWidget(content);
    page->addWidget(scroll, 1);

    auto* foot = new QWidget;
    foot->setFixedHeight(64);
    auto* row = new QHBoxLayout(foot);
    row->setContentsMargins(16, 1, 16, 0);
    m_command = new CommandLine;
    row->addWidget(m_command);
    page->addWidget(foot);
    connect(m_head, &PageHead::back, this, &FactsPage::back);
}

void FactsPage::setHead(const QString& title, const QString& subtitle) {
    m_head->setTitle(title, subtitle);
}

void FactsPage::setCommand(const QString& command) {
    m_command->setCommand(command);
}

Button* FactsPage::addButton(const QString& text, Button::Kind kind) {
    auto* button = new Button(text, kind, Button::Size::Dense);
    m_head->row()->addWidget(button);
    return button;
}

void FactsPage::setSections(const QVector<MachineSection>& sections) {
    m_sections = sections;
    arrange();
}

// In a wide window the sections are in two columns, in order.
void FactsPage::arrange() {
    for (QVBoxLayout* column : m_columns) {
        while (QLayoutItem* item = column->takeAt(0)) {
            if (item->widget()) {
                item->widget()->hide();
                item->widget()->deleteLater();
            }
            delete item;
        }
    }
    m_wide = width() >= kTwoColumnsFrom && m_sections.size() > 2;
    qsizetype all = 0, before = 0;
    for (const MachineSection& section : m_sections) all += section.facts.size() + kHeadFacts;
    for (const MachineSection& section : m_sections) {
        const qsizetype lines = section.facts.size() + kHeadFacts;
        QVBoxLayout* column = m_columns[m_wide && 2 * before + lines >= all ? 1 : 0];
        before += lines;
        column->addWidget(new PanelHead(section.title, {}, column->count() > 0));
        QVector<Fact> facts;
        for (const MachineFact& fact : section.facts)
            facts.push_back(
                {fact.name, fact.value, fact.missing ? Tone::Text3 : Tone::Text1, fact.advice});
        auto* list = new FactList;
        list->setFacts(facts);
        column->addWidget(list);
    }
    m_row->setStretch(1, m_wide ? 1 : 0);
    for (QVBoxLayout* column : m_columns) column->addStretch(1);
}

void FactsPage::resizeEvent(QResizeEvent* event) {
    QWidget::resizeEvent(event);
    if ((width() >= kTwoColumnsFrom && m_sections.size() > 2) != m_wide) arrange();
}

void FactsPage::paintEvent(QPaintEvent*) {
    QPainter p(this);
    p.fillRect(rect(), tone(Tone::Bg1));
    p.fillRect(0, PageHead::kHeight - 1, width(), 1, tone(Tone::Line1));
    p.fillRect(0, height() - 64, width(), 1, tone(Tone::Line1));
    const QPoint second(m_columns[1]->geometry().x() - 1, 0);
    const int x = m_row->parentWidget()->mapTo(this, second).x();
    if (m_wide)
        p.fillRect(x, PageHead::kHeight, 1, height() - PageHead::kHeight - 64, tone(Tone::Line1));
}

void FactsPage::keyPressEvent(QKeyEvent* event) {
    if (event->key() == Qt::Key_Escape) return emit back();
    if (event->key() == Qt::Key_Return || event->key() == Qt::Key_Enter) {
        if (auto* button = qobject_cast<QAbstractButton*>(focusWidget())) return button->click();
    }
    QWidget::keyPressEvent(event);
}

// ---- DiagnosePage

DiagnosePage::DiagnosePage(QWidget* parent) : FactsPage(parent) {
    Button* copy = addButton("Copy as text");
    copy->setIconName("copy");
    Button* refresh = addButton("Refresh");
    m_measure = addButton("Measure");
    m_measure->setToolTip("Measures random disk reads and memory reads; takes about a second.");
    connect(copy, &QAbstractButton::clicked, this, [this] { copyText(m_text); });
    connect(refresh, &QAbstractButton::clicked, this, &DiagnosePage::refreshRequested);
    connect(m_measure, &QAbstractButton::clicked, this, &DiagnosePage::measureRequested);
    setCommand("colibri diagnose");
}

void DiagnosePage::showFacts(const MachineFacts& facts, const Calibration& rates,
                             const QString& dataDir) {
    setHead("This machine", facts.processor.isEmpty() ? QString("checking") : facts.processor);
    const auto sections = machineSections(facts, rates, dataDir);
    setSections(sections);
    m_text = machineText(sections);
}

void DiagnosePage::setMeasuring(const QString& stage) {
    m_measure->setText(stage.isEmpty() ? "Measure" : "Cancel measuring " + stage.toLower());
    m_measure->updateGeometry();
}

// ---- SessionPage

SessionPage::SessionPage(QWidget* parent) : FactsPage(parent) {
    m_openModel = addButton("Open its model");
    Button* copy = addButton("Copy path");
    copy->setIconName("copy");
    Button* reveal = addButton("Reveal in folder");
    reveal->setIconName("folder");
    connect(m_openModel, &QAbstractButton::clicked, this,
            [this] { emit openModelRequested(m_model); });
    connect(copy, &QAbstractButton::clicked, this, [this] { copyText(m_path); });
    connect(reveal, &QAbstractButton::clicked, this, [this] { revealInFolder(m_path); });
}

void SessionPage::showSession(const SessionSummary& summary, const SessionDetails& details) {
    m_path = str(summary.path.string());
    const auto meta = [&](const char* key) {
        const auto it = summary.meta.find(key);
        return it == summary.meta.end() ? QString() : str(it->second);
    };
    const auto known = [](const QString& text) { return text.isEmpty() ? QString("n/a") : text; };
    m_model = meta("model_dir");
    m_openModel->setVisible(!m_model.isEmpty());

    MachineSection session{"Session", {}};
    session.facts = {{"Model", known(meta("model"))},
                     {"Started", known(localTime(meta("started")))},
                     {"Length", str(formatClock(summary.lastTime))}};
    const QString ended = meta("ended");
    session.facts.push_back(
        summary.endedCleanly
            ? MachineFact{"Ended",
                          ended == "recovered" ? "unexpectedly; recovered" : localTime(ended)}
            : MachineFact{"Ended", "n/a: still recording, or ended unexpectedly", "", true});
    session.facts.push_back({"Size", sizeText(double(summary.bytes))});
    session.facts.push_back({"Path", m_path});

    MachineSection totals{"Recorded", {}};
    totals.facts = {{"Requests", count(summary.requests)},
                    {"Tokens", count(summary.tokens)},
                    {"Expert lookups", count(summary.lookups)},
                    {"Hits", count(summary.hits)}};
    totals.facts.push_back(
        summary.lookups > 0
            ? MachineFact{"Hit rate",
                          str(formatPercent(double(summary.hits) / double(summary.lookups)))}
            : MachineFact{"Hit rate", "n/a: no lookups", "", true});
    totals.facts.push_back({"Expert reads", count(summary.loads)});

    m_shown = {session, totals};
    for (const MachineSection& section :
         {requestsOf(details), changesOf(details), knobsOf(details), startOf(summary)})
        if (!section.facts.isEmpty()) m_shown << section;
    setHead(known(meta("model")) + ", session",
            QFileInfo(m_path).fileName() + ", " + sizeText(double(summary.bytes)));
    setSections(m_shown);
    setCommand("sqlite3 -header -column " + shellQuoted(m_path) +
               " \"SELECT count(*) AS steps, sum(lookups) AS lookups, sum(hits) AS hits, "
               "round(100.0 * sum(hits) / sum(lookups), 1) AS hit_rate FROM layer_steps\"");
    m_text = machineText(m_shown);
}

}  // namespace colibri::ui
