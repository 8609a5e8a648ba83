// SPDX-License-Identifier: GPL-3.0-or-later
// The server's counters, and /metrics in the Prometheus text format. Any thread.
#pragma once

#include <chrono>
#include <deque>
#include <map>
#include <mutex>
#include <string>

#include "engine/runtime/engine.h"
#include "profiler/metrics/histogram.h"

namespace colibri::serve {

// A finished request, for a log.
struct ServedRequest {
    std::chrono::system_clock::time_point ended;
    int status = 200;  // HTTP status; other than 200: rejected
    uint32_t promptTokens = 0, generated = 0;
    double ttftMs = 0, tokS = 0;  // NaN: no token, or only one
    StopReason stop = StopReason::Eos;
};

struct ApiStats {
    static constexpr size_t kRecent = 50;
    std::deque<ServedRequest> recent;                     // the newest last
    std::map<int, uint64_t> responses;                    // by HTTP status
    uint64_t started = 0;                                 // requests that reached the engine
    uint64_t completions = 0, cancelled = 0, failed = 0;  // finished ones, by outcome
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
    void remember(const ServedRequest& request);  // REQUIRES: m_mutex is held

    mutable std::mutex m_mutex;
    ApiStats m_stats;
};

std::string prometheusText(const ApiStats& stats, const Engine& engine, int connections);

}  // namespace colibri::serve
