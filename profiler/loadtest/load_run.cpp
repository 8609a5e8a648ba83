// SPDX-License-Identifier: Apache-2.0
#include "profiler/loadtest/load_run.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <mutex>
#include <thread>

#include "engine/runtime/sampler.h"
#include "engine/telemetry/telemetry.h"

namespace colibri {

namespace {

constexpr int64_t kSenders = 256;  // most requests in flight in an open loop
constexpr uint64_t kSliceNs = 50'000'000;

class LoadRun {
public:
    LoadRun(LoadTarget& target, const std::vector<LoadPrompt>& prompts, const LoadOptions& options,
            const ProgressFn& progress, const CancelFlag& cancel)
        : m_target(target),
          m_prompts(prompts),
          m_options(options),
          m_progress(progress),
          m_cancel(cancel),
          m_startNs(monotonicNs()) {}

    LoadReport run() {
        int64_t senders = m_options.rate > 0 ? kSenders : m_options.users;
        if (m_options.requests > 0) senders = std::min(senders, m_options.requests);
        {
            std::vector<std::jthread> threads;  // also joined if starting one of them fails
            for (int64_t i = 0; i < senders; ++i) threads.emplace_back([this] { send(); });
        }
        std::sort(m_report.samples.begin(), m_report.samples.end(),
                  [](const LoadSample& a, const LoadSample& b) { return a.index < b.index; });
        return std::move(m_report);
    }

private:
    void send() {
        LoadSample sample;
        while (takeNext(sample)) {
            if (!sleepUntil(sample.arrivalS)) return;
            sample.sentS = secondsSince(monotonicNs());
            const LoadPrompt& prompt = m_prompts[size_t(sample.index) % m_prompts.size()];
            LoadReply reply;
            try {
                reply = m_target.send(prompt, m_cancel);
            } catch (const std::bad_alloc&) {
                reply.error = "out of memory";
            }
            add(sample, reply);
        }
    }

    // Takes the next request in order of arrival. False: there is none.
    bool takeNext(LoadSample& sample) {
        std::lock_guard lock(m_mutex);
        if (m_cancel.load() || (m_options.requests > 0 && m_next == m_options.requests)) {
            return false;
        }
        sample = {};
        if (m_options.rate > 0) {
            const double u = uniformDraw(m_options.seed, uint64_t(m_next));
            m_arrivalS += -std::log1p(-u) / m_options.rate;
            sample.arrivalS = m_arrivalS;
        } else {
            sample.arrivalS = secondsSince(monotonicNs());
        }
        if (m_options.durationS > 0 && sample.arrivalS > m_options.durationS) return false;
        sample.index = m_next++;
        return true;
    }

    bool sleepUntil(double second) const {
        const uint64_t until = m_startNs + uint64_t(second * 1e9);
        for (uint64_t now = monotonicNs(); now < until; now = monotonicNs()) {
            if (m_cancel.load()) return false;
            std::this_thread::sleep_for(std::chrono::nanoseconds(std::min(until - now, kSliceNs)));
        }
        return true;
    }

    void add(LoadSample sample, const LoadReply& reply) {
        const uint64_t now = monotonicNs();
        sample.endS = secondsSince(now);
        sample.firstS = reply.timesNs.empty() ? std::nan("") : secondsSince(reply.timesNs[0]);
        sample.promptTokens = reply.promptTokens;
        sample.tokens = reply.tokens;
        sample.error = reply.error;
        std::lock_guard lock(m_mutex);
        LoadReport& r = m_report;
        r.durationS = std::max(r.durationS, sample.endS);
        if (reply.error.empty()) {
            ++r.completed;
            addKnown(r.promptTokens, reply.promptTokens);
            addKnown(r.tokens, reply.tokens);
            r.pieces += reply.timesNs.size();
            r.endToEnd.add(since(sample.arrivalS, sample.endS));
            if (!reply.timesNs.empty()) r.ttft.add(since(sample.arrivalS, sample.firstS));
            for (size_t i = 1; i < reply.timesNs.size(); ++i) {
                r.itl.add(reply.timesNs[i] - reply.timesNs[i - 1]);
            }
        } else {
            ++r.errors[reply.error];
        }
        r.samples.push_back(std::move(sample));
        if (m_progress) {
            m_progress({"Load", r.samples.size(), uint64_t(m_options.requests), "requests"});
        }
    }

    static void addKnown(std::optional<uint64_t>& sum, const std::optional<uint32_t>& count) {
        if (sum && count) {
            *sum += *count;
        } else {
            sum.reset();
        }
    }
    double secondsSince(uint64_t ns) const { return double(ns - m_startNs) * 1e-9; }
    static uint64_t since(double from, double to) {
        return uint64_t(std::max(0.0, to - from) * 1e9);
    }

    LoadTarget& m_target;
    const std::vector<LoadPrompt>& m_prompts;
    const LoadOptions m_options;
    const ProgressFn& m_progress;
    const CancelFlag& m_cancel;
    const uint64_t m_startNs;
    std::mutex m_mutex;  // guards the following
    int64_t m_next = 0;
    double m_arrivalS = 0;
    LoadReport m_report;
};

}  // namespace

Result<LoadReport> runLoad(LoadTarget& target, const std::vector<LoadPrompt>& prompts,
                           const LoadOptions& options, const ProgressFn& progress,
                           const CancelFlag& cancel) {
    const auto bad = [](const char* what, const char* hint) {
        return Status(Code::InvalidArgument, what, hint);
    };
    if (prompts.empty()) return bad("there are no prompts", "Give at least one");
    if (!(options.rate >= 0) || !std::isfinite(options.rate)) {
        return bad("the rate is not a number of requests per second", "Use a value above 0");
    }
    if (options.rate == 0 && options.users < 1) return bad("no users", "Use at least 1");
    if (options.requests < 0 || !(options.durationS >= 0) ||
        (options.requests == 0 && options.durationS == 0)) {
        return bad("the load test has no end", "Give a number of requests or a duration");
    }
    return LoadRun(target, prompts, options, progress, cancel).run();
}

}  // namespace colibri
