// SPDX-License-Identifier: Apache-2.0
#include "profiler/record/recording_cost.h"

#include <filesystem>
#include <string>
#include <vector>

#include "engine/base/machine.h"
#include "engine/base/temporary_folder.h"
#include "engine/runtime/run_request.h"
#include "engine/runtime/sampler.h"
#include "profiler/record/recorder.h"

namespace colibri {
namespace {

constexpr int kFewestCostTokens = 64;  // of all rounds

class CostMeasurement {
public:
    CostMeasurement(Engine& engine, const RecordingCostOptions& options, const CancelFlag* cancel)
        : m_engine(engine), m_options(options), m_cancel(cancel) {}
    ~CostMeasurement() { m_engine.telemetry().setEnabled(true); }

    Status prepare() {
        Result<TemporaryFolder> folder = TemporaryFolder::make("colibri-recording-cost");
        if (!folder) return folder.status();
        m_folder = std::move(*folder);
        return {};
    }

    Status round(int index) {
        std::vector<double> unmeasured;
        COLIBRI_TRY(without(index, unmeasured));
        if (index % 2 == 0) {
            COLIBRI_TRY(without(index, m_without));
            return with(index);
        }
        COLIBRI_TRY(with(index));
        return without(index, m_without);
    }

    RecordingCost result() const {
        RecordingCost out;
        out.itl = pairedDifference(m_without, m_with, meanOf);
        out.eventsPerSecond = double(m_events) / m_seconds;
        out.fileBytesPerSecond = double(m_fileBytes) / m_seconds;
        out.processorShare = m_processorSeconds / m_seconds;
        out.dropped = m_dropped;
        return out;
    }

private:
    Status run(int index, std::vector<double>& gaps) {
        const auto vocab = double(m_engine.info().config.vocabSize);
        const uint64_t seed = m_options.seed * 1000003 + uint64_t(index);
        Request request;
        for (int i = 0; i <= m_options.tokens; ++i) {
            std::vector<int32_t>& to = i == 0 ? request.prompt : request.forced;
            to.push_back(int32_t(uniformDraw(seed, uint64_t(i)) * vocab));
        }
        request.maxTokens = m_options.tokens;
        request.ignoreEos = true;
        const Result<RequestResult> result = runRequest(m_engine, std::move(request), {}, m_cancel);
        if (!result) return result.status();
        COLIBRI_TRY(result->status);
        if (result->stop == StopReason::Cancelled) return {Code::Cancelled, "stopped"};
        gaps.insert(gaps.end(), result->gapsMs.begin(), result->gapsMs.end());
        return {};
    }

    Status without(int index, std::vector<double>& gaps) {
        m_engine.telemetry().setEnabled(false);
        const Status status = run(index, gaps);
        m_engine.telemetry().setEnabled(true);
        return status;
    }

    Status with(int index) {
        const std::filesystem::path file = m_folder.path() / std::to_string(index);
        const uint64_t droppedBefore = m_engine.telemetry().dropped();
        auto recorder = Recorder::start(m_engine, {.sessionFile = file});
        if (!recorder) return recorder.status();
        const uint64_t begin = monotonicNs();
        COLIBRI_TRY(run(index, m_with));
        const double seconds = double(monotonicNs() - begin) * 1e-9;
        COLIBRI_TRY((*recorder)->finish());
        const std::shared_ptr<const Snapshot> last = (*recorder)->snapshot();
        m_seconds += seconds;
        m_events += last->eventsRecorded;
        m_processorSeconds += last->figures.recordingCost * last->now * logicalCpus();
        m_dropped += m_engine.telemetry().dropped() - droppedBefore;
        std::error_code ignored;
        m_fileBytes += int64_t(std::filesystem::file_size(file, ignored));
        std::filesystem::remove(file, ignored);
        return {};
    }

    Engine& m_engine;
    const RecordingCostOptions m_options;
    const CancelFlag* const m_cancel;
    TemporaryFolder m_folder;
    std::vector<double> m_without, m_with;  // gaps in ms, of the same tokens
    double m_seconds = 0, m_processorSeconds = 0;
    uint64_t m_events = 0, m_dropped = 0;
    int64_t m_fileBytes = 0;
};

}  // namespace

Result<RecordingCost> measureRecordingCost(Engine& engine, const RecordingCostOptions& options,
                                           const ProgressFn& progress, const CancelFlag* cancel) {
    if (options.tokens < 2 || options.tokens * options.rounds < kFewestCostTokens)
        return Status(
            Code::InvalidArgument,
            "too few tokens to measure the cost of recording: " +
                std::to_string(options.tokens * options.rounds),
            "Measure at least " + std::to_string(kFewestCostTokens) + " tokens in all rounds");
    CostMeasurement measurement(engine, options, cancel);
    COLIBRI_TRY(measurement.prepare());
    for (int i = 0; i < options.rounds; ++i) {
        if (progress)
            progress(
                {"With and without recording", uint64_t(i), uint64_t(options.rounds), "rounds"});
        COLIBRI_TRY(measurement.round(i));
    }
    return measurement.result();
}

}  // namespace colibri
