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
         .fixedMax = 100},
        {.key = "load", .title = "Expert load", .unit = "ms",
         .definition = "from need to usable, 10 s window",
         .series = {{SeriesId::LoadP99, "P99", 2, 2, 0.99}, {SeriesId::LoadP50, "P50", 1, 2, 0.5}},
         .pool = Pool::Loads, .fill = Fill::Between},
        {.key = "itl", .title = "ITL", .unit = "ms",
         .definition = "inter-token latency: every gap, 10 s",
         .series = {{SeriesId::ItlP99, "P99", 2, 1, 0.99}, {SeriesId::ItlP50, "P50", 1, 1, 0.5}},
         .pool = Pool::Itl, .fill = Fill::Between, .slo = true},
        {.key = "rate", .title = "Decode rate", .unit = "tok/s",
         .definition = "tokens out, 2 s window",
         .series = {{SeriesId::TokensPerSecond, "decode", 1, 1}}, .secondColumn = true},
        {.key = "disk", .title = "Read", .unit = "GB/s",
         .definition = "bytes of experts read / wall time, 1 s",
         .series = {{SeriesId::ReadRate, "read", 4, -1}}, .secondColumn = true, .smallUnit = "MB/s"},
        {.key = "memory", .title = "Memory", .unit = "GiB",
         .definition = "resident set of this process",
         .series = {{SeriesId::MemoryGiB, "resident", 6, 2}}, .secondColumn = true},
        {.key = "stall", .title = "Stall", .unit = "%",
         .definition = "decode time in which compute waited for experts, 10 s window",
         .series = {{SeriesId::StallShare, "stall", 2, 1}}, .fixedMax = 100, .secondColumn = true},
        {.key = "queue", .title = "Queue", .unit = "requests",
         .definition = "requests waiting for a batch",
         .series = {{SeriesId::QueueDepth, "waiting", 6, 0}}, .steps = true, .secondColumn = true},
        {.key = "sm", .title = "SM utilisation", .unit = "%",
         .definition = "busy share of the GPU's multiprocessors",
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
