// SPDX-License-Identifier: Apache-2.0
#include "profiler/replay/replay.h"

#include <atomic>
#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <thread>
#include <vector>

#include "engine/base/format.h"
#include "engine/runtime/run_request.h"

namespace colibri {
namespace {

using Clock = RequestRun::Clock;

constexpr std::chrono::milliseconds kLookEvery{50};  // for a cancellation
// A turn lasts at least so long and so many tokens: what the other side has done meanwhile to the
// caches of the processor must not matter.
constexpr uint64_t kTurnNs = 250'000'000;
constexpr int kTurnTokens = 4;

// Repeats the changes that were made when so many tokens existed.
void applyChanges(const ReplaySide& side, const ReplayedRequest& recorded, size_t tokens) {
    for (const ReplayedRequest::Change& change : recorded.changes)
        if (change.tokens == tokens && !side.fixed[size_t(change.knob)])
            side.engine.setKnob(change.knob, change.requested);
}

// One request on one side. It runs to its end, or in turns: then the engine's own thread pauses the
// engine at the end of a turn.
class SideRun {
public:
    SideRun(const ReplaySide& side, const ReplayedRequest& recorded, std::atomic<uint64_t>& tokens,
            bool inTurns)
        : m_side(side),
          m_recorded(recorded),
          m_tokens(tokens),
          m_inTurns(inTurns),
          m_run(side.engine) {}
    ~SideRun() {  // m_run then cancels the request
        m_run.locked([this] {
            m_inTurns = false;
            m_pause.reset();
        });
    }

    Status start() {
        Request request;
        request.prompt = m_recorded.prompt;
        request.forced = m_recorded.reply;
        request.maxTokens = int(m_recorded.reply.size());
        request.ignoreEos = true;
        applyChanges(m_side, m_recorded, 0);
        RequestObserver observer;
        observer.onToken = [this](const GeneratedToken& token) {
            ++m_tokens;
            applyChanges(m_side, m_recorded, token.index + 1);
            m_run.locked([this] { endTurn(); });
            return true;
        };
        m_turnBeganNs = monotonicNs();
        m_started = true;
        return m_run.start(std::move(request), std::move(observer));
    }

    // Starts or resumes it. `look` is called while the turn lasts; its error ends the replay.
    Status turn(const std::function<Status()>& look) {
        if (m_started) {
            m_run.locked([this] {
                m_turnTokens = 0;
                m_turnBeganNs = monotonicNs();
                m_pause.reset();
            });
        } else {
            COLIBRI_TRY(start());
        }
        const auto paused = [this] { return m_pause.has_value(); };
        while (!m_run.wait(Clock::now() + kLookEvery, paused)) COLIBRI_TRY(look());
        return look();
    }
    bool started() const { return m_started; }
    bool ended() { return m_run.wait(Clock::now()); }
    RequestResult& result() { return m_run.finish(); }

private:
    void endTurn() {
        ++m_turnTokens;
        if (m_inTurns && !m_pause && m_turnTokens >= kTurnTokens &&
            monotonicNs() - m_turnBeganNs >= kTurnNs)
            m_pause.emplace(m_side.engine);
    }

    const ReplaySide& m_side;
    const ReplayedRequest& m_recorded;
    std::atomic<uint64_t>& m_tokens;
    bool m_started = false;
    // Under the lock of m_run.
    bool m_inTurns;
    int m_turnTokens = 0;
    uint64_t m_turnBeganNs = 0;

    RequestRun m_run;
    std::optional<EnginePause> m_pause;  // ends before m_run
};

class Replay {
public:
    Replay(const RecordedRequests& recorded, size_t sides, const ProgressFn& progress,
           const CancelFlag* cancel)
        : m_recorded(recorded),
          m_total(uint64_t(recorded.tokens()) * sides),
          m_progress(progress),
          m_cancel(cancel) {}

    // The order of the sides alternates from turn to turn.
    Status oneByOne(std::span<const ReplaySide> sides) {
        size_t turns = 0;
        for (size_t i = 0; i < m_recorded.requests.size(); ++i) {
            std::vector<std::unique_ptr<SideRun>> runs;
            for (const ReplaySide& side : sides)
                runs.push_back(std::make_unique<SideRun>(side, m_recorded.requests[i], m_done,
                                                         sides.size() > 1));
            for (bool left = true; left; ++turns) {
                left = false;
                for (size_t k = 0; k < runs.size(); ++k) {
                    SideRun& run = *runs[turns % 2 == 0 ? k : runs.size() - 1 - k];
                    if (run.started() && run.ended()) continue;
                    COLIBRI_TRY(run.turn([this] { return look(); }));
                    left = left || !run.ended();
                }
            }
            for (const auto& run : runs) COLIBRI_TRY(check(run->result(), i));
        }
        return {};
    }

    Status asRecorded(const ReplaySide& side) {
        std::vector<std::unique_ptr<SideRun>> runs;
        const Clock::time_point begin = Clock::now();
        const double first = m_recorded.requests.front().arrivedS;
        for (const ReplayedRequest& request : m_recorded.requests) {
            const auto after = std::chrono::duration<double>(request.arrivedS - first);
            const auto due = begin + std::chrono::duration_cast<Clock::duration>(after);
            COLIBRI_TRY(look());
            while (Clock::now() < due) {
                std::this_thread::sleep_until(std::min(due, Clock::now() + kLookEvery));
                COLIBRI_TRY(look());
            }
            runs.push_back(std::make_unique<SideRun>(side, request, m_done, false));
            COLIBRI_TRY(runs.back()->start());
        }
        for (size_t i = 0; i < runs.size(); ++i) {
            while (!runs[i]->ended()) {
                std::this_thread::sleep_for(kLookEvery);
                COLIBRI_TRY(look());
            }
            COLIBRI_TRY(check(runs[i]->result(), i));
        }
        return {};
    }

private:
    Status look() const {
        if (m_progress) m_progress({"Replaying", m_done.load(), m_total, "tokens"});
        if (m_cancel && m_cancel->load()) return {Code::Cancelled, "the replay was cancelled"};
        return {};
    }

    Status check(const RequestResult& result, size_t i) const {
        const std::string name = "request " + formatCount(int64_t(i) + 1);
        if (!result.status.ok())
            return {result.status.code(), name + ": " + result.status.message(),
                    result.status.hint()};
        if (result.stop == StopReason::ContextFull)
            return {Code::InvalidArgument, name + " does not fit into the context",
                    "Choose a larger --context-length"};
        if (result.tokens != m_recorded.requests[i].reply)
            return {Code::Internal, name + " gave other tokens than the recorded ones", ""};
        return {};
    }

    const RecordedRequests& m_recorded;
    const uint64_t m_total;
    const ProgressFn& m_progress;
    const CancelFlag* const m_cancel;
    std::atomic<uint64_t> m_done = 0;  // tokens; counted by the engines' threads
};

}  // namespace

Status replayRequests(const RecordedRequests& recorded, std::span<const ReplaySide> sides,
                      ReplayArrivals arrivals, const ProgressFn& progress,
                      const CancelFlag* cancel) {
    Replay replay(recorded, sides.size(), progress, cancel);
    if (arrivals == ReplayArrivals::OneByOne) return replay.oneByOne(sides);
    for (const ReplaySide& side : sides) COLIBRI_TRY(replay.asRecorded(side));
    return {};
}

}  // namespace colibri
