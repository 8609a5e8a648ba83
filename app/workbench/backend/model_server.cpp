// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/workbench/backend/model_server.h"

#include <utility>

#include "app/serve/api_server.h"
#include "app/workbench/platform/text.h"

namespace colibri::ui {

namespace {

ServeFigures figuresOf(const serve::ApiServer& server) {
    const serve::ApiStats stats = server.stats();
    ServeFigures f;
    f.inFlight = stats.inFlight();
    f.connections = server.connections();
    for (const auto& [status, count] : stats.responses) {
        if (status / 100 == 2)
            f.answered += count;
        else
            f.refused[status] += count;
    }
    f.cancelled = stats.cancelled;
    f.promptTokens = stats.promptTokens;
    f.cachedTokens = stats.cachedTokens;
    f.tokens = stats.generatedTokens;
    f.ttftP50Ms = stats.ttft.quantile(0.5) * 1e-6;
    f.itlP50Ms = stats.itl.quantile(0.5) * 1e-6;
    for (auto it = stats.recent.rbegin(); it != stats.recent.rend(); ++it) {
        using namespace std::chrono;
        const auto ms = duration_cast<milliseconds>(it->ended.time_since_epoch()).count();
        f.recent.push_back({QDateTime::fromMSecsSinceEpoch(ms), it->status, it->promptTokens,
                            it->generated, it->ttftMs, it->tokS,
                            QString(stopReasonName(it->stop))});
    }
    return f;
}

serve::AccessOptions accessOf(const ServeOptions& options) {
    serve::AccessOptions access;
    access.apiKey = options.apiKey.toStdString();
    for (const QString& origin : options.corsOrigins)
        access.corsOrigins.push_back(origin.toStdString());
    for (const QString& host : options.allowedHosts)
        access.allowedHosts.push_back(host.toStdString());
    return access;
}

}  // namespace

Status ServeOptions::check() const {
    return serve::Access::check(accessOf(*this));
}

// The engine is destroyed last, on the thread that releases this object.
struct ModelServer::Running {
    std::shared_ptr<Engine> engine;
    std::unique_ptr<serve::ApiServer> server;
};

ModelServer::ModelServer(SessionSource* source, QObject* parent)
    : QObject(parent), m_source(source) {
    connect(source, &SessionSource::stateChanged, this, &ModelServer::sourceChanged);
}

ModelServer::~ModelServer() {
    delete m_job;
}

void ModelServer::setState(State state) {
    m_state = state;
    emit changed();
}

void ModelServer::start(const ServeOptions& options) {
    if (m_state != State::Off) return;
    auto running = std::make_shared<Running>();
    running->engine = m_source->engine();
    if (!running->engine) return;
    m_engine = running->engine;
    m_options = options;
    m_error = {};
    m_last = {};
    m_stopWanted = false;
    serve::ApiOptions api;
    static_cast<serve::AccessOptions&>(api) = accessOf(options);
    api.host = options.host.toStdString();
    api.port = options.port;
    // In a job, since resolving a host name can block.
    m_job = new Job(
        [running, api](const ProgressFn&, const CancelFlag*) {
            running->server = std::make_unique<serve::ApiServer>(*running->engine, api);
            Status status = running->server->start();
            if (!status.ok()) {
                running->server.reset();
                running->engine.reset();
            }
            return status;
        },
        this);
    connect(m_job, &Job::finished, this,
            [this, running](const Status& status) { started(status, running); });
    m_job->start();
    setState(State::Starting);
}

void ModelServer::started(const Status& status, std::shared_ptr<Running> running) {
    m_job = nullptr;
    if (!status.ok()) {
        m_error = status;
        return setState(State::Off);
    }
    m_running = std::move(running);
    m_port = m_running->server->port();
    m_address = str(m_running->server->url()) + "/v1";
    setState(State::On);
    if (m_stopWanted) stop();
}

void ModelServer::stop() {
    if (m_state == State::Starting) m_stopWanted = true;
    if (m_state != State::On) return;
    const auto last = std::make_shared<ServeFigures>();
    m_job = new Job(
        [running = m_running, last](const ProgressFn&, const CancelFlag*) {
            running->server->stop();
            *last = figuresOf(*running->server);
            // Here, not on the GUI thread: releasing the last reference to a closed model destroys
            // it.
            running->server.reset();
            running->engine.reset();
            return Status();
        },
        this);
    connect(m_job, &Job::finished, this, [this, last] {
        m_job = nullptr;
        m_last = std::exchange(m_forget, false) ? ServeFigures() : *last;
        setState(State::Off);
    });
    m_last = figures();
    m_running = nullptr;
    m_address.clear();
    m_job->start();
    setState(State::Stopping);
}

void ModelServer::sourceChanged() {
    const bool on = m_state == State::Starting || m_state == State::On;
    const auto engine = m_source->engine();
    if (on && engine != m_engine.lock()) stop();
    // Figures of the former model do not apply to this one.
    if (!engine || engine == m_engine.lock()) return;
    if (m_state == State::Off) {
        m_last = {};
        emit changed();
    }
    m_forget = m_state == State::Stopping;
}

bool ModelServer::local() const {
    return serve::isLoopback(m_options.host.toStdString());
}

ServeFigures ModelServer::figures() const {
    return m_running ? figuresOf(*m_running->server) : m_last;
}

void ModelServer::watch() {
    if (m_state != State::On || m_running->server->running()) return;
    m_error = Status(Code::IoError, "The server stopped listening unexpectedly", "Start it again");
    stop();
}

}  // namespace colibri::ui
