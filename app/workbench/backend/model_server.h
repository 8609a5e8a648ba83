// SPDX-License-Identifier: GPL-3.0-or-later
// Runs the HTTP server of app/serve for the loaded model, so that other programs can use the engine
// while the window shows its figures. Loading another model stops it. Starting and stopping run in
// a job. GUI thread only; every function returns at once.
#pragma once

#include <QDateTime>
#include <QPointer>
#include <QString>
#include <QStringList>
#include <map>
#include <vector>

#include "app/workbench/backend/session_source.h"
#include "app/workbench/platform/job.h"

namespace colibri::ui {

struct ServeOptions {
    QString host = "127.0.0.1";
    int port = 8080;           // 0: any free port
    QString apiKey;            // required if other machines can reach the host
    QStringList corsOrigins;   // web pages that may use it, besides those of this machine
    QStringList allowedHosts;  // host names that clients may use, besides localhost

    // Checks key, origins and names. Errors: InvalidArgument, as the server reports it.
    Status check() const;
};

// Figures since the start of the server.
struct ServeFigures {
    uint64_t inFlight = 0;  // requests in the engine that have not ended
    int connections = 0;
    uint64_t answered = 0;            // responses of HTTP status 2xx
    std::map<int, uint64_t> refused;  // other responses, by HTTP status
    uint64_t cancelled = 0;           // the client closed the connection, or the server stopped
    uint64_t promptTokens = 0, cachedTokens = 0;  // cachedTokens: found in the KV cache
    uint64_t tokens = 0;
    double ttftP50Ms = NAN, itlP50Ms = NAN;
    struct Request {  // finished
        QDateTime ended;
        int status = 200;  // HTTP status; from 400 on it was refused
        uint32_t promptTokens = 0, generated = 0;
        double ttftMs = NAN, tokS = NAN;
        QString stop;  // "eos", "length", ...
    };
    std::vector<Request> recent;  // newest first, a few dozen at most
};

class ModelServer : public QObject {
    Q_OBJECT

public:
    enum class State { Off, Starting, On, Stopping };

    // `source` must outlive this.
    explicit ModelServer(SessionSource* source, QObject* parent = nullptr);
    ~ModelServer() override;  // stops the server and waits for it

    // Starts. changed() follows with On, or Off and error(). REQUIRES: Off, and a source with an
    // engine.
    void start(const ServeOptions& options);
    void stop();  // notifies the clients; Off follows within a second
    State state() const { return m_state; }
    bool local() const;                              // only this machine can reach it
    const Status& error() const { return m_error; }  // why it is off, unless it was stopped
    QString address() const { return m_address; }    // "http://127.0.0.1:8080/v1"; "" unless On
    int port() const { return m_port; }
    ServeFigures figures() const;  // those of the last run if it is off
    void watch();  // detects a server that ended by itself; call it a few times a second

signals:
    void changed();

private:
    struct Running;

    void setState(State state);
    void started(const Status& status, std::shared_ptr<Running> running);
    void sourceChanged();

    SessionSource* m_source;
    State m_state = State::Off;
    bool m_stopWanted = false;  // while Starting
    ServeOptions m_options;
    Status m_error;
    QString m_address;
    int m_port = 0;
    ServeFigures m_last;
    bool m_forget = false;               // another model was loaded while it was stopping
    std::shared_ptr<Running> m_running;  // On
    std::weak_ptr<Engine> m_engine;      // the engine that is served, or will be
    QPointer<Job> m_job;                 // Starting, Stopping
};

}  // namespace colibri::ui
