// SPDX-License-Identifier: GPL-3.0-or-later
// A load test of the loaded model in this process: runs profiler/loadtest in a job, records its
// start and end as markers, and provides figures meanwhile. Loading another model stops it. GUI
// thread only; every function returns at once.
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
    QString prompts;  // file with prompts; "": the built-in set
    int maxTokens = 128;
    bool ignoreEos = false;  // replies always have the full length

    QString words() const;  // "4 users, 32 requests"
};

// Figures of finished requests, and of tokens so far.
struct LoadNow {
    int64_t sent = 0, completed = 0, failed = 0;
    uint64_t tokens = 0;
    double seconds = 0;  // since the start

    int64_t inFlight() const { return sent - completed - failed; }
};

class LoadTest : public QObject {
    Q_OBJECT

public:
    // `source` must outlive this.
    explicit LoadTest(SessionSource* source, QObject* parent = nullptr);
    ~LoadTest() override;  // stops the load test and waits for it

    // Starts. changed() follows at the end, with a report or an error about the options or the file
    // of prompts. REQUIRES: not running, and a source with an engine.
    void start(const LoadPlan& plan);
    void stop();  // running requests end within one token; the report includes them
    bool running() const { return m_job != nullptr; }
    bool stopping() const { return m_job && m_job->cancelling(); }
    LoadNow now() const;           // of the running load test, or the last one
    JobProgress progress() const;  // in requests, or in seconds of the duration
    bool allSent() const;          // all requests were sent; some replies still run

    const LoadPlan& plan() const { return m_plan; }
    const std::optional<LoadReport>& report() const { return m_report; }
    const QString& model() const { return m_modelName; }  // name of the model of the report
    bool stopped() const { return m_stopped; }            // the load test of the report was stopped
    const Status& error() const { return m_error; }
    // Writes CSV with a line per request if the name ends in ".csv", else JSON as `colibri load
    // --json` does, with model, knobs and version. REQUIRES: report().
    Status save(const QString& path) const { return saver()(path); }
    // A function that does the same later, when the report is gone. REQUIRES: report().
    std::function<Status(const QString& path)> saver() const;

signals:
    void changed();  // after a start, a stop request, and the end
    // Another model was loaded, so the report will be removed. report() still returns it.
    void leaving();

private:
    struct Counts;

    void forgetFormer();
    void ended(const Status& status, const std::shared_ptr<std::optional<LoadReport>>& report);

    SessionSource* m_source;
    LoadPlan m_plan;
    QString m_model, m_modelName;    // folder and name of the model of the report
    nlohmann::ordered_json m_setup;  // knobs and version at the start, for the export
    QElapsedTimer m_clock;
    double m_seconds = 0;  // duration of the last load test
    std::shared_ptr<Counts> m_counts;
    std::weak_ptr<Engine> m_engine;
    std::optional<LoadReport> m_report;
    bool m_stopped = false;
    Status m_error;
    QPointer<Job> m_job;
};

}  // namespace colibri::ui
