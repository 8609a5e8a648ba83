// SPDX-License-Identifier: Apache-2.0
// The best possible replacement, as a bound for every policy without prefetching.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "profiler/simulate/routing_trace.h"

namespace colibri {

// MIN (Belady, 1966): evicts the key whose next use is furthest in the future, which needs the
// whole trace in advance. Follows the store's rule for requests: all experts of a request are
// looked up first and stay resident until it ends. If a request has more experts than there are
// slots, any of them may stay; this can only overestimate the hits.
class Belady {
public:
    explicit Belady(const RoutingTrace& trace);  // must outlive this; finds all next uses

    // Replays the trace; returns the number of misses and passes those of each request to `take`.
    // O(n log n) for n lookups.
    uint64_t replay(int64_t slotCount,
                    const std::function<void(size_t request, int64_t misses)>& take = {}) const;

private:
    const RoutingTrace& m_trace;
    std::vector<uint32_t> m_nextUse;   // by lookup: the next request of its key; kNever: none
    std::vector<uint32_t> m_firstUse;  // by key
};

}  // namespace colibri
