// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/workbench/backend/load_test.h"

#include <QCoreApplication>
#include <QDateTime>

#include "app/workbench/platform/save_file.h"
#include "app/workbench/platform/text.h"
#include "engine/base/file.h"
#include "engine/base/format.h"
#include "engine/base/machine.h"
#include "profiler/loadtest/engine_target.h"

namespace colibri::ui {

// Written by the threads of the load test.
struct LoadTest::Counts {
    std::atomic<int64_t> sent{0}, completed{0}, failed{0};
    std::atomic<uint64_t> tokens{0};
};

namespace {

QString shownNumber(double v) {
    return QString::number(v, 'g', 6);
}

// Counts requests and tokens on their way to the engine.
template <class Counts>
class CountedTarget final : public LoadTarget {
public:
    CountedTarget(LoadTarget& target, Counts& counts) : m_target(target), m_counts(counts) {}

    LoadReply send(const LoadPrompt& prompt, const CancelFlag& cancel) override {
        m_counts.sent.fetch_add(1, std::memory_order_relaxed);
        LoadReply reply = m_target.send(prompt, cancel);
        auto& ends = reply.error.empty() ? m_counts.completed : m_counts.failed;
        ends.fetch_add(1, std::memory_order_relaxed);
        return reply;
    }

private:
    LoadTarget& m_target;
    Counts& m_counts;
};

// The conditions that are needed to repeat a load test, beside the options.
nlohmann::ordered_json setupOf(const SessionSource& source, const LoadPlan& plan) {
    const ModelFacts& model = *source.model();
    nlohmann::ordered_json knobs;
    for (const KnobRow& row : knobTable()) {
        const int64_t value = source.knobState(row.id).effective;
        if (row.choices.empty())
            knobs[row.name] = value;
        else
            knobs[row.name] = knobValueText(row, value);
    }
    return {
        {"version", QCoreApplication::applicationVersion().toStdString()},
        {"model", model.name.toStdString()},
        {"weights", model.weights.toStdString()},
        {"context_length", model.contextLength},
        {"machine", machineFingerprint()},
        {"prompts", plan.prompts.isEmpty() ? std::string("shipped") : plan.prompts.toStdString()},
        {"max_tokens", plan.maxTokens},
        {"ignore_eos", plan.ignoreEos},
        {"started", QDateTime::currentDateTimeUtc().toString(Qt::ISODate).toStdString()},
        {"knobs", knobs}};
}

Result<std::vector<LoadPrompt>> promptsOf(const QString& file) {
    if (file.isEmpty()) return shippedLoadPrompts();
    Result<std::string> text = readTextFile(file.toStdString());
    if (!text) return text.status();
    return parseLoadPrompts(*text, file.toStdString());
}

}  // namespace

QString LoadPlan::words() const {
    const auto some = [](int64_t n, const char* what) {
        return count(n) + " " + what + (n == 1 ? "" : "s");
    };
    QStringList parts;
    parts << (load.rate > 0 ? shownNumber(load.rate) + " requests / s" : some(load.users, "user"));
    if (load.requests > 0) parts << some(load.requests, "request");
    if (load.durationS > 0) parts << shownNumber(load.durationS) + " s";
    return parts.join(", ");
}

LoadTest::LoadTest(SessionSource* source, QObject* parent) : QObject(parent), m_source(source) {
    connect(source, &SessionSource::stateChanged, this, [this] {
        if (m_job && m_source->engine() != m_engine.lock()) stop();
        forgetFormer();
    });
}

// Figures of another model are not comparable.
void LoadTest::forgetFormer() {
    const auto engine = m_source->engine();
    if (m_job || !m_counts || !engine || engine == m_engine.lock()) return;
    if (m_report) emit leaving();
    m_report.reset();
    m_error = {};
    m_counts.reset();
    emit changed();
}

LoadTest::~LoadTest() {
    delete m_job;
}

void LoadTest::start(const LoadPlan& plan) {
    std::shared_ptr<Engine> engine = m_source->engine();
    if (m_job || !engine) return;
    m_plan = plan;
    m_model = m_source->model()->folder;
    m_modelName = m_source->model()->name;
    m_setup = setupOf(*m_source, plan);
    m_engine = engine;
    m_report.reset();
    m_stopped = false;
    m_error = {};
    m_seconds = 0;
    m_counts = std::make_shared<Counts>();
    const auto report = std::make_shared<std::optional<LoadReport>>();
    m_job = new Job(
        [plan, report, counts = m_counts, engine = std::move(engine)](
            const ProgressFn& progress, const CancelFlag* cancel) mutable -> Status {
            // The engine may be destroyed here, on the thread of the job, if the model was closed
            // meanwhile.
            const std::shared_ptr<Engine> own = std::move(engine);
            auto prompts = promptsOf(plan.prompts);
            if (!prompts) return prompts.status();
            Request model;
            model.maxTokens = plan.maxTokens;
            model.ignoreEos = plan.ignoreEos;
            EngineTarget target(*own, model, [counts] { counts->tokens.fetch_add(1); });
            CountedTarget counted(target, *counts);
            auto result = runLoad(counted, *prompts, plan.load, progress, *cancel);
            if (!result) return result.status();
            *report = std::move(*result);
            return Status();
        },
        this);
    connect(m_job, &Job::finished, this,
            [this, report](const Status& status) { ended(status, report); });
    m_clock.start();
    m_source->note("Load: " + plan.words());
    m_job->start();
    emit changed();
}

void LoadTest::stop() {
    if (!m_job || m_job->cancelling()) return;
    m_job->cancel();
    emit changed();
}

void LoadTest::ended(const Status& status,
                     const std::shared_ptr<std::optional<LoadReport>>& report) {
    m_seconds = double(m_clock.nsecsElapsed()) / 1e9;
    m_stopped = m_job->cancelling();
    m_job = nullptr;
    m_report = std::move(*report);
    m_error = status;
    if (m_source->engine() && m_source->engine() == m_engine.lock()) {
        m_source->note(!m_report   ? QString("Load test failed")
                       : m_stopped ? QString("Load test stopped")
                                   : QString("Load test finished"));
    }
    emit changed();
    forgetFormer();
}

LoadNow LoadTest::now() const {
    LoadNow now;
    if (!m_counts) return now;
    // In this order, so that no more requests have ended than were sent.
    now.completed = m_counts->completed.load();
    now.failed = m_counts->failed.load();
    now.tokens = m_counts->tokens.load();
    now.sent = m_counts->sent.load();
    now.seconds = m_job ? double(m_clock.nsecsElapsed()) / 1e9 : m_seconds;
    return now;
}

bool LoadTest::allSent() const {
    const LoadNow counted = now();
    if (!m_job || counted.inFlight() == 0) return false;
    const LoadOptions& load = m_plan.load;
    return (load.requests > 0 && counted.sent >= load.requests) ||
           (load.durationS > 0 && counted.seconds >= load.durationS);
}

JobProgress LoadTest::progress() const {
    JobProgress shown;
    if (!m_job) return shown;
    shown = m_job->progress();
    const LoadNow counted = now();
    const QString waiting = "waiting for " + count(counted.inFlight()) +
                            (counted.inFlight() == 1 ? " reply" : " replies");
    shown.stage = allSent() ? waiting : m_plan.words();
    shown.unit = "requests";
    shown.total = uint64_t(m_plan.load.requests);
    // Averaged over the whole run, since requests end in groups and a short window would jump.
    shown.secondsLeft = shown.done > 0 && shown.total >= shown.done
                            ? now().seconds / double(shown.done) * double(shown.total - shown.done)
                            : NAN;
    if (m_plan.load.requests == 0) {
        shown.unit = "s";
        shown.total = uint64_t(std::ceil(m_plan.load.durationS));
        shown.done = std::min(shown.total, uint64_t(now().seconds));
        shown.secondsLeft = allSent() ? NAN : double(shown.total - shown.done);
    }
    return shown;
}

std::function<Status(const QString& path)> LoadTest::saver() const {
    return [report = *m_report, model = m_model, load = m_plan.load,
            setup = m_setup](const QString& path) {
        if (path.endsWith(".csv", Qt::CaseInsensitive))
            return saveFile(path, QByteArray::fromStdString(loadCsv(report)));
        nlohmann::ordered_json json = {{"target", model.toStdString()}};
        if (load.rate > 0) {
            json["rate"] = load.rate;
            json["seed"] = load.seed;
        } else {
            json["users"] = load.users;
        }
        json.update(loadJson(report));
        for (const auto& [key, value] : setup.items())
            if (!json.contains(key)) json[key] = value;
        return saveFile(path, QByteArray::fromStdString(json.dump(2)) + "\n");
    };
}

}  // namespace colibri::ui
