// SPDX-License-Identifier: GPL-3.0-or-later
// Traces work of a known amount and compares every count, byte and time.
#include <algorithm>
#include <chrono>
#include <cmath>
#include <thread>

#include "engine/telemetry/telemetry.h"
#include "gpu_checks.h"
#include "gpu_work.h"
#include "profiler/gpu/activity_source.h"

using namespace colibri;

namespace {

constexpr int kKernels = 500, kCopies = 40, kFills = 20;
constexpr uint64_t kSpinNs = 100'000;
constexpr size_t kCopyBytes = 3 << 20;  // not a power of two

// What launched in one trace, by kind.
struct Totals {
    int kernels = 0, copiesTo = 0, copiesFrom = 0, fills = 0, other = 0;
    uint64_t bytesTo = 0, bytesFrom = 0, bytesFilled = 0;
};

Totals totalsOf(const std::vector<GpuSpan>& spans) {
    Totals totals;
    for (const GpuSpan& span : spans) {
        switch (span.kind) {
            case GpuSpanKind::Kernel:
                ++totals.kernels;
                break;
            case GpuSpanKind::CopyToGpu:
                ++totals.copiesTo;
                totals.bytesTo += span.bytes;
                break;
            case GpuSpanKind::CopyFromGpu:
                ++totals.copiesFrom;
                totals.bytesFrom += span.bytes;
                break;
            case GpuSpanKind::Fill:
                ++totals.fills;
                totals.bytesFilled += span.bytes;
                break;
            default:
                ++totals.other;
        }
    }
    return totals;
}

// Kernel number i belongs to layer i of step 5; the copies to step 6; the fills to none.
void launchKnownWork(ActivitySource& source) {
    for (int i = 0; i < kKernels; ++i) {
        const GpuScope scope(&source,
                             {.step = 5, .layer = uint16_t(i), .stage = GpuStage::Experts});
        (void)gpuWorkSpin(1, kSpinNs, 1);
    }
    {
        const GpuScope scope(&source, {.step = 6, .stage = GpuStage::ExpertCopy});
        (void)gpuWorkCopyToGpu(kCopies, kCopyBytes);
        (void)gpuWorkCopyFromGpu(kCopies / 2, kCopyBytes);
    }
    (void)gpuWorkFill(kFills, kCopyBytes);
    (void)gpuWorkWait();
}

void checkCounts(CheckTable& table, const std::vector<GpuSpan>& spans) {
    const Totals t = totalsOf(spans);
    table.expect(t.kernels == kKernels, "activity: kernels",
                 textOf("%d of %d", t.kernels, kKernels));
    table.expect(t.copiesTo == kCopies && t.bytesTo == kCopies * kCopyBytes,
                 "activity: copies to the GPU",
                 textOf("%d of %d, %llu bytes of %llu", t.copiesTo, kCopies,
                        (unsigned long long)t.bytesTo, (unsigned long long)kCopies * kCopyBytes));
    table.expect(
        t.copiesFrom == kCopies / 2 && t.bytesFrom == kCopies / 2 * kCopyBytes,
        "activity: copies from the GPU",
        textOf("%d of %d, %llu bytes", t.copiesFrom, kCopies / 2, (unsigned long long)t.bytesFrom));
    table.expect(
        t.fills == kFills && t.bytesFilled == kFills * kCopyBytes, "activity: fills",
        textOf("%d of %d, %llu bytes", t.fills, kFills, (unsigned long long)t.bytesFilled));
    table.expect(t.other == 0, "activity: nothing else", textOf("%d others", t.other));
}

void checkWork(CheckTable& table, const std::vector<GpuSpan>& spans) {
    std::vector<int> kernelsOfLayer(kKernels);
    int wrong = 0;
    for (const GpuSpan& span : spans) {
        const GpuWork work = gpuWorkOf(span.work);
        if (span.kind == GpuSpanKind::Kernel) {
            if (span.work && work.step == 5 && work.stage == GpuStage::Experts &&
                work.layer < kKernels) {
                ++kernelsOfLayer[work.layer];
            } else {
                ++wrong;
            }
        } else if (span.kind == GpuSpanKind::Fill) {
            wrong += span.work != 0;
        } else {
            wrong += span.work == 0 || work.step != 6;
        }
    }
    const auto once = std::count(kernelsOfLayer.begin(), kernelsOfLayer.end(), 1);
    table.expect(wrong == 0 && once == kKernels, "activity: step and layer of each span",
                 textOf("%d layers of %d have one kernel, %d wrong", int(once), kKernels, wrong));
    const auto kernel = std::find_if(spans.begin(), spans.end(), [](const GpuSpan& span) {
        return span.kind == GpuSpanKind::Kernel;
    });
    const std::string name(kernel == spans.end() ? "" : kernel->name);
    table.expect(name.find("spin") != std::string::npos, "activity: names of kernels", name);
}

void checkTimes(CheckTable& table, const std::vector<GpuSpan>& spans, uint64_t from, uint64_t to) {
    int outside = 0;
    std::vector<uint64_t> durations;
    // CUPTI interpolates between the clocks of GPU and host: allow it a millisecond.
    constexpr uint64_t kTolerance = 1'000'000;
    for (const GpuSpan& span : spans) {
        const uint64_t end = span.startNs + span.durationNs;
        if (span.startNs + kTolerance < from || end > to + kTolerance) ++outside;
        if (span.kind == GpuSpanKind::Kernel) durations.push_back(span.durationNs);
    }
    table.expect(outside == 0, "activity: times are of the engine's clock",
                 textOf("%d of %d spans outside the time of the work", outside, int(spans.size())));
    if (durations.empty()) return;
    std::nth_element(durations.begin(), durations.begin() + long(durations.size() / 2),
                     durations.end());
    const double median = double(durations[durations.size() / 2]) / 1e3;
    // The kernel ends after the given time, and the GPU's timer may advance in microseconds.
    table.expect(median >= 90 && median <= 150, "activity: time of a kernel of 100 us",
                 textOf("median %.1f us", median));
}

// Buffers of the host that take four kernels each, two of them: records are dropped, and counted.
void checkDropped(CheckTable& table) {
    auto source = ActivitySource::start(
        {.bufferBytes = 1024, .mostBuffers = 2, .flushEvery = std::chrono::milliseconds(1000)});
    if (!source) return table.fail("activity: second trace", source.status().text());
    (void)gpuWorkSpin(kKernels, 1000, 1);
    (void)gpuWorkWait();
    (void)(*source)->stop();
    std::vector<GpuSpan> spans;
    (*source)->take(spans);
    const uint64_t dropped = (*source)->counts().droppedByCupti;
    const int seen = totalsOf(spans).kernels;
    table.expect(seen < kKernels ? dropped > 0 : true, "activity: dropped records are counted",
                 textOf("%d kernels of %d seen, %llu records dropped", seen, kKernels,
                        (unsigned long long)dropped));
}

double secondsFor(int launches) {
    const auto begin = std::chrono::steady_clock::now();
    (void)gpuWorkSpin(launches, 0, 1);
    const auto end = std::chrono::steady_clock::now();
    (void)gpuWorkWait();
    return std::chrono::duration<double>(end - begin).count();
}

}  // namespace

