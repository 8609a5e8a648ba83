// SPDX-License-Identifier: Apache-2.0
// Says which work of the engine a kernel or copy on the GPU belongs to. The GPU path opens a
// GpuScope around the calls that launch it; whoever traces the GPU (the profiler) implements
// GpuScopeSink. Without one, a scope does nothing.
#pragma once

#include <cstdint>

namespace colibri {

enum class GpuStage : uint8_t { Other, Attention, Router, Experts, Dense, Head, ExpertCopy };
constexpr int kGpuStageCount = 7;
constexpr const char* gpuStageName(GpuStage stage) {
    constexpr const char* kNames[kGpuStageCount] = {"other", "attention", "router",     "experts",
                                                    "dense", "head",      "expert_copy"};
    return int(stage) < kGpuStageCount ? kNames[int(stage)] : "other";
}

// `step` is the number of the step, as in the events Step and Token.
struct GpuWork {
    uint64_t step = 0;
    uint16_t layer = 0;
    GpuStage stage = GpuStage::Other;
    bool operator==(const GpuWork&) const = default;
};

// The work as a number that a trace carries; never 0, which means: belongs to no work.
constexpr uint64_t gpuWorkId(const GpuWork& work) {
    return work.step << 24 | uint64_t(work.layer) << 8 | (uint64_t(work.stage) + 1);
}
constexpr GpuWork gpuWorkOf(uint64_t id) {
    return {id >> 24, uint16_t(id >> 8), GpuStage(uint8_t(id & 0xff) - 1)};
}

// Both functions are called by the thread that launches the work, from any thread.
class GpuScopeSink {
public:
    virtual ~GpuScopeSink() = default;
    virtual void push(uint64_t workId) = 0;
    virtual void pop() = 0;
};

class GpuScope {
public:
    GpuScope(GpuScopeSink* sink, const GpuWork& work) : m_sink(sink) {
        if (m_sink) m_sink->push(gpuWorkId(work));
    }
    ~GpuScope() {
        if (m_sink) m_sink->pop();
    }
    GpuScope(const GpuScope&) = delete;
    GpuScope& operator=(const GpuScope&) = delete;

private:
    GpuScopeSink* m_sink;
};

}  // namespace colibri
