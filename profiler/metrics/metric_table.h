// SPDX-License-Identifier: Apache-2.0
// The recorded metrics: what each is called, its unit and what it measures. Plots, figures, CSV
// files, session files and their documentation take their words from this table.
#pragma once

#include <cstdint>

namespace colibri {

enum class SeriesId : uint8_t {
    HitRate,
    PrefetchHitRate,
    LoadP50,
    LoadP99,
    ItlP50,
    ItlP99,
    TokensPerSecond,
    ReadRate,
    StallShare,
    QueueDepth,
    MeanBatch,
    // Of the prefetch source in force. A gap while prefetch is off.
    PrefetchIssued,
    PrefetchUseful,
    PrefetchLate,
    PrefetchWasted,
    MemoryGiB,
    SmUtilisation,  // unavailable, with the reason, without a GPU
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
    const char* label;       // "ITL P99", also in session files
    const char* legend;      // its name within a plot, also in the headers of CSV files: "P99"
    const char* unit;        // "ms"
    const char* definition;  // follows label and unit: "gaps between tokens, 10 s window"
    const char* source;      // where the values come from
};
const MetricRow& metricRow(SeriesId id);

// A P99 of fewer values is drawn grey and compared with no limit.
constexpr uint64_t kEnoughForP99 = 200;

}  // namespace colibri
