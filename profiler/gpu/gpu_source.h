// SPDX-License-Identifier: Apache-2.0
// The GPU's counters from the best source that this machine allows. All libraries are loaded at run
// time. A source that is refused keeps its reason and what to do about it; `colibri diagnose`
// prints them.
#pragma once

#include <chrono>
#include <memory>
#include <string>
#include <vector>

#include "engine/base/status.h"
#include "profiler/gpu/gpm_source.h"
#include "profiler/gpu/gpu_library.h"
#include "profiler/gpu/gpu_reading.h"
#include "profiler/gpu/nvml_device.h"
#include "profiler/gpu/pm_source.h"

namespace colibri {

struct GpuOptions {
    bool pmSampling = false;   // locks the GPU's clocks while it runs
    bool tryActivity = false;  // start and end a trace of kernels, to learn whether it works
    int device = 0;
    std::chrono::milliseconds interval{100};  // between two readings
    GpuLibraryPaths libraries;
};

// The sources, from the most precise one on. The first two measure the same quantity.
enum class GpuRungId { PmSampling, Gpm, Utilisation, Activity };
constexpr int kGpuRungCount = 4;

struct GpuRung {
    enum class State {
        Used,
        Ready,  // works, but is not needed now
        Off,    // is not chosen
        Refused,
    };
    GpuRungId id;
    const char* key;       // "pm_sampling", in JSON
    const char* name;      // "CUPTI PM sampling"
    const char* measures;  // "SM utilisation and DRAM throughput"
    State state = State::Refused;
    Status refusal;  // Off, Refused: the reason, and as its hint the remedy
};
const char* gpuRungStateName(GpuRung::State state);  // "used", "ready", "off", "refused"

// One thread at a time.
class GpuSource {
public:
    // Never fails: without a usable GPU, available() is false and reason() says why. May take
    // seconds: drivers start.
    static std::unique_ptr<GpuSource> probe(const GpuOptions& options = {});

    bool available() const;          // one source has values
    std::string reason() const;      // "no NVIDIA driver"; "" if available
    std::string smReason() const;    // why there is no SM utilisation; "" if there is
    std::string busyReason() const;  // why GpuReading::busy has no value
    const std::string& name() const { return m_name; }  // of the device; "" if not available
    std::string provenance() const;  // of the values: "NVML GPM, 10 times a second"
    bool clocksLocked() const { return m_pm != nullptr; }
    const std::vector<GpuRung>& ladder() const { return m_ladder; }

    // The newest values, at most one reading for each interval. A source that fails, such as that
    // of a lost GPU, hands over to the next one; NVML is tried again with each reading.
    const GpuReading& read();

private:
    explicit GpuSource(const GpuOptions& options);
    GpuRung& rung(GpuRungId id) { return m_ladder[size_t(id)]; }
    const GpuRung& rung(GpuRungId id) const { return m_ladder[size_t(id)]; }
    void set(GpuRungId id, const Status& status, GpuRung::State ok);
    void openNvml();
    void openPm();
    void tryActivity();
    void readCounters(GpuReading& reading);

    const GpuOptions m_options;
    std::vector<GpuRung> m_ladder;  // by GpuRungId
    std::string m_name;
    std::unique_ptr<PmSource> m_pm;
    std::shared_ptr<NvmlDevice> m_nvml;
    std::unique_ptr<GpmSource> m_gpm;
    GpuReading m_reading;
    std::chrono::steady_clock::time_point m_readAt{};
};

}  // namespace colibri
