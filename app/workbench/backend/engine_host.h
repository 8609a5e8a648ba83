// SPDX-License-Identifier: GPL-3.0-or-later
// Owns the loaded model: an Engine, its Recorder, and the job that loads it. All functions are for
// the GUI thread and return at once; waiting happens on the worker of the host (short tasks, in
// order) and in jobs (one thread each). Results of the engine's threads reach the GUI through a
// ChatRun or a snapshot, which the window's timer takes.
#pragma once

#include <QString>
#include <filesystem>
#include <memory>
#include <optional>

#include "app/workbench/backend/measurements.h"
#include "app/workbench/backend/recent_list.h"
#include "app/workbench/backend/session_folder.h"
#include "app/workbench/backend/session_source.h"
#include "app/workbench/platform/gui_queue.h"
#include "app/workbench/platform/job.h"
#include "app/workbench/platform/worker.h"

namespace colibri::ui {

// Data on disk that outlives a run of the program.
struct KeptData {
    SessionFolder sessions;
    RecentList recent;
    Measurements measurements;

    explicit KeptData(const QString& dir)
        : sessions(dir + "/sessions"),
          recent(dir + "/recent.json"),
          measurements(dir + "/measurements.json") {}
};

class EngineHost final : public SessionSource {
    Q_OBJECT

public:
    // `dataDir`: the folder of the KeptData; "" = that of the user.
    explicit EngineHost(const QString& dataDir = {}, QObject* parent = nullptr);
    ~EngineHost() override;  // closes the model and ends its session

    // ---- loading
    // Closes the loaded model, then loads another one; replaces a running load. stateChanged()
    // follows with Ready or NoModel; after an error also loadFailed().
    void load(const std::filesystem::path& model, const KnobValues& knobs);
    // The session file of the next load; "" = a new one in the sessions folder.
    void setSessionFile(const QString& path);
    void cancelLoad();  // NoModel follows within a second
    void close();
    const Job* loadJob() const { return m_load; }  // nullptr: no load is running
    KnobValues requestedKnobs() const { return m_knobs; }

    // ---- SessionSource
    State state() const override { return m_state; }
    const ModelFacts* model() const override;
    std::shared_ptr<const Snapshot> snapshot() const override;
    double sessionTime(uint64_t monotonicNs) const override;
    int activeRequests() const override;
    MemoryNow memory() const override;
    KnobLimits knobLimits(KnobId id) const override;
    KnobState knobState(KnobId id) const override;
    void setKnob(KnobId id, int64_t value, bool final = true) override;
    std::string knobProblem(KnobId id, int64_t value) const override;
    Calibration calibration() const override;
    Histogram pooled(Pooled what, double t0, double t1) const override;
    void note(const QString& text) override;
    std::shared_ptr<Engine> engine() const override;
    std::shared_ptr<ChatRun> startChat(ChatRequest request) override;
    void cancelChat(const std::shared_ptr<ChatRun>& run) override;
    int countTokens(const QString& text) const override;
    Result<std::string> renderChat(const nlohmann::ordered_json& messages,
                                   const ChatOptions& options) const override;

    KeptData& kept() { return m_kept; }

signals:
    void loadProgressed();  // at most 30 times a second
    void loadFailed(const colibri::Status& status);
    void recordingFailed(const colibri::Status& status);  // the model runs without a recording
    void notSaved(const colibri::Status& status);         // the recent list or the measurements
    void notRead(const colibri::Status& status);          // one of these two files is damaged

private:
    struct Loaded;

    void setState(State state);
    void loadEnded(const Status& status, const std::shared_ptr<std::shared_ptr<Loaded>>& result);
    void release(std::shared_ptr<Loaded> loaded);
    void rememberRun(const Loaded& loaded);
    QString knobSummary(const Loaded& loaded) const;

    State m_state = State::NoModel;
    KeptData m_kept;
    QString m_sessionFile;
    KnobValues m_knobs;                // as requested
    std::shared_ptr<Loaded> m_loaded;  // null unless Ready
    Job* m_load = nullptr;
    mutable MemoryNow m_memory;  // read at most twice a second
    mutable QElapsedTimer m_memoryAge;
    GuiQueue m_gui;   // from the worker to the GUI thread
    Worker m_worker;  // last: its tasks end before the other members are destroyed
};

// Bytes that the memory limit leaves to the rest of the system.
constexpr int64_t kMemoryReserve = 1ll << 30;

// The bundled model: COLIBRI_DEMO_MODEL, else beside the program or in a folder above it. "": there
// is none.
QString demoModelPath();
// Knobs of the demo: a slow link, and a cache size at which it matters.
KnobValues demoKnobs();

}  // namespace colibri::ui
