// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/workbench/plots/plot_spec.h"

namespace colibri::ui {

const std::vector<PlotSpec>& plotSpecs() {
    using Pool = PlotSpec::Pool;
    using Fill = PlotSpec::Fill;
    static const std::vector<PlotSpec> specs = {
        {.key = "hit", .title = "Hit rate", .unit = "%",
         .definition = "resident at first touch, 10 s window",
         .series = {{SeriesId::HitRate, "resident", 1, 1},
                    {SeriesId::PrefetchHitRate, "by prefetch", 3, 1}},
         .fixedMax = 100, .ofExperts = true},
        {.key = "load", .title = "Expert load", .unit = "ms",
         .definition = "from need to usable, 10 s window",
         .series = {{SeriesId::LoadP99, "P99", 2, 2, 0.99}, {SeriesId::LoadP50, "P50", 1, 2, 0.5}},
         .pool = Pool::Loads, .fill = Fill::Between, .ofExperts = true},
        {.key = "itl", .title = "ITL", .unit = "ms",
         .definition = "gaps between tokens, 10 s",
         .series = {{SeriesId::ItlP99, "P99", 2, 1, 0.99}, {SeriesId::ItlP50, "P50", 1, 1, 0.5}},
         .pool = Pool::Itl, .fill = Fill::Between, .slo = true},
        {.key = "rate", .title = "Decode rate", .unit = "tok/s",
         .definition = "of one request, 2 s window",
         .series = {{SeriesId::TokensPerSecond, "decode", 1, 1}}, .secondColumn = true},
        {.key = "disk", .title = "Read", .unit = "GB/s",
         .definition = "bytes read / wall time, 1 s",
         .series = {{SeriesId::ReadRate, "read", 4, -1}}, .ofExperts = true, .secondColumn = true, .smallUnit = "MB/s",
         .facts = readFacts},
        {.key = "memory", .title = "Memory", .unit = "GiB",
         .definition = "resident set of this process",
         .series = {{SeriesId::MemoryGiB, "resident", 6, 2}}, .secondColumn = true,
         .facts = memoryFacts},
        {.key = "stall", .title = "Stall", .unit = "%",
         .definition = "waiting for experts, in new memory; preempted, 10 s window",
         .series = {{SeriesId::StallShare, "stall", 2, 1},
                    {SeriesId::MemoryStallShare, "new memory", 6, 1},
                    {SeriesId::PreemptedShare, "preempted", 8, 1}},
         .fixedMax = 100},
        {.key = "kv", .title = "KV cache", .unit = "%",
         .definition = "blocks held and kept for reuse; prompt tokens reused, 60 s",
         .series = {{SeriesId::KvHeld, "held", 1, 1},
                    {SeriesId::KvKept, "kept", 3, 1},
                    {SeriesId::PromptReuse, "reused", 4, 1}},
         .fill = Fill::None, .fixedMax = 100, .secondColumn = true},
        {.key = "queue", .title = "Queue", .unit = "requests",
         .definition = "waiting now; requests per step, 2 s window",
         .series = {{.id = SeriesId::QueueDepth, .name = "waiting", .color = 6, .decimals = 0,
                     .steps = true},
                    {SeriesId::MeanBatch, "mean batch", 1, 1}},
         .leastMax = 4, .secondColumn = true},
        {.key = "prefetch", .title = "Prefetch", .unit = "reads/s",
         .definition = "read ahead, by outcome, 2 s",
         .series = {{SeriesId::PrefetchUseful, "useful", 3, 1},
                    {SeriesId::PrefetchLate, "late", 2, 1},
                    {SeriesId::PrefetchWasted, "wasted", 8, 1},
                    {SeriesId::PrefetchIssued, "issued", 1, 1}},
         .fill = Fill::None, .ofExperts = true, .facts = prefetchFacts},
        {.key = "sm", .title = "SM utilisation", .unit = "%",
         .definition = seriesInfo(SeriesId::SmUtilisation).definition,
         .series = {{SeriesId::SmUtilisation, "SM", 6, 1}}, .fixedMax = 100,
         .needs = "needs an NVIDIA GPU and its driver"},
    };
    return specs;
}

const PlotSpec* findPlot(const QString& key) {
    for (const PlotSpec& spec : plotSpecs())
        if (spec.key == key) return &spec;
    return nullptr;
}

}  // namespace colibri::ui
