// SPDX-License-Identifier: Apache-2.0
#include "profiler/metrics/metric_table.h"

#include <array>
#include <cstddef>

namespace colibri {
namespace {

constexpr const char* kEvents = "engine events of this session";

constexpr std::array<MetricRow, kSeriesCount> kMetrics{{
    {SeriesId::HitRate, "Hit rate", "resident", "%", "resident at first touch, 10 s window",
     kEvents},
    {SeriesId::PrefetchHitRate, "Hits by prefetch", "by prefetch", "%",
     "made resident by a prefetch at first touch, 10 s window", kEvents},
    {SeriesId::ExpertLoadP50, "Expert load P50", "P50", "ms", "from need to usable, 10 s window",
     kEvents},
    {SeriesId::ExpertLoadP99, "Expert load P99", "P99", "ms", "from need to usable, 10 s window",
     kEvents},
    {SeriesId::ItlP50, "ITL P50", "P50", "ms", "gaps between tokens, 10 s window", kEvents},
    {SeriesId::ItlP99, "ITL P99", "P99", "ms", "gaps between tokens, 10 s window", kEvents},
    {SeriesId::TokensPerSecond, "Decode", "decode", "tok/s", "of one request, 2 s window", kEvents},
    {SeriesId::ReadRate, "Read", "read", "GB/s", "experts read, 1 s window", kEvents},
    {SeriesId::StallShare, "Stall", "stall", "%",
     "of decode time in which compute waited for experts, 10 s window", kEvents},
    {SeriesId::QueueDepth, "Queue", "waiting", "requests", "requests that wait for admission",
     kEvents},
    {SeriesId::MeanBatch, "Mean batch", "mean batch", "requests",
     "requests per forward pass, 2 s window", kEvents},
    {SeriesId::PrefetchIssued, "Prefetch issued", "issued", "reads/s",
     "prefetches started, 2 s window", kEvents},
    {SeriesId::PrefetchUseful, "Prefetch useful", "useful", "reads/s",
     "read ahead and resident at first touch, 2 s window", kEvents},
    {SeriesId::PrefetchLate, "Prefetch late", "late", "reads/s",
     "requested while being prefetched, 2 s window", kEvents},
    {SeriesId::PrefetchWasted, "Prefetch wasted", "wasted", "reads/s",
     "prefetched and evicted before use, 2 s window", kEvents},
    {SeriesId::MemoryGiB, "Memory", "resident", "GiB", "resident memory of this process",
     "the operating system"},
    {SeriesId::SmUtilisation, "SM utilisation", "SM", "%",
     "of the time in which a kernel ran on the GPU, by NVML",
     "the driver's NVML, about ten times a second"},
    {SeriesId::KvHeld, "KV cache in use", "held", "%",
     "blocks of the KV cache that running requests hold", kEvents},
    {SeriesId::KvKept, "KV cache kept", "kept", "%",
     "blocks of the KV cache kept for reuse, freed when requests need them", kEvents},
    {SeriesId::PromptReuse, "Prompt reuse", "reused", "%",
     "prompt tokens found in the KV cache, 60 s window", kEvents},
    {SeriesId::PreemptedShare, "Preempted", "preempted", "%",
     "of the time between tokens in which requests were preempted, 10 s window", kEvents},
    {SeriesId::MemoryStallShare, "Stall for new memory", "new memory", "%",
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

}  // namespace

const MetricRow& metricRow(SeriesId id) {
    return kMetrics[size_t(id)];
}

}  // namespace colibri
