// SPDX-License-Identifier: Apache-2.0
// Writes the JSON of Chrome's trace event format, for chrome://tracing and other readers. A track
// is a thread of one process; its name contains those of its parents.
#pragma once

#include <map>
#include <string>
#include <string_view>

#include "profiler/export/trace_sink.h"

namespace colibri {

class ChromeSink : public TraceSink {
public:
    explicit ChromeSink(ExportFile& file) : m_file(file) {}  // borrowed

    Status start(const std::string& title) override;
    Status track(const TraceTrack& track) override;
    Status begin(TrackId track, int64_t ns, std::string_view name, TraceArgs args,
                 uint64_t flow) override;
    Status end(TrackId track, int64_t ns) override;
    Status instant(TrackId track, int64_t ns, std::string_view name, TraceArgs args,
                   uint64_t flow) override;
    Status counter(TrackId track, int64_t ns, double value) override;
    Status finish() override { return m_file.append("\n]}\n"); }

private:
    struct Counter {
        std::string name, unit;  // JSON strings
    };

    void open(char phase, TrackId track, int64_t ns);
    void add(TraceArgs args);
    Status flow(char phase, TrackId track, int64_t ns, uint64_t id);
    Status metadata(TrackId track, const char* name, const std::string& value);
    Status write();

    ExportFile& m_file;
    std::map<TrackId, std::string> m_names;  // of tracks
    std::map<TrackId, Counter> m_counters;
    std::string m_line;
    bool m_first = true;
};

}  // namespace colibri
