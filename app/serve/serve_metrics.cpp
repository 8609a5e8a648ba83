// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/serve/serve_metrics.h"

#include <array>
#include <charconv>
#include <cmath>

namespace colibri::serve {

namespace {

constexpr double kTtftBounds[] = {0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60};
constexpr double kItlBounds[] = {0.001, 0.0025, 0.005, 0.01, 0.025, 0.05,
                                 0.1,   0.25,   0.5,   1,    2.5,   5};

std::string number(double value) {
    std::array<char, 32> text;
    const char* end =
        std::to_chars(text.data(), text.data() + text.size(), value, std::chars_format::general, 9)
            .ptr;
    return std::string(text.data(), size_t(end - text.data()));
}

class Page {
public:
    void head(const char* name, const char* type, const char* help) {
        m_text += std::string("# HELP colibri_") + name + " " + help + "\n# TYPE colibri_" + name +
                  " " + type + "\n";
    }
    void line(const std::string& name, double value) {
        m_text += "colibri_" + name + " " + number(value) + "\n";
    }
    void counter(const char* name, const char* help, double value) {
        head(name, "counter", help);
        line(name, value);
    }
    void gauge(const char* name, const char* help, double value) {
        head(name, "gauge", help);
        line(name, value);
    }
    void histogram(const std::string& name, const char* help, const Histogram& h,
                   std::span<const double> boundsS) {
        head(name.c_str(), "histogram", help);
        const std::vector<Histogram::Bin> bins = h.bins();
        size_t next = 0;
        uint64_t below = 0;
        for (const double bound : boundsS) {
            while (next < bins.size() && bins[next].highNs <= bound * 1e9) {
                below += bins[next++].count;
            }
            line(name + "_bucket{le=\"" + number(bound) + "\"}", double(below));
        }
        line(name + "_bucket{le=\"+Inf\"}", double(h.count()));
        line(name + "_sum", h.count() ? h.mean() * double(h.count()) * 1e-9 : 0);
        line(name + "_count", double(h.count()));
    }
    std::string take() { return std::move(m_text); }

private:
    std::string m_text;
};

}  // namespace

void ServeMetrics::addResponse(int status) {
    std::lock_guard lock(m_mutex);
    ++m_stats.responses[status];
    if (status >= 400) remember({.status = status, .ttftMs = NAN, .tokS = NAN});
}

void ServeMetrics::remember(const ServedRequest& request) {
    m_stats.recent.push_back(request);
    m_stats.recent.back().ended = std::chrono::system_clock::now();
    if (m_stats.recent.size() > ApiStats::kRecent) m_stats.recent.pop_front();
}

void ServeMetrics::addStart() {
    std::lock_guard lock(m_mutex);
    ++m_stats.started;
}

void ServeMetrics::addResult(const RequestResult& r) {
    std::lock_guard lock(m_mutex);
    const bool cancelled = r.stop == StopReason::Cancelled;
    ++(!r.status.ok() ? m_stats.failed : cancelled ? m_stats.cancelled : m_stats.completions);
    m_stats.promptTokens += r.promptTokens;
    m_stats.cachedTokens += r.cachedTokens;
    m_stats.generatedTokens += r.tokens.size();
    m_stats.preemptedS += r.preemptedMs * 1e-3;
    if (!r.tokens.empty()) m_stats.ttft.add(uint64_t(r.ttftMs * 1e6));
    double ms = 0;
    for (const double gap : r.gapsMs) {
        m_stats.itl.add(uint64_t(gap * 1e6));
        ms += gap;
    }
    remember({.promptTokens = r.promptTokens,
              .generated = uint32_t(r.tokens.size()),
              .ttftMs = r.tokens.empty() ? NAN : r.ttftMs,
              .tokS = ms > 0 ? double(r.gapsMs.size()) / ms * 1000 : NAN,
              .stop = r.status.ok() ? r.stop : StopReason::Error});
}

ApiStats ServeMetrics::stats() const {
    std::lock_guard lock(m_mutex);
    return m_stats;
}

std::string prometheusText(const ApiStats& s, const Engine& engine, int connections) {
    Page page;
    page.head("http_responses_total", "counter", "Responses by HTTP status.");
    for (const auto& [status, count] : s.responses) {
        page.line("http_responses_total{code=\"" + std::to_string(status) + "\"}", double(count));
    }
    page.head("requests_total", "counter", "Requests that reached the engine, by outcome.");
    page.line("requests_total{end=\"completed\"}", double(s.completions));
    page.line("requests_total{end=\"cancelled\"}", double(s.cancelled));
    page.line("requests_total{end=\"failed\"}", double(s.failed));
    page.counter("prompt_tokens_total", "Prompt tokens of finished requests.",
                 double(s.promptTokens));
    page.counter("prompt_tokens_cached_total", "Prompt tokens found in the KV cache.",
                 double(s.cachedTokens));
    page.counter("generated_tokens_total", "Generated tokens of finished requests.",
                 double(s.generatedTokens));
    const BatchStats batch = engine.batchStats();
    page.gauge("queue_depth", "Requests that are waiting.", batch.queued);
    page.gauge("active_requests", "Requests in the batch.", batch.active);
    page.gauge("preempted_requests", "Preempted requests that are waiting to resume.",
               batch.preempted);
    page.gauge("connections", "Open connections.", connections);
    page.counter("steps_total", "Forward passes.", double(batch.steps));
    page.counter("step_requests_total",
                 "Sum of the requests of all forward passes; divided by steps_total "
                 "this is the mean batch.",
                 double(batch.requests));
    page.counter("step_rows_total", "Sum of the tokens of all forward passes.", double(batch.rows));
    const KvStats kv = engine.batchStats().kv;
    page.head("kv_blocks", "gauge", "Blocks of the KV cache by state.");
    page.line("kv_blocks{state=\"held\"}", double(kv.heldBlocks));
    page.line("kv_blocks{state=\"kept\"}", double(kv.keptBlocks));
    page.line("kv_blocks{state=\"free\"}", double(kv.blocks - kv.heldBlocks - kv.keptBlocks));
    page.counter("preemptions_total",
                 "Times a request was preempted to free KV blocks or a batch row.",
                 double(kv.preemptions));
    page.counter("recomputed_tokens_total", "Tokens computed again after a preemption.",
                 double(kv.recomputedTokens));
    page.counter("preempted_seconds_total",
                 "Time that finished requests spent preempted, until their next token.",
                 s.preemptedS);
    const StoreStats e = engine.store().stats();
    page.counter("expert_lookups_total", "Experts requested.", double(e.lookups));
    page.counter("expert_hits_total", "Experts found resident.", double(e.hits));
    page.counter("expert_misses_total", "Experts not found resident.", double(e.lookups - e.hits));
    page.counter("expert_read_bytes_total", "Bytes of experts read.", double(e.bytesRead));
    page.counter("stall_seconds_total", "Time compute waited for experts.",
                 double(e.stallNs) * 1e-9);
    page.counter("stall_memory_seconds_total",
                 "Part of the stall time spent on reads into memory not yet allocated.",
                 double(e.freshStallNs) * 1e-9);
    page.gauge("expert_slots", "Experts the cache may hold.", double(e.slotCount));
    page.gauge("expert_slots_used", "Slots that hold an expert.", double(e.slotsUsed));
    page.gauge("expert_slots_ready", "Free slots whose memory is prepared.", double(e.slotsReady));
    page.gauge("expert_slots_to_prepare", "Slots whose memory is not yet prepared.",
               double(e.slotsToPrepare));
    page.histogram("ttft_seconds", "Arrival to first token.", s.ttft, kTtftBounds);
    page.histogram("itl_seconds", "Gaps between the tokens of a request.", s.itl, kItlBounds);
    return page.take();
}

}  // namespace colibri::serve
