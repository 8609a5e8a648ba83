// SPDX-License-Identifier: Apache-2.0
// Turns the rows of a session into the tracks of a trace: requests and their tokens, steps, layer
// steps, expert reads, evictions, changes of knobs, marks, and every series as a counter.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "profiler/export/export_run.h"
#include "profiler/export/read_matcher.h"
#include "profiler/export/trace_sink.h"
#include "profiler/session/session_db.h"

namespace colibri {

struct TraceCounts {
    int64_t slices = 0, instants = 0, flows = 0, values = 0;
    std::vector<std::string> series;  // keys, in the order of their first value
};

class TraceWriter {
public:
    // `series`: keys of the metrics to export; empty: all. Everything is borrowed.
    TraceWriter(const SessionDb& db, TraceSink& sink, ExportRun& run, const TimeRange& range,
                const std::vector<std::string>& series);
    Status write();
    const TraceCounts& counts() const { return m_counts; }

private:
    struct RequestTracks {
        TrackId tokens = 0;
        int64_t lastNs = 0;  // end of the last token slice
    };
    struct Lane {
        TrackId track;
        int64_t lastNs;  // end of its last slice
    };

    bool inRange(int64_t beginNs, int64_t endNs) const {
        return double(endNs) * 1e-9 >= m_range.from && double(beginNs) * 1e-9 <= m_range.to;
    }
    // `rank`: position among the tracks of the parent.
    Result<TrackId> addTrack(const std::string& name, TrackId parent, int rank,
                             bool childrenByName = false);
    Result<TrackId> addCounter(std::string_view label, TrackId parent);
    Status slice(TrackId track, int64_t beginNs, int64_t endNs, std::string_view name);
    // A track of reads of this name that is free from `beginNs` on: slices of a track must not
    // overlap.
    Result<TrackId> freeLane(std::string_view name, int64_t beginNs, int64_t endNs);

    Status writeRequests();
    Status writeRequest(const SessionRows& row, TrackId parent);
    Status writeTokens();
    Status writeSteps();
    Status writeEvictions();
    Status readThreads();
    Status prepareReads();
    Status writeStepsAndReads();
    // Writes the reads that ended until `untilNs`.
    Status advanceReads(int64_t untilNs);
    Status writeRead(const SessionRows& row);
    Status writeLayerStep(const SessionRows& row, TrackId track);
    Status writeKnobs();
    Status writeFirstKnobs(TrackId track,
                           const std::map<std::string, std::string, std::less<>>& effective);
    Status writeMarks();
    Status writeCounters();

    const SessionDb& m_db;
    TraceSink& m_sink;
    ExportRun& m_run;
    const TimeRange m_range;
    const std::set<std::string, std::less<>> m_series;
    TraceCounts m_counts;
    TrackId m_lastTrack = 0;
    int m_groups = 0;  // tracks without a parent
    std::map<int64_t, RequestTracks> m_requests;
    std::map<std::string, std::vector<Lane>, std::less<>> m_lanes;  // by reason
    int64_t m_lastStepNs = 0;
    SessionRows m_readRows;  // a cursor that follows the layer steps
    bool m_moreReads = true;
    int64_t m_lastReadNs = 0;
    TrackId m_readGroup = 0;
    std::map<int64_t, std::string> m_threads;  // names
    ReadMatcher m_matcher;
    std::string m_name;  // of a slice, reused
};

}  // namespace colibri
