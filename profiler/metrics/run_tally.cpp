// SPDX-License-Identifier: Apache-2.0
#include "profiler/metrics/run_tally.h"

#include <algorithm>
#include <numeric>

namespace colibri {
namespace {

constexpr uint64_t kFewestGaps = 16;

}  // namespace

void RunTally::add(const RequestResult& result) {
    const std::lock_guard lock(m_mutex);
    for (const double ms : result.gapsMs) m_gaps.add(uint64_t(ms * 1e6));
    const double gaps = std::accumulate(result.gapsMs.begin(), result.gapsMs.end(), 0.0) / 1000;
    m_gapSeconds += gaps;
    m_tokens += result.gapsMs.size() + 1;
    m_seconds += gaps + std::max(0.0, result.ttftMs - result.queueMs) / 1000;
    m_experts.lookups += result.experts.lookups;
    m_experts.hits += result.experts.hits;
    m_experts.bytesRead += result.experts.bytesRead;
    m_experts.stallNs += result.experts.stallNs;
}

void RunTally::restart() {
    const std::lock_guard lock(m_mutex);
    m_gaps.clear();
    m_gapSeconds = m_seconds = 0;
    m_tokens = 0;
    m_experts = {};
}

std::optional<RunFigures> RunTally::result() const {
    const std::lock_guard lock(m_mutex);
    if (m_gaps.count() < kFewestGaps) return std::nullopt;
    RunFigures run;
    run.decodeTokS = double(m_gaps.count()) / m_gapSeconds;
    run.itlP99Ms = m_gaps.quantile(0.99) / 1e6;
    run.gaps = m_gaps.count();
    run.bytesPerToken = double(m_experts.bytesRead) / double(m_tokens);
    if (m_experts.lookups) run.missShare = 1 - double(m_experts.hits) / double(m_experts.lookups);
    if (m_seconds > 0) run.stallShare = std::min(1.0, double(m_experts.stallNs) / 1e9 / m_seconds);
    return run;
}

}  // namespace colibri
