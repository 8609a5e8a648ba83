// SPDX-License-Identifier: GPL-3.0-or-later
// What the server counts, and /metrics in Prometheus' text format. Any thread.
#pragma once

#include <map>
#include <mutex>
#include <string>

#include "engine/run/engine.h"
#include "profiler/record/histogram.h"

namespace colibri::serve {

struct ApiStats {
    std::map<int, uint64_t> responses;                    // by HTTP status
    uint64_t started = 0;                                 // requests that reached the engine
    uint64_t completions = 0, cancelled = 0, failed = 0;  // those of them that have ended
    uint64_t promptTokens = 0, cachedTokens = 0, generatedTokens = 0;
    double preemptedS = 0;
    Histogram ttft, itl;  // ns

    uint64_t inFlight() const { return started - completions - cancelled - failed; }
};

class ServeMetrics {
public:
    void addResponse(int status);
    void addStart();
    void addResult(const RequestResult& result);
    ApiStats stats() const;

private:
    mutable std::mutex m_mutex;
    ApiStats m_stats;
};

std::string prometheusText(const ApiStats& stats, const Engine& engine, int connections);

}  // namespace colibri::serve
