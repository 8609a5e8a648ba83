// SPDX-License-Identifier: Apache-2.0
#include "profiler/metrics/metric_table.h"

#include <array>
#include <cstddef>

namespace colibri {
namespace {

constexpr const char* kEvents = "engine events of this session";
constexpr const char* kGpuCounters = "NVML GPM, ten times a second, or CUPTI PM sampling";

constexpr std::array<MetricRow, kSeriesCount> kMetrics{{
    {SeriesId::HitRate, "hit_rate", "Hit rate", "resident", "%",
     "resident at first touch, 10 s window", kEvents},
    {SeriesId::PrefetchHitRate, "prefetch_hit_rate", "Hits by prefetch", "by prefetch", "%",
     "made resident by a prefetch at first touch, 10 s window", kEvents},
    {SeriesId::ExpertLoadP50, "expert_load_p50", "Expert load P50", "P50", "ms",
     "from need to usable, 10 s window", kEvents},
    {SeriesId::ExpertLoadP99, "expert_load_p99", "Expert load P99", "P99", "ms",
     "from need to usable, 10 s window", kEvents},
    {SeriesId::ItlP50, "itl_p50", "ITL P50", "P50", "ms", "gaps between tokens, 10 s window",
     kEvents},
    {SeriesId::ItlP99, "itl_p99", "ITL P99", "P99", "ms", "gaps between tokens, 10 s window",
     kEvents},
    {SeriesId::TokensPerSecond, "tokens_per_second", "Decode", "decode", "tok/s",
     "of one request, 2 s window", kEvents},
    {SeriesId::ReadRate, "read_rate", "Read", "read", "GB/s", "experts read, 1 s window", kEvents},
    {SeriesId::StallShare, "stall_share", "Stall", "stall", "%",
     "of decode time in which compute waited for experts, 10 s window", kEvents},
    {SeriesId::QueueDepth, "queue_depth", "Queue", "waiting", "requests",
     "requests that wait for admission", kEvents},
    {SeriesId::MeanBatch, "mean_batch", "Mean batch", "mean batch", "requests",
     "requests per forward pass, 2 s window", kEvents},
    {SeriesId::PrefetchIssued, "prefetch_issued", "Prefetch issued", "issued", "reads/s",
     "prefetches started, 2 s window", kEvents},
    {SeriesId::PrefetchUseful, "prefetch_useful", "Prefetch useful", "useful", "reads/s",
     "read ahead and resident at first touch, 2 s window", kEvents},
    {SeriesId::PrefetchLate, "prefetch_late", "Prefetch late", "late", "reads/s",
     "requested while being prefetched, 2 s window", kEvents},
    {SeriesId::PrefetchWasted, "prefetch_wasted", "Prefetch wasted", "wasted", "reads/s",
     "prefetched and evicted before use, 2 s window", kEvents},
    {SeriesId::MemoryGiB, "memory", "Memory", "resident", "GiB", "resident memory of this process",
     "the operating system"},
    {SeriesId::SmUtilisation, "sm_utilisation", "SM utilisation", "SM", "%",
     "of the cycles of the GPU's multiprocessors (SMs) with a warp in flight", kGpuCounters},
    {SeriesId::GpuDram, "gpu_dram", "GPU memory throughput", "memory", "%",
     "of the largest possible rate of the GPU's memory", kGpuCounters},
    {SeriesId::GpuBusy, "gpu_busy", "GPU busy", "busy", "%",
     "of the time in which any kernel ran on the GPU, even on one of its SMs",
     "the driver's NVML, ten times a second, or CUPTI PM sampling"},
    {SeriesId::KvHeld, "kv_held", "KV cache in use", "held", "%",
     "blocks of the KV cache that running requests hold", kEvents},
    {SeriesId::KvKept, "kv_kept", "KV cache kept", "kept", "%",
     "blocks of the KV cache kept for reuse, freed when requests need them", kEvents},
    {SeriesId::PromptReuse, "prompt_reuse", "Prompt reuse", "reused", "%",
     "prompt tokens found in the KV cache, 60 s window", kEvents},
    {SeriesId::PreemptedShare, "preempted_share", "Preempted", "preempted", "%",
     "of the time between tokens in which requests were preempted, 10 s window", kEvents},
    {SeriesId::MemoryStallShare, "memory_stall_share", "Stall for new memory", "new memory", "%",
     "of decode time in which compute waited for experts read into newly allocated memory, "
     "10 s window",
     kEvents},
}};

constexpr bool inOrder() {
    for (size_t i = 0; i < kMetrics.size(); ++i)
        if (kMetrics[i].id != SeriesId(i)) return false;
    return true;
}
static_assert(inOrder(), "kMetrics has one row for each SeriesId, in its order");

constexpr bool uniqueKeys() {
    for (size_t i = 0; i < kMetrics.size(); ++i)
        for (size_t j = 0; j < i; ++j)
            if (std::string_view(kMetrics[i].key) == kMetrics[j].key) return false;
    return true;
}
static_assert(uniqueKeys(), "two rows of kMetrics have the same key");

}  // namespace

const MetricRow& metricRow(SeriesId id) {
    return kMetrics[size_t(id)];
}

const MetricRow* findMetric(std::string_view key) {
    for (const MetricRow& row : kMetrics)
        if (row.key == key) return &row;
    return nullptr;
}

}  // namespace colibri
