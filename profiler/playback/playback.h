// SPDX-License-Identifier: Apache-2.0
// Plays a session file: for any time of it the snapshot that a live session would have published
// then, so that plots, figures and maps need not know where a snapshot comes from. Series and
// markers are those of the whole session, as the time axis shows all of it.
//
// Opening reads what the first plot needs, in well under a second also for many hours. The rest is
// read by makeFullIndex() on another thread, with its own connection to the file. The file is never
// changed.
#pragma once

#include <filesystem>
#include <memory>

#include "profiler/playback/playback_index.h"
#include "profiler/playback/playback_text.h"

namespace colibri {

// Not thread-safe: one thread at a time. Facts and indexes do not change and may be shared.
class Playback {
public:
    // Errors: those of readSessionSummary().
    static Result<std::unique_ptr<Playback>> open(const std::filesystem::path& path);

    const SessionSummary& summary() const { return m_db.summary(); }
    const std::shared_ptr<const PlaybackFacts>& facts() const { return m_facts; }
    const std::shared_ptr<const PlaybackIndex>& index() const { return m_index; }
    void setIndex(std::shared_ptr<const PlaybackIndex> index);

    // The state at time t, with series for this range of the plots. It reads a bounded number of
    // rows. A part that cannot be read is missing, with the reason.
    std::shared_ptr<const Snapshot> at(double t, const PlotWindow& window);
    // Rows of the file that the newest at() read.
    int64_t rowsRead() const { return m_experts.rowsRead(); }
    // The text and figures of a request. Errors: those of reading.
    Result<RecordedTurn> turn(const RecordedRequest& request);

private:
    Playback() = default;
    void updateSeries(const PlotWindow& window);
    Figures figuresAt(double t, bool ended) const;

    SessionDb m_db;
    std::shared_ptr<const PlaybackFacts> m_facts;
    std::shared_ptr<const PlaybackIndex> m_index;
    ExpertStates m_experts;
    std::unique_ptr<PlaybackText> m_text;  // from the first turn on
    // The series of the newest window, which most snapshots share.
    PlotWindow m_window;
    std::array<SeriesData, kSeriesCount> m_series;
    SeriesData m_itlCount;
    uint64_t m_detail = 0, m_generation = 0;
};

}  // namespace colibri
