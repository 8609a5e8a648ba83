// SPDX-License-Identifier: Apache-2.0
// Writes Perfetto's protobuf trace format, for ui.perfetto.dev and trace_processor. Names of events
// and facts are interned: each is written once. Memory grows only with the number of different
// names.
#pragma once

#include <array>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>

#include "profiler/export/protobuf.h"
#include "profiler/export/trace_sink.h"

namespace colibri {

class PerfettoSink : public TraceSink {
public:
    explicit PerfettoSink(ExportFile& file) : m_file(file) {}  // borrowed

    Status start(const std::string& title) override;
    Status track(const TraceTrack& track) override;
    Status begin(TrackId track, int64_t ns, std::string_view name, TraceArgs args,
                 uint64_t flow) override;
    Status end(TrackId track, int64_t ns) override;
    Status instant(TrackId track, int64_t ns, std::string_view name, TraceArgs args,
                   uint64_t flow) override;
    Status counter(TrackId track, int64_t ns, double value) override;
    Status finish() override { return {}; }

private:
    struct Hash {
        using is_transparent = void;
        size_t operator()(std::string_view text) const {
            return std::hash<std::string_view>()(text);
        }
    };
    using Names = std::unordered_map<std::string, uint64_t, Hash, std::equal_to<>>;

    uint64_t intern(Names& names, uint32_t field, std::string_view name);
    uint64_t argName(const char* name);
    void open(TrackId track, uint64_t type);  // begins an event
    void add(TraceArgs args);
    Status write(int64_t ns);  // the event that was begun
    Status writePacket();

    ExportFile& m_file;
    Names m_eventNames, m_argNames;
    // The ids of names that were used last, by the address of the literal.
    std::array<std::pair<const char*, uint64_t>, 64> m_recentArgs{};
    ProtoMessage m_packet, m_event, m_part, m_interned, m_frame;
    bool m_first = true;
};

}  // namespace colibri
