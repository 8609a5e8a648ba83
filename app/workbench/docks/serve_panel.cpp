// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/workbench/docks/serve_panel.h"

#include <QIntValidator>
#include <QRegularExpression>

#include "app/workbench/platform/settings.h"
#include "app/workbench/platform/text.h"
#include "app/workbench/widgets/controls.h"
#include "app/workbench/widgets/data_table.h"
#include "app/workbench/widgets/page_parts.h"
#include "app/workbench/widgets/slider_row.h"
#include "engine/base/format.h"

namespace colibri::ui {
namespace {

using State = ModelServer::State;

constexpr qsizetype kLogLines = 20;

QString latency(double ms) {
    return std::isfinite(ms) ? str(formatMs(ms)) : QString("n/a: no reply yet");
}

QLineEdit* field(const QString& text) {
    auto* edit = new QLineEdit(text);
    edit->setFont(type::mono());
    return edit;
}

// Words separated by commas or spaces.
QStringList wordsOf(const QString& text) {
    static const QRegularExpression between("[\\s,]+");
    return text.split(between, Qt::SkipEmptyParts);
}

// "3: 401 × 2, 404 × 1"
QString refusedText(const std::map<int, uint64_t>& refused) {
    uint64_t sum = 0;
    QStringList kinds;
    for (const auto& [status, n] : refused) {
        sum += n;
        kinds << QString("%1 × %2").arg(status).arg(count(n));
    }
    return sum ? count(sum) + ": " + kinds.join(", ") : QString("0");
}

}  // namespace

ServePanel::ServePanel(SessionSource* source, ModelServer* server, QWidget* parent)
    : DockPanel("send", "Serve", parent), m_source(source), m_server(server) {
    addServerFields(addSection("OpenAI-compatible server"));
    addUse();
    addTables();
    m_command = new CommandLine;
    foot()->addWidget(m_command);
    connect(m_switch, &Segment::chosen, this, [this](int index) { setOn(index == 1); });
    for (QLineEdit* edit : {m_host, m_port, m_key, m_origins, m_names})
        connect(edit, &QLineEdit::textEdited, this, &ServePanel::refresh);
    connect(server, &ModelServer::changed, this, &ServePanel::refresh);
    connect(source, &SessionSource::stateChanged, this, &ServePanel::refresh);
    refresh();
}

void ServePanel::addServerFields(DockSection* section) {
    m_switch = new Segment({"off", "on"});
    section->addRow("Server", m_switch, false)
        ->setToolTip(
            "Chats and completions of the loaded model over HTTP, whole or streamed. The engine "
            "takes them into its batches beside the chat.");
    m_host = field(settings().value("serve/host", "127.0.0.1").toString());
    m_port = field(settings().value("serve/port", "8080").toString());
    m_port->setValidator(new QIntValidator(0, 65535, m_port));
    m_port->setPlaceholderText("any free port");
    m_port->setToolTip("0 or an empty field chooses a free port.");
    section->addRow("Host", m_host, true);
    section->addRow("Port", m_port, true);
    addAccessFields(section);
    m_note = new Note;
    section->body()->addWidget(m_note);
    m_copyError = new LinkButton("Copy error", type::dense());
    section->body()->addWidget(m_copyError, 0, Qt::AlignLeft);
    connect(m_copyError, &QAbstractButton::clicked, this, [this] { copyText(note()); });
}

// The address and an example, to be copied.
void ServePanel::addUse() {
    m_use = addSection("For your program");
    auto* line = new QWidget;
    auto* row = new QHBoxLayout(line);
    row->setContentsMargins(0, 0, 0, 0);
    row->setSpacing(4);
    m_address = field("");
    m_address->setReadOnly(true);
    m_address->setAccessibleName("Address");
    row->addWidget(m_address, 1);
    auto* copy = new IconButton("copy", "Copy address", 28);
    row->addWidget(copy);
    connect(copy, &QAbstractButton::clicked, this, [this, copy] {
        copyAddress();
        showCopied(copy);
    });
    m_use->body()->addWidget(line);
    m_example = new CommandLine;
    m_use->body()->addWidget(m_example);
}

void ServePanel::addTables() {
    DockSection* now = addSection({});
    now->layout()->setContentsMargins(0, 1, 0, 0);
    m_figures = new DataTable({{"Since start", 0}, {"", 168, true, true}}, false);
    m_figures->setPadding(12, 12);
    now->body()->addWidget(m_figures);
    m_logSection = addSection({});
    m_logSection->layout()->setContentsMargins(0, 1, 0, 0);
    m_log = new DataTable({{"Ended", 54, false, true},
                           {"in, out", 0, true, true},
                           {"TTFT ms", 56, true, true},
                           {"tok/s", 56, true, true},
                           {"end", 70, true, false, Tone::Text2}},
                          false);
    m_log->setPadding(12, 12);
    m_log->setInnerPadding(4);
    m_log->setToolTip(
        "The latest finished requests: prompt and reply tokens, time to first token, speed, and "
        "how they ended. A number is the HTTP status of a rejected request.");
    m_logSection->body()->addWidget(m_log);
}

void ServePanel::addAccessFields(DockSection* section) {
    m_key = field("");
    m_key->setEchoMode(QLineEdit::PasswordEchoOnEdit);
    m_key->setPlaceholderText("none");
    m_key->setToolTip("Clients send it as a bearer token. It is not saved when the window closes.");
    m_origins = field(settings().value("serve/cors_origins").toString());
    m_origins->setAccessibleName("Origins of web pages");
    m_origins->setPlaceholderText("this machine");
    m_origins->setToolTip(
        "Also admits web pages of these origins, besides those of this machine:\n"
        "https://chat.example.org http://pc.lan:3000\n"
        "* admits every page and needs an API key.");
    m_names = field(settings().value("serve/allowed_hosts").toString());
    m_names->setAccessibleName("Names of this host");
    m_names->setPlaceholderText("localhost");
    m_names->setToolTip(
        "Without an API key: host names, besides localhost, by which clients may address the "
        "server.\n"
        "Behind a proxy: the proxy's name.");
    section->addRow("API key", m_key, true);
    section->addRow("Origins", m_origins, true);
    section->addRow("Names", m_names, true);
}

ServeOptions ServePanel::options() const {
    return {m_host->text().trimmed(), m_port->text().toInt(), m_key->text(),
            wordsOf(m_origins->text()), wordsOf(m_names->text())};
}

void ServePanel::setOn(bool on) {
    if (!on) return m_server->stop();
    if (m_server->state() != State::Off) return;
    settings().setValue("serve/host", m_host->text().trimmed());
    settings().setValue("serve/port", m_port->text());
    settings().setValue("serve/cors_origins", m_origins->text().trimmed());
    settings().setValue("serve/allowed_hosts", m_names->text().trimmed());
    m_server->start(options());
    refresh();
}

QString ServePanel::note() const {
    return m_note->text();
}
QString ServePanel::example() const {
    return m_example->command();
}
void ServePanel::copyAddress() const {
    copyText(m_server->address());
}

QString ServePanel::commandLine() const {
    const ServeOptions o = options();
    QString command = "colibri serve " +
                      shellQuoted(m_source->model() ? m_source->model()->folder : QString("DIR"));
    if (o.host != ServeOptions().host) command += " --host " + shellQuoted(o.host);
    if (o.port != ServeOptions().port) command += " --port " + QString::number(o.port);
    for (const QString& origin : o.corsOrigins) command += " --cors-origin " + shellQuoted(origin);
    for (const QString& name : o.allowedHosts) command += " --allowed-host " + shellQuoted(name);
    return command;
}

void ServePanel::refreshNote() {
    const State state = m_server->state();
    const bool off = state == State::Off, on = state == State::On;
    const bool possible = m_source->engine() != nullptr;
    // Errors in the fields are shown before the server is started with them.
    const Status fields = options().check();
    const Status& error = fields.ok() ? m_server->error() : fields;
    m_copyError->setVisible(off && !error.ok());
    if (off && !error.ok())
        m_note->setNote(str(error.text()), "error", Tone::Error, Tone::Text1);
    else if (off && !possible)
        m_note->setNote("Open a model first: the server serves the loaded model.");
    else if (off)
        m_note->setNote("A host that other machines can reach needs an API key.");
    else if (!on)
        m_note->setNote(state == State::Starting ? "Starting" : "Stopping; notifying clients");
    else if (m_server->local())
        m_note->setNote("Programs on this machine can reach it. The chat continues to work.");
    else
        m_note->setNote("Other machines can reach it; each request needs the key.", "warn",
                        Tone::Warn, Tone::Text2);
}

void ServePanel::refresh() {
    const State state = m_server->state();
    const bool off = state == State::Off, on = state == State::On;
    m_switch->setCurrent(state == State::On || state == State::Starting ? 1 : 0);
    m_switch->setEnabled(on || (off && m_source->engine() != nullptr));
    for (QLineEdit* edit : {m_host, m_port, m_key, m_origins, m_names}) edit->setEnabled(off);
    refreshNote();
    setTag(on     ? okTag("port " + QString::number(m_server->port()))
           : !off ? TagLook{state == State::Starting ? "starting" : "stopping", ""}
                  : TagLook{});

    m_use->setVisible(on);
    m_address->setText(m_server->address());
    m_address->setCursorPosition(0);
    const bool chat = m_source->model() && m_source->model()->chatProblem.isEmpty();
    const QString key =
        m_key->text().isEmpty() ? QString() : " -H \"Authorization: Bearer $COLIBRI_API_KEY\"";
    m_example->setCommand(
        "curl -N " + m_server->address() + (chat ? "/chat/completions" : "/completions") +
        " -H \"Content-Type: application/json\"" + key +
        (chat
             ? R"( -d '{"messages":[{"role":"user","content":"What is an expert?"}],"stream":true}')"
             : R"( -d '{"prompt":"Once upon a time","stream":true}')"));
    m_example->setToolTip(m_example->command());

    const QString command = commandLine();
    m_command->setCommand(command);
    m_command->setToolTip(command);
    tick();
}

void ServePanel::tick() {
    const ServeFigures f = m_server->figures();
    m_figures->setColumnTitle(0, m_server->state() == State::Off ? "Last run" : "Since start");
    const auto row = [](const QString& name, const QString& value, Tone ink = Tone::Count) {
        return QVector<TableCell>{{name}, {value, Tone::Count, ink}};
    };
    m_figures->setRows(
        {row("In flight", count(f.inFlight)), row("Connections", count(uint64_t(f.connections))),
         row("Answered", count(f.answered)),
         row("Refused", refusedText(f.refused), f.refused.empty() ? Tone::Count : Tone::Warn),
         row("Cancelled", count(f.cancelled)), row("Prompt tokens", count(f.promptTokens)),
         row("Prompt reused", count(f.cachedTokens)), row("Generated tokens", count(f.tokens)),
         row("TTFT P50", latency(f.ttftP50Ms)), row("ITL P50", latency(f.itlP50Ms))});
    QVector<QVector<TableCell>> lines;
    for (const ServeFigures::Request& r : f.recent) {
        if (lines.size() == kLogLines) break;
        const QString time = r.ended.toString("HH:mm");
        if (r.status >= 400) {
            lines << QVector<TableCell>{
                {time}, {}, {}, {}, {QString::number(r.status), Tone::Count, Tone::Warn}};
            continue;
        }
        const auto known = [](double v, const QString& text) {
            return std::isfinite(v) ? text : QString();
        };
        lines << QVector<TableCell>{{time},
                                    {count(r.promptTokens) + ", " + count(r.generated)},
                                    {known(r.ttftMs, str(formatSig(r.ttftMs)))},
                                    {known(r.tokS, str(formatSig(r.tokS)))},
                                    {r.stop}};
    }
    m_logSection->setVisible(!lines.isEmpty());
    m_log->setRows(lines);
}

}  // namespace colibri::ui
