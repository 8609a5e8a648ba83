// SPDX-License-Identifier: Apache-2.0
// The recorded metrics: name, unit and meaning of each. Plots, figures, CSV files, session files
// and their documentation use the texts of this table.
#pragma once

#include <cstdint>
#include <string_view>

namespace colibri {

enum class SeriesId : uint8_t {
    HitRate,
    PrefetchHitRate,
    ExpertLoadP50,
    ExpertLoadP99,
    ItlP50,
    ItlP99,
    TokensPerSecond,
    ReadRate,
    StallShare,
    QueueDepth,
    MeanBatch,
    // Of the current prefetch source. No values while prefetching is off.
    PrefetchIssued,
    PrefetchUseful,
    PrefetchLate,
    PrefetchWasted,
    MemoryGiB,
    // Of the GPU. Unavailable with the reason where no source measures them.
    SmUtilisation,
    GpuDram,
    GpuBusy,
    KvHeld,
    KvKept,
    PromptReuse,
    PreemptedShare,
    MemoryStallShare,  // a part of StallShare
    Count
};
constexpr int kSeriesCount = int(SeriesId::Count);

struct MetricRow {
    SeriesId id;
    const char* key;         // "itl_p99": names the series in commands, files and exports; unique
    const char* label;       // "ITL P99", also in session files
    const char* legend;      // its name within a plot, also in the headers of CSV files: "P99"
    const char* unit;        // "ms"
    const char* definition;  // follows label and unit: "gaps between tokens, 10 s window"
    const char* source;      // where the values come from
};
const MetricRow& metricRow(SeriesId id);
const MetricRow* findMetric(std::string_view key);  // nullptr: there is no such series

// With fewer values a P99 is drawn in grey and not compared with limits.
constexpr uint64_t kEnoughForP99 = 200;

}  // namespace colibri
