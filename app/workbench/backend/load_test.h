// SPDX-License-Identifier: GPL-3.0-or-later
// A load test of the loaded engine, in this process: profiler/loadtest on a job's thread, its begin
// and end as markers on the plots, what it does meanwhile in numbers. GUI thread only; every
// function returns at once. Another model, or none, stops it.
#pragma once

#include <QElapsedTimer>
#include <QPointer>
#include <QString>
#include <optional>

#include "app/workbench/backend/session_source.h"
#include "app/workbench/platform/job.h"
#include "profiler/loadtest/load_run.h"

namespace colibri::ui {

struct LoadPlan {
    LoadOptions load;
    QString prompts;  // file of prompts; "" = the set that comes with the program
    int maxTokens = 128;
    bool ignoreEos = false;  // replies go on to the last token

    QString words() const;  // "4 users, 32 requests"
};

// Counted as the requests end, and the tokens as they come.
struct LoadNow {
    int64_t asked = 0, completed = 0, failed = 0;
    uint64_t tokens = 0;
    double seconds = 0;  // since the begin

    int64_t inFlight() const { return asked - completed - failed; }
};

class LoadTest : public QObject {
    Q_OBJECT

public:
    // `source` must outlive this.
    explicit LoadTest(SessionSource* source, QObject* parent = nullptr);
    ~LoadTest() override;  // stops and waits for that

    // REQUIRES: not running, and a source with an engine. Ends in changed(), with a report or an
    // error: the options, the file of prompts.
    void start(const LoadPlan& plan);
    void stop();  // what is under way ends within a token; the report counts it
    bool running() const { return m_job != nullptr; }
    bool stopping() const { return m_job && m_job->cancelling(); }
    LoadNow now() const;           // of the load that runs, or ran last
    JobProgress progress() const;  // requests of all, or seconds of the duration
    bool allAsked() const;         // no request will come any more; replies still run

    const LoadPlan& plan() const { return m_plan; }
    const std::optional<LoadReport>& report() const { return m_report; }
    const QString& model() const { return m_modelName; }  // the report's
    bool stopped() const { return m_stopped; }  // the report is of a load that was stopped
    const Status& error() const { return m_error; }
    // JSON as `colibri load --json` with what repeats it (model, knobs, version), or CSV with a
    // line per request where the name ends so. REQUIRES: report().
    Status save(const QString& path) const { return saver()(path); }
    // The same for later, when the report is gone. REQUIRES: report().
    std::function<Status(const QString& path)> saver() const;

signals:
    void changed();  // began, is being stopped, ended
    // Another model was loaded: what is reported is not of it, and goes. report() is still there.
    void leaving();

private:
    struct Counts;

    void forgetFormer();
    void ended(const Status& status, const std::shared_ptr<std::optional<LoadReport>>& report);

    SessionSource* m_source;
    LoadPlan m_plan;
    QString m_model, m_modelName;    // folder and name of the model the report is of
    nlohmann::ordered_json m_setup;  // the rest of what repeats it, as it was at the start
    QElapsedTimer m_clock;
    double m_seconds = 0;  // of the load that ran last
    std::shared_ptr<Counts> m_counts;
    std::weak_ptr<Engine> m_engine;
    std::optional<LoadReport> m_report;
    bool m_stopped = false;
    Status m_error;
    QPointer<Job> m_job;
};

}  // namespace colibri::ui
