// SPDX-License-Identifier: GPL-3.0-or-later
// The loaded model behind the HTTP server of app/serve, so that a user's own program drives the
// engine while the window shows what it does. GUI thread only; every function returns at once,
// starting and stopping run on a job's thread. Another model, or none, stops it.
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
    int port = 8080;           // 0: any that is free
    QString apiKey;            // needed where other machines reach the host
    QStringList corsOrigins;   // web pages that may use it beside those of this machine
    QStringList allowedHosts;  // names by which clients may address it beside localhost

    // Whether keys, origins and names are sound. Errors: InvalidArgument, as of the server.
    Status check() const;
};

// What the server has done since it was started.
struct ServeFigures {
    uint64_t inFlight = 0;  // requests that the engine has and that have not ended
    int connections = 0;
    uint64_t answered = 0;                        // responses of HTTP status 2xx
    std::map<int, uint64_t> refused;              // the others, by status
    uint64_t cancelled = 0;                       // the client went away, or the server ended
    uint64_t promptTokens = 0, cachedTokens = 0;  // the second: found in the KV cache
    uint64_t tokens = 0;
    double ttftP50Ms = NAN, itlP50Ms = NAN;
    struct Request {  // one that has ended
        QDateTime ended;
        int status = 200;  // of HTTP; from 400 on it was refused
        uint32_t promptTokens = 0, generated = 0;
        double ttftMs = NAN, tokS = NAN;
        QString stop;  // "eos", "length", ...
    };
    std::vector<Request> recent;  // the newest first, a few dozen at most
};

class ModelServer : public QObject {
    Q_OBJECT

public:
    enum class State { Off, Starting, On, Stopping };

    // `source` must outlive this.
    explicit ModelServer(SessionSource* source, QObject* parent = nullptr);
    ~ModelServer() override;  // stops and waits for that

    // REQUIRES: Off, and a source with an engine. Ends in changed() with On, or Off and error().
    void start(const ServeOptions& options);
    void stop();  // tells the clients; Off well within a second
    State state() const { return m_state; }
    bool local() const;  // what it listens on is reached from this machine only
    const Status& error() const { return m_error; }  // why it is off, when nobody stopped it
    QString address() const { return m_address; }    // "http://127.0.0.1:8080/v1"; "" unless On
    int port() const { return m_port; }
    ServeFigures figures() const;  // the last ones when it is off
    void watch();                  // notices a server that ended by itself; now and then

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
    bool m_forget = false;               // another model came while it was stopping
    std::shared_ptr<Running> m_running;  // On
    std::weak_ptr<Engine> m_engine;      // the one that is served, or about to be
    QPointer<Job> m_job;                 // Starting, Stopping
};

}  // namespace colibri::ui
