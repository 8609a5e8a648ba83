// SPDX-License-Identifier: GPL-3.0-or-later
// Owns the running model: an Engine, the Recorder that watches it, and the jobs around them. All
// functions are for the GUI thread and return at once; waiting happens on the host's worker (short
// tasks, in order) and in jobs (a thread each). What the engine's threads report reaches the GUI
// through a ChatRun or a snapshot, which the window's timer collects.
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

class EngineHost final : public SessionSource {
    Q_OBJECT

public:
    // `dataDir`: where sessions, the recent list and measurements are kept; "" = the user's.
    explicit EngineHost(const QString& dataDir = {}, QObject* parent = nullptr);
    ~EngineHost() override;  // closes the model; sessions end cleanly

    // ---- loading
    // Closes what runs, then reads the model. Ends in stateChanged() with Ready or NoModel; after
    // an error also in loadFailed(). A load asked for during another replaces it.
    void load(const std::filesystem::path& model, const KnobValues& knobs);
    // The next load records to this file instead of a new one in the sessions folder; "" undoes it.
    void setSessionFile(const QString& path);
    void cancelLoad();  // NoModel within a second
    void close();
    // Progress of the load that runs; nullptr when none does.
    const JobProgress* loadProgress() const { return m_load ? &m_load->progress() : nullptr; }
    bool loadCancelling() const { return m_load && m_load->cancelling(); }

    // The loaded model, and its memory by part: estimated before, actual now.
    const ContainerInfo* container() const;
    std::optional<EngineMemory> engineMemory() const;
    KnobValues requestedKnobs() const { return m_knobs; }
    QString sessionPath() const;  // "" when nothing is recorded

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
    Histogram itlBetween(double t0, double t1) const override;
    Histogram expertLoadBetween(double t0, double t1) const override;
    void note(const QString& text) override;
    std::shared_ptr<Engine> engine() const override;
    std::shared_ptr<ChatRun> startChat(ChatRequest request) override;
    void cancelChat(const std::shared_ptr<ChatRun>& run) override;
    int countTokens(const QString& text) const override;
    Result<std::string> renderChat(const nlohmann::ordered_json& messages,
                                   const ChatOptions& options) const override;

    // ---- kept between runs
    RecentList& recent() { return m_recent; }
    const SessionFolder& sessions() const { return m_sessions; }
    Measurements& measurements() { return m_measurements; }

signals:
    void loadProgressed();  // at most 30 times a second
    void loadFailed(const colibri::Status& status);
    void recordingFailed(const colibri::Status& status);  // the model runs, unrecorded
    void notSaved(const colibri::Status& status);         // the recent list or the measurements
    void notRead(const colibri::Status& status);          // of these two, what was damaged

private:
    struct Loaded;

    void setState(State state);
    void loadEnded(const Status& status, const std::shared_ptr<std::shared_ptr<Loaded>>& result);
    void release(std::shared_ptr<Loaded> loaded);
    void rememberRun(const Loaded& loaded);
    QString knobSummary(const Loaded& loaded) const;

    State m_state = State::NoModel;
    SessionFolder m_sessions;
    RecentList m_recent;
    Measurements m_measurements;
    QString m_sessionFile;
    KnobValues m_knobs;                // as requested
    std::shared_ptr<Loaded> m_loaded;  // null unless Ready
    Job* m_load = nullptr;
    mutable MemoryNow m_memory;  // read at most twice a second
    mutable QElapsedTimer m_memoryAge;
    GuiQueue m_gui;   // what the worker has to say
    Worker m_worker;  // last: its tasks end before the rest goes
};

// What this process can use at most without swapping, less a reserve for the rest of the system.
constexpr int64_t kMemoryReserve = 1ll << 30;

// The bundled model: COLIBRI_DEMO_MODEL, else beside the program or in a folder above it. "" when
// there is none.
QString demoModelPath();
// As the demo opens: a slow link, and a cache size at which it matters.
KnobValues demoKnobs();

}  // namespace colibri::ui
