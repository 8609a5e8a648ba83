// SPDX-License-Identifier: Apache-2.0
#include "profiler/gpu/gpu_source.h"

#include <cmath>
#include <utility>

#include "profiler/gpu/activity_source.h"

namespace colibri {
namespace {

const std::vector<GpuRung> kLadder = {
    {GpuRungId::PmSampling, "pm_sampling", "CUPTI PM sampling",
     "SM utilisation and DRAM throughput, 500 samples a second; locks the GPU's clocks"},
    {GpuRungId::Gpm, "gpm", "NVML GPM", "SM utilisation and DRAM throughput, 10 times a second"},
    {GpuRungId::Utilisation, "nvml_utilisation", "NVML utilisation",
     "GPU busy: the share of time with any kernel; not SM utilisation"},
    {GpuRungId::Activity, "cupti_activity", "CUPTI activity",
     "each kernel and copy, with the layer and step it belongs to"},
};

}  // namespace

const char* gpuRungStateName(GpuRung::State state) {
    switch (state) {
        case GpuRung::State::Used:
            return "used";
        case GpuRung::State::Ready:
            return "ready";
        case GpuRung::State::Off:
            return "off";
        case GpuRung::State::Refused:
            return "refused";
    }
    return "";
}

GpuSource::GpuSource(const GpuOptions& options) : m_options(options), m_ladder(kLadder) {}

std::unique_ptr<GpuSource> GpuSource::probe(const GpuOptions& options) {
    auto source = std::unique_ptr<GpuSource>(new GpuSource(options));
    source->openNvml();
    source->tryActivity();
    source->openPm();  // last, since it locks the clocks
    (void)source->read();
    return source;
}

void GpuSource::set(GpuRungId id, const Status& status, GpuRung::State ok) {
    rung(id).state = status.ok() ? ok : GpuRung::State::Refused;
    rung(id).refusal = status;
}

void GpuSource::openNvml() {
    Result<std::shared_ptr<NvmlDevice>> device =
        NvmlDevice::open(m_options.libraries.nvml, m_options.device);
    if (!device) {
        set(GpuRungId::Gpm, device.status(), GpuRung::State::Ready);
        set(GpuRungId::Utilisation, device.status(), GpuRung::State::Ready);
        return;
    }
    m_nvml = std::move(*device);
    m_name = m_nvml->name();
    Result<std::unique_ptr<GpmSource>> gpm = GpmSource::start(m_nvml, m_options.interval);
    set(GpuRungId::Gpm, gpm.status(), GpuRung::State::Ready);
    if (gpm) m_gpm = std::move(*gpm);
    GpuReading ignored;
    set(GpuRungId::Utilisation, m_nvml->readBusy(ignored), GpuRung::State::Ready);
}

void GpuSource::openPm() {
    if (!m_options.pmSampling) {
        rung(GpuRungId::PmSampling).state = GpuRung::State::Off;
        rung(GpuRungId::PmSampling).refusal = {Code::Unsupported, "it locks the GPU's clocks",
                                               "Turn it on with the option --pm-sampling"};
        return;
    }
    Result<std::unique_ptr<PmSource>> pm = PmSource::start(m_options.libraries, m_options.device);
    set(GpuRungId::PmSampling, pm.status(), GpuRung::State::Used);
    if (pm) m_pm = std::move(*pm);
}

void GpuSource::tryActivity() {
    if (!m_options.tryActivity) {
        rung(GpuRungId::Activity).state = GpuRung::State::Off;
        rung(GpuRungId::Activity).refusal = {Code::Unsupported, "no model runs on the GPU", ""};
        return;
    }
    const auto source = ActivitySource::start({.libraries = m_options.libraries});
    set(GpuRungId::Activity, source.status(), GpuRung::State::Ready);
}

bool GpuSource::available() const {
    for (const GpuRungId id : {GpuRungId::PmSampling, GpuRungId::Gpm, GpuRungId::Utilisation}) {
        if (rung(id).state == GpuRung::State::Used) return true;
    }
    return false;
}

std::string GpuSource::reason() const {
    return available() ? std::string() : rung(GpuRungId::Utilisation).refusal.message();
}

std::string GpuSource::smReason() const {
    if (rung(GpuRungId::PmSampling).state == GpuRung::State::Used) return {};
    if (rung(GpuRungId::Gpm).state == GpuRung::State::Used) return {};
    return rung(GpuRungId::Gpm).refusal.message();
}

std::string GpuSource::busyReason() const {
    if (m_pm && m_pm->metrics() > int(PmMetric::GpuActive)) return {};
    if (rung(GpuRungId::Utilisation).state == GpuRung::State::Used) return {};
    return rung(GpuRungId::Utilisation).refusal.message();
}

std::string GpuSource::provenance() const {
    for (const GpuRungId id : {GpuRungId::PmSampling, GpuRungId::Gpm, GpuRungId::Utilisation}) {
        if (rung(id).state != GpuRung::State::Used) continue;
        return std::string(rung(id).name) + ": " + rung(id).measures;
    }
    return {};
}

const GpuReading& GpuSource::read() {
    const auto now = std::chrono::steady_clock::now();
    if (m_readAt.time_since_epoch().count() != 0 && now - m_readAt < m_options.interval) {
        return m_reading;
    }
    m_readAt = now;
    GpuReading reading;
    if (m_nvml) m_nvml->readState(reading);
    readCounters(reading);
    return m_reading = reading;
}

void GpuSource::readCounters(GpuReading& reading) {
    if (m_pm) {
        set(GpuRungId::PmSampling, m_pm->read(reading), GpuRung::State::Used);
        // The sampling does not restart: whatever ended it would end it again.
        if (rung(GpuRungId::PmSampling).state == GpuRung::State::Refused) m_pm.reset();
    }
    if (m_gpm && !m_pm) {
        set(GpuRungId::Gpm, m_gpm->read(reading), GpuRung::State::Used);
    } else if (m_gpm) {
        rung(GpuRungId::Gpm).state = GpuRung::State::Ready;
    }
    if (!m_nvml) return;
    if (std::isnan(reading.busy)) {
        set(GpuRungId::Utilisation, m_nvml->readBusy(reading), GpuRung::State::Used);
    } else {
        rung(GpuRungId::Utilisation).state = GpuRung::State::Ready;
    }
}

}  // namespace colibri
