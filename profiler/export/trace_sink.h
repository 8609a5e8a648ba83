// SPDX-License-Identifier: Apache-2.0
// What a trace format must be able to write. TraceWriter turns a session into these calls.
//
// Times are ns since the session began. On one track, calls of begin() and end() come in the order
// of their nesting, and times never decrease.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "engine/base/status.h"
#include "profiler/export/export_file.h"

namespace colibri {

using TrackId = uint64_t;  // unique within a trace; 0: none

// A fact about a slice or an instant, shown beside it.
struct TraceArg {
    enum class Kind : uint8_t { Integer, Real, Text };

    TraceArg(const char* argName, int64_t value) : name(argName), integer(value) {}
    TraceArg(const char* argName, double value) : name(argName), kind(Kind::Real), real(value) {}
    TraceArg(const char* argName, std::string_view value)
        : name(argName), kind(Kind::Text), text(value) {}

    const char* name;  // a literal
    Kind kind = Kind::Integer;
    int64_t integer = 0;
    double real = 0;
    std::string_view text;
};
// A borrowed list of facts.
class TraceArgs {
public:
    TraceArgs() = default;
    TraceArgs(std::initializer_list<TraceArg> args) : m_args(args.begin(), args.size()) {}
    TraceArgs(const std::vector<TraceArg>& args) : m_args(args) {}
    auto begin() const { return m_args.begin(); }
    auto end() const { return m_args.end(); }
    bool empty() const { return m_args.empty(); }

private:
    std::span<const TraceArg> m_args;
};

struct TraceTrack {
    TrackId id = 0, parent = 0;
    std::string name;
    int rank = 0;                 // its position among the tracks of its parent
    bool childrenByName = false;  // sorts its tracks by name instead of rank
    bool counter = false;
    std::string unit;  // of a counter
    std::string description;
};

class TraceSink {
public:
    virtual ~TraceSink() = default;
    virtual Status start(const std::string& title) = 0;
    // Declares a track before its first event.
    virtual Status track(const TraceTrack& track) = 0;
    // `flow`: an arrow that begins at this slice; 0: none. Its end is not before its beginning.
    virtual Status begin(TrackId track, int64_t ns, std::string_view name, TraceArgs args = {},
                         uint64_t flow = 0) = 0;
    virtual Status end(TrackId track, int64_t ns) = 0;
    // `flow`: an arrow that ends here; 0: none.
    virtual Status instant(TrackId track, int64_t ns, std::string_view name, TraceArgs args = {},
                           uint64_t flow = 0) = 0;
    virtual Status counter(TrackId track, int64_t ns, double value) = 0;
    virtual Status finish() = 0;
};

}  // namespace colibri
