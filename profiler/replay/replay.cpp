// SPDX-License-Identifier: Apache-2.0
#include "profiler/replay/replay.h"

#include <atomic>
#include <chrono>
#include <memory>
#include <thread>
#include <vector>

#include "engine/base/format.h"
#include "engine/runtime/run_request.h"

namespace colibri {
namespace {

using Clock = RequestRun::Clock;

constexpr std::chrono::milliseconds kLookEvery{50};  // for a cancellation

class Replay {
public:
    Replay(const RecordedRequests& recorded, size_t sides, const ProgressFn& progress,
           const CancelFlag* cancel)
        : m_recorded(recorded),
          m_total(uint64_t(recorded.tokens()) * sides),
          m_progress(progress),
          m_cancel(cancel) {}

    Status oneByOne(std::span<const ReplaySide> sides) {
        for (size_t i = 0; i < m_recorded.requests.size(); ++i) {
            for (size_t k = 0; k < sides.size(); ++k) {
                COLIBRI_TRY(look());
                const size_t side = i % 2 == 0 ? k : sides.size() - 1 - k;
                RequestRun run(sides[side].engine);
                COLIBRI_TRY(start(run, sides[side], m_recorded.requests[i]));
                while (!run.wait(Clock::now() + kLookEvery)) COLIBRI_TRY(look());
                COLIBRI_TRY(check(run, i));
            }
        }
        return {};
    }

    Status asRecorded(const ReplaySide& side) {
        std::vector<std::unique_ptr<RequestRun>> runs;
        const Clock::time_point begin = Clock::now();
        const double first = m_recorded.requests.front().arrivedS;
        for (const RecordedRequest& request : m_recorded.requests) {
            const auto after = std::chrono::duration<double>(request.arrivedS - first);
            const auto due = begin + std::chrono::duration_cast<Clock::duration>(after);
            COLIBRI_TRY(look());
            while (Clock::now() < due) {
                std::this_thread::sleep_until(std::min(due, Clock::now() + kLookEvery));
                COLIBRI_TRY(look());
            }
            runs.push_back(std::make_unique<RequestRun>(side.engine));
            COLIBRI_TRY(start(*runs.back(), side, request));
        }
        for (size_t i = 0; i < runs.size(); ++i) {
            while (!runs[i]->wait(Clock::now() + kLookEvery)) COLIBRI_TRY(look());
            COLIBRI_TRY(check(*runs[i], i));
        }
        return {};
    }

private:
    Status start(RequestRun& run, const ReplaySide& side, const RecordedRequest& recorded) {
        Request request;
        request.prompt = recorded.prompt;
        request.forced = recorded.reply;
        request.maxTokens = int(recorded.reply.size());
        request.ignoreEos = true;
        apply(side, recorded, 0);
        RequestObserver observer;
        observer.onToken = [this, &side, &recorded](const GeneratedToken& token) {
            ++m_done;
            apply(side, recorded, token.index + 1);
            return true;
        };
        return run.start(std::move(request), std::move(observer));
    }

    // Repeats the changes that were made when so many tokens existed.
    static void apply(const ReplaySide& side, const RecordedRequest& recorded, size_t tokens) {
        for (const RecordedRequest::Change& change : recorded.changes)
            if (change.tokens == tokens && !side.fixed[size_t(change.knob)])
                side.engine.setKnob(change.knob, change.requested);
    }

    Status look() const {
        if (m_progress) m_progress({"Replaying", m_done.load(), m_total, "tokens"});
        if (m_cancel && m_cancel->load()) return {Code::Cancelled, "the replay was cancelled"};
        return {};
    }

    Status check(RequestRun& run, size_t i) const {
        const RequestResult& result = run.finish();
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
