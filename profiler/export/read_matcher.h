// SPDX-License-Identifier: Apache-2.0
// Finds the reads for which a layer step waited: the reads of experts that the step missed at first
// touch and that the session assigns to the step. Sessions of schema 1 assign none: then those that
// ended during the step. Memory holds the reads around the current step.
#pragma once

#include <cstdint>
#include <span>
#include <unordered_map>
#include <vector>

namespace colibri {

class ReadMatcher {
public:
    struct Match {
        uint64_t read;  // row id in the table of reads
        int64_t expert, endNs;
        int64_t step;  // 0: not known
    };
    struct Step {
        int64_t layer, beginNs, endNs;
        int64_t number;  // 0: not known
    };

    // A read for which a token waited. Before a step, add all reads that ended before its end.
    void add(int64_t layer, const Match& read);
    // The reads for which the step waited, by their ends. `routing`: the blob of the step.
    std::vector<Match> match(const Step& step, std::span<const uint8_t> routing);

private:
    std::unordered_map<uint64_t, Match> m_reads;  // the newest read of each layer and expert
};

}  // namespace colibri