void checkActivity(CheckTable& table) {
    constexpr int kLaunches = 20000;
    (void)secondsFor(kLaunches);
    const double without = secondsFor(kLaunches);
    auto source = ActivitySource::start();
    if (!source) {
        return table.notAvailable("activity: kernels and copies", source.status().text());
    }
    const uint64_t from = monotonicNs();
    launchKnownWork(**source);
    const uint64_t to = monotonicNs();
    const Status stopped = (*source)->stop();
    table.expect(stopped.ok(), "activity: start and stop", stopped.text());
    std::vector<GpuSpan> spans;
    (*source)->take(spans);
    const ActivityCounts counts = (*source)->counts();
    table.expect(
        counts.droppedByCupti == 0 && counts.droppedSpans == 0 && counts.untimed == 0,
        "activity: nothing dropped",
        textOf("%llu by CUPTI, %llu not taken, %llu without times",
               (unsigned long long)counts.droppedByCupti, (unsigned long long)counts.droppedSpans,
               (unsigned long long)counts.untimed));
    checkCounts(table, spans);
    checkWork(table, spans);
    checkTimes(table, spans, from, to);
    source->reset();
    checkDropped(table);

    // CUPTI attaches a third time; the trace ends while kernels run.
    source = ActivitySource::start();
    if (!source) return table.fail("activity: third trace", source.status().text());
    const double with = secondsFor(kLaunches);
    table.info("activity: cost of a launch",
               textOf("%.2f us without, %.2f us with the trace", without / kLaunches * 1e6,
                      with / kLaunches * 1e6));
    (void)gpuWorkSpin(50, 1'000'000, 1);
    source->reset();
    table.expect(gpuWorkWait() == 0, "activity: end while kernels run", "no error of CUDA");
}
