// SPDX-License-Identifier: GPL-3.0-or-later
// Keeps a known share of the GPU busy and compares what each source measures.
#include <atomic>
#include <chrono>
#include <cmath>
#include <functional>
#include <thread>

#include "gpu_checks.h"
#include "gpu_work.h"
#include "profiler/gpu/gpm_source.h"
#include "profiler/gpu/pm_source.h"

using namespace colibri;

namespace {

using Clock = std::chrono::steady_clock;
constexpr auto kLoad = std::chrono::milliseconds(2500), kSettle = std::chrono::milliseconds(1200);
constexpr size_t kDramBytes = 192 << 20;

// Repeats the work until the end; destroyed after at most a few milliseconds.
class Load {
public:
    explicit Load(std::function<void()> work)
        : m_thread([this, work = std::move(work)] {
              while (!m_stopping) {
                  work();
                  (void)gpuWorkWait();
              }
          }) {}
    ~Load() {
        m_stopping = true;
        m_thread.join();
    }

private:
    std::atomic<bool> m_stopping = false;
    std::thread m_thread;
};

struct Case {
    const char* name;
    std::function<void()> work;  // null: idle
    // What SM utilisation, GPU memory throughput and GPU busy may be, in percent.
    double smLow, smHigh, dramLow, dramHigh, busyLow, busyHigh;
};

std::vector<Case> cases() {
    const int all = gpuWorkMultiprocessors();
    const double one = 100.0 / all;
    const auto spin = [](int blocks) {
        return [blocks] { (void)gpuWorkSpin(20, 2'000'000, blocks); };
    };
    return {
        {"idle", nullptr, 0, 3, 0, 5, 0, 20},
        {"one SM", spin(1), one / 3, one + 3, 0, 5, 85, 100},
        {"half the SMs", spin(all / 2), 38, 62, 0, 5, 85, 100},
        {"all SMs", spin(all), 85, 100, 0, 5, 85, 100},
        {"copies within the GPU", [] { (void)gpuWorkCopyOnGpu(20, kDramBytes); }, 0, 100, 35, 100,
         0, 100},
    };
}

// The mean of the readings of one case, without those of the time before.
GpuReading meanReading(const Case& load, const std::function<void(GpuReading&)>& read) {
    std::unique_ptr<Load> running;
    if (load.work) running = std::make_unique<Load>(load.work);
    const auto settled = Clock::now() + kSettle, end = Clock::now() + kLoad;
    GpuReading sum{.smUtilisation = 0, .dramThroughput = 0, .busy = 0};
    int count = 0;
    while (Clock::now() < end) {
        std::this_thread::sleep_for(std::chrono::milliseconds(110));
        GpuReading now;
        read(now);
        if (Clock::now() < settled) continue;
        sum.smUtilisation += now.smUtilisation;
        sum.dramThroughput += now.dramThroughput;
        sum.busy += now.busy;
        sum.smClock = now.smClock;
        ++count;
    }
    sum.smUtilisation *= 100.0 / count;
    sum.dramThroughput *= 100.0 / count;
    sum.busy *= 100.0 / count;
    return sum;
}

// One row for each case. `read` sets what the source measures.
void checkSource(CheckTable& table, const char* source,
                 const std::function<void(GpuReading&)>& read) {
    for (const Case& load : cases()) {
        const GpuReading r = meanReading(load, read);
        const auto within = [](double value, double low, double high) {
            return std::isnan(value) || (value >= low && value <= high);
        };
        const bool met = within(r.smUtilisation, load.smLow, load.smHigh) &&
                         within(r.dramThroughput, load.dramLow, load.dramHigh) &&
                         within(r.busy, load.busyLow, load.busyHigh);
        const bool any = !std::isnan(r.smUtilisation) || !std::isnan(r.busy);
        table.expect(met && any, textOf("%s: %s", source, load.name).c_str(),
                     textOf("SM %.1f %%, memory %.1f %%, busy %.1f %%", r.smUtilisation,
                            r.dramThroughput, r.busy));
    }
}

void checkPm(CheckTable& table) {
    auto source = PmSource::start({}, 0);
    if (!source) return table.notAvailable("PM sampling", source.status().text());
    table.info("PM sampling: counters", textOf("%d in one pass", (*source)->metrics()));
    Status failed;
    checkSource(table, "PM sampling", [&](GpuReading& reading) {
        if (Status status = (*source)->read(reading); !status.ok()) failed = status;
    });
    table.expect(failed.ok(), "PM sampling: no error", failed.text());
    // At 500 samples a second over five loads of 2.5 s.
    const uint64_t samples = (*source)->samples();
    table.expect(samples > 3000, "PM sampling: samples",
                 textOf("%llu, %llu overflows", (unsigned long long)samples,
                        (unsigned long long)(*source)->overflows()));
    // The source goes while it samples a busy GPU, and can start again.
    {
        const Load load([] { (void)gpuWorkSpin(20, 1'000'000, 8); });
        std::this_thread::sleep_for(std::chrono::milliseconds(300));
        source->reset();
        source = PmSource::start({}, 0);
        table.expect(source.ok(), "PM sampling: end and start on a busy GPU",
                     source.status().text());
    }
}

void checkNvml(CheckTable& table) {
    auto device = NvmlDevice::open({}, 0);
    if (!device) return table.notAvailable("NVML", device.status().text());
    GpuReading state;
    (*device)->readState(state);
    table.expect(state.memoryTotal > 0 && state.memoryUsed > 0, "NVML: memory",
                 textOf("%.2f of %.2f GB", state.memoryUsed / 1e9, state.memoryTotal / 1e9));
    table.expect(state.smClock > 1e8, "NVML: clock", textOf("%.0f MHz", state.smClock / 1e6));
    if (std::isnan(state.power)) {
        table.notAvailable("NVML: power", "the GPU does not report it");
    } else {
        table.pass("NVML: power", textOf("%.0f W", state.power));
    }
    auto gpm = GpmSource::start(*device);
    if (!gpm) table.notAvailable("NVML GPM", gpm.status().text());
    Status failed;
    checkSource(table, gpm ? "NVML GPM and utilisation" : "NVML utilisation",
                [&](GpuReading& reading) {
                    if (gpm) failed = (*gpm)->read(reading);
                    if (failed.ok()) failed = (*device)->readBusy(reading);
                });
    table.expect(failed.ok(), "NVML: no error", failed.text());
}

}  // namespace

void checkCounters(CheckTable& table) {
    checkNvml(table);
    checkPm(table);
}
