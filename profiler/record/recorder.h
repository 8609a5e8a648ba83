// SPDX-License-Identifier: Apache-2.0
// Drains an engine's event rings at 30 Hz on its own thread into series, histograms and the session
// file, and publishes snapshots. It never changes the engine.
#pragma once

#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "engine/base/status.h"
#include "engine/runtime/engine.h"
#include "profiler/gpu/gpu_span.h"
#include "profiler/metrics/histogram.h"
#include "profiler/metrics/snapshot.h"

namespace colibri {

struct RecorderOptions {
    std::filesystem::path sessionFile;  // empty: no file
    double rate = 30;                   // drains per second
    // The oldest detail is thinned so that the file stays below this size; 0: no limit.
    int64_t mostSessionBytes = int64_t(2) << 30;
    bool pmSampling = false;  // of the GPU: precise counters, but its clocks are locked
};

// The source of a recorder; all functions can be called from the recorder's thread.
struct RecorderSource {
    Telemetry* telemetry = nullptr;
    std::function<StoreStats()> stats;
    std::function<void(std::vector<Residency>&)> residency;
    std::function<KnobState(KnobId)> knobState;
    // Appends kernels and copies on the GPU since the last call (ActivitySource::take); null: no
    // work runs on a GPU.
    std::function<void(std::vector<GpuSpan>&)> takeGpuSpans;
    std::vector<int64_t> moeLayers;                         // model indices of the MoE layers
    int64_t experts = 0;                                    // per layer
    std::vector<std::pair<std::string, std::string>> meta;  // model, machine, ... for the file
};
RecorderSource recorderSource(Engine& engine);

class Recorder {
public:
    // The source (the engine) must outlive the recorder. Errors: the session file cannot be
    // created. If writing fails later (disk full), recording stops with the reason in the
    // snapshots; the plots continue.
    static Result<std::unique_ptr<Recorder>> start(RecorderSource source,
                                                   const RecorderOptions& options);
    static Result<std::unique_ptr<Recorder>> start(Engine& engine, const RecorderOptions& options);
    ~Recorder();  // finish()

    std::shared_ptr<const Snapshot> snapshot() const;  // any thread; never waits for the disk
    void note(const std::string& text);                // adds a user's marker
    // A knob is being dragged: its steps until release() are one change (see Metrics::hold).
    void hold(KnobId knob);
    void release(KnobId knob, int64_t requested);
    // A pooled histogram of raw values with times in [t0, t1] seconds: ITL, or times of demand
    // reads. For the legend column "pooled". Any thread; never waits for the disk.
    Histogram itlBetween(double t0, double t1) const;
    Histogram expertLoadBetween(double t0, double t1) const;
    Status flush();  // drains and commits now; returns the file's error if any
    // Ends the recording: drains once more and closes the file. The measurements remain available.
    // Returns the file's error if any, in which case the session is incomplete.
    Status finish();
    // Why PM sampling was refused at the start; ok if it runs or is not chosen.
    Status pmSampling() const;
    double sessionTime(uint64_t monotonicNs) const;  // seconds since the session began

private:
    Recorder();
    struct Impl;
    std::unique_ptr<Impl> m_impl;
};

}  // namespace colibri
