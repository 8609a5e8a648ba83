// SPDX-License-Identifier: Apache-2.0
// Finds the reads for which a layer step waited: the reads of experts that the step missed at first
// touch and that ended during the step. Both are streamed side by side, since their rows are almost
// in the order of time; memory holds the reads around the current step.
#pragma once

#include <cstdint>
#include <span>
#include <unordered_map>
#include <vector>

#include "profiler/session/session_db.h"

namespace colibri {

class ReadMatcher {
public:
    struct Match {
        uint64_t read;  // row id in the table of reads
        int64_t expert, endNs;
    };

    Status prepare(const SessionDb& db, const TimeRange& range);
    // The reads for which the step waited, by their ends. Steps come in the order of their rows.
    // `routing`: the blob of the step.
    Result<std::vector<Match>> match(int64_t layer, int64_t beginNs, int64_t endNs,
                                     std::span<const uint8_t> routing);

private:
    Status advance(int64_t untilNs);

    SessionRows m_rows;
    bool m_more = true;
    int64_t m_newestNs = 0;                       // end of the newest read so far
    std::unordered_map<uint64_t, Match> m_reads;  // the newest read of each layer and expert
};

}  // namespace colibri
