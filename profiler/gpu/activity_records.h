// SPDX-License-Identifier: Apache-2.0
// Turns CUPTI's activity records into spans, and joins each to the work of the engine that launched
// it. Pure: no threads, no library.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "profiler/gpu/cupti_types.h"
#include "profiler/gpu/gpu_span.h"

namespace colibri {

// Buffers complete in any order, so the record that names the work may arrive after the span, and
// spans are not in the order of time. One thread at a time.
class ActivityRecords {
public:
    // A span waits for its work during `waitRounds` rounds.
    explicit ActivityRecords(int waitRounds = 4) : m_waitRounds(waitRounds) {}

    // `offsetNs`: from CUPTI's clock to CLOCK_MONOTONIC. Records of other kinds are ignored.
    void add(const cupti::ActivityRecord& record, int64_t offsetNs);
    // Ends a round: appends the spans whose work is known, or has been waited for, by time.
    // `last`: appends all.
    void endRound(std::vector<GpuSpan>& out, bool last = false);

    uint64_t untimed() const { return m_untimed; }  // records without times; they give no span

private:
    struct Waiting {
        GpuSpan span;
        int round;
    };
    struct Work {
        uint64_t id;
        int round;
    };
    template <typename Record>
    void addSpan(const Record& record, GpuSpanKind kind, uint64_t bytes, int64_t offsetNs);
    std::string_view kernelName(const char* symbol);
    void forgetOldWork();

    const int m_waitRounds;
    int m_round = 0;
    uint64_t m_untimed = 0;
    std::vector<Waiting> m_waiting;
    std::unordered_map<uint32_t, Work> m_work;             // by correlation
    std::unordered_map<std::string, std::string> m_names;  // by symbol
};

}  // namespace colibri
