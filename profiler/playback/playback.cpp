// SPDX-License-Identifier: Apache-2.0
#include "profiler/playback/playback.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "profiler/metrics/metrics.h"

namespace colibri {
namespace {

constexpr double kUnknownFigure = std::numeric_limits<double>::quiet_NaN();
constexpr double kReach = 1;  // seconds, how old the value of a series may be to count as current

}  // namespace

Result<std::unique_ptr<Playback>> Playback::open(const std::filesystem::path& path) {
    auto db = SessionDb::open(path, Totals::None);
    if (!db) return db.status();
    auto out = std::unique_ptr<Playback>(new Playback);
    out->m_db = std::move(*db);
    out->m_facts = std::make_shared<const PlaybackFacts>(readPlaybackFacts(out->m_db));
    out->m_index = makeQuickIndex(out->m_db);
    // Without them the map has a reason; the rest can be shown.
    (void)out->m_experts.open(out->m_db, *out->m_facts);
    out->m_window.columns = 0;
    return out;
}

void Playback::setIndex(std::shared_ptr<const PlaybackIndex> index) {
    m_index = std::move(index);
    m_experts.setCheckpoints(m_index->experts);
    if (m_index->complete && !m_index->experts) m_experts.setFailed();
    m_window.columns = 0;
}

void Playback::updateSeries(const PlotWindow& window) {
    if (window == m_window) return;
    m_window = window;
    ++m_detail;
    for (size_t i = 0; i < m_series.size(); ++i)
        m_series[i] = m_index->series.series(SeriesId(i)).window(window);
    m_itlCount = m_index->itlCount.window(window);
    // The file has no reason for a missing value of the GPU.
    for (const SeriesId id : {SeriesId::SmUtilisation, SeriesId::GpuDram, SeriesId::GpuBusy})
        if (m_index->series.series(id).empty())
            m_series[size_t(id)].unavailable = "no GPU was recorded";
}

// The figures at a time at which a request ran or ended, from the series. At its end the newest
// sample may have no value any more.
Figures Playback::figuresAt(double t, bool ended) const {
    const auto value = [&](SeriesId id) {
        const RecordedSeries& series = m_index->series.series(id);
        return ended ? series.lastBefore(t, kReach) : series.at(t, kReach);
    };
    Figures f{};
    f.decodeTokS = value(SeriesId::TokensPerSecond);
    f.itlP50Ms = value(SeriesId::ItlP50);
    f.itlP99Ms = value(SeriesId::ItlP99);
    f.hitRate = value(SeriesId::HitRate);
    f.prefetchHitRate = value(SeriesId::PrefetchHitRate);
    f.expertLoadP50Ms = value(SeriesId::ExpertLoadP50);
    f.expertLoadP99Ms = value(SeriesId::ExpertLoadP99);
    f.readBytesPerS = value(SeriesId::ReadRate) * 1e9;
    f.stallShare = value(SeriesId::StallShare);
    f.recordingCost = kUnknownFigure;
    f.allTokS = kUnknownFigure;
    if (!m_index->complete) return f;
    f.itlCount = uint64_t(m_index->itl.countBetween(t - kWindowSeconds, t));
    const int64_t tokens = m_index->itl.countBetween(t - kRateWindowSeconds, t);
    if (tokens > 0) f.allTokS = double(tokens) / kRateWindowSeconds;
    return f;
}

std::shared_ptr<const Snapshot> Playback::at(double t, const PlotWindow& window) {
    t = std::clamp(t, 0.0, m_facts->duration);
    updateSeries(window);
    auto snapshot = std::make_shared<Snapshot>();
    snapshot->generation = ++m_generation;
    snapshot->recorded = true;
    snapshot->detail = m_detail;
    snapshot->now = t;
    snapshot->series = m_series;
    snapshot->itlCount = m_itlCount;
    snapshot->markers = m_facts->markers;
    snapshot->running = m_facts->runningAt(t);
    snapshot->turns = m_facts->turnsAt(t);
    snapshot->lastActivity = m_facts->duration;
    // Between requests the figures keep the values of the end of the last one.
    const double ran = m_facts->lastRanBefore(t);
    snapshot->figuresAt = std::isfinite(ran) ? ran : 0;
    snapshot->figures = figuresAt(std::isfinite(ran) ? ran : -1, ran < t);
    const double read = m_index->series.series(SeriesId::ReadRate).at(t, kReach);
    snapshot->readNowBytesPerS = std::isfinite(read) ? read * 1e9 : 0;
    snapshot->knobs = m_facts->knobsAt(t);
    snapshot->knobsAt = t;
    if (const Status status = m_experts.fill(t, snapshot.get()); !status.ok()) {
        snapshot->residency.clear();
        snapshot->residencyUnknown = status.message();
    }
    snapshot->store.slotCount =
        snapshot->knob(KnobId::ExpertCacheSize).effective * int64_t(m_facts->moeLayers.size());
    snapshot->store.slotsUsed =
        std::count(snapshot->residency.begin(), snapshot->residency.end(), Residency::Resident);
    snapshot->sessionFile = m_db.name();
    snapshot->sessionBytes = m_db.summary().bytes;
    return snapshot;
}

Result<RecordedTurn> Playback::turn(const RecordedRequest& request) {
    if (!m_text) {
        auto text = PlaybackText::open(m_db, *m_facts);
        if (!text) return text.status();
        m_text = std::move(*text);
    }
    return m_text->read(request);
}

}  // namespace colibri
