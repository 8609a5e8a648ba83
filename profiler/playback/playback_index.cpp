// SPDX-License-Identifier: Apache-2.0
#include "profiler/playback/playback_index.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <string>
#include <string_view>

#include "profiler/metrics/metrics.h"

namespace colibri {
namespace {

constexpr int64_t kQuickSamples = 1500;  // evenly spread, of a large file
constexpr int64_t kProgressRows = 65536;

Status cancelledStatus() {
    return {Code::Cancelled, "Reading was cancelled"};
}

// The series with a label. Rows of a sample have the same order as the rows of the one before, so
// the next series is usually the right one.
class SeriesLabels {
public:
    SeriesId find(std::string_view label) {
        for (int i = 0; i < kSeriesCount; ++i) {
            const int candidate = (m_next + i) % kSeriesCount;
            if (label != metricRow(SeriesId(candidate)).label) continue;
            m_next = candidate + 1;
            return SeriesId(candidate);
        }
        return SeriesId::Count;  // of a later version
    }

private:
    int m_next = 0;
};

// Reports progress and looks for a cancellation now and then.
struct Pace {
    const ProgressFn& progress;
    const CancelFlag* cancel;
    const char* stage;
    uint64_t total, done = 0;

    bool cancelled() {
        if (++done % kProgressRows != 0) return false;
        if (progress) progress({stage, done, total, "rows"});
        return cancel && cancel->load();
    }
};

Status readSamples(const SessionDb& db, RecordedSet* series, Pace pace) {
    SessionRows rows;
    COLIBRI_TRY(rows.prepare(db, "SELECT t, series, value FROM samples ORDER BY rowid"));
    SeriesLabels labels;
    while (rows.next()) {
        series->add(rows.real(0), labels.find(rows.text(1)), rows.real(2));
        if (pace.cancelled()) return cancelledStatus();
    }
    return rows.status();
}

// One sample at each of kQuickSamples evenly spread positions.
Status readSomeSamples(const SessionDb& db, RecordedSet* series) {
    TimeRows times;
    COLIBRI_TRY(times.open(db, "samples"));
    if (times.count() <= kQuickRows) {
        const ProgressFn none;
        return readSamples(db, series, {none, nullptr, "", 0});
    }
    SessionRows rows;
    COLIBRI_TRY(rows.prepare(db,
                             "SELECT t, series, value FROM samples WHERE rowid >= ? "
                             "ORDER BY rowid LIMIT 64"));
    SeriesLabels labels;
    for (int64_t i = 0; i < kQuickSamples; ++i) {
        rows.rewind();
        rows.bind(times.first() + (times.count() - 1) * i / (kQuickSamples - 1));
        double begun = NAN, sample = NAN;
        series->skip();
        // The rows of a sample have the same time. The first ones belong to a sample whose
        // beginning was not read.
        while (rows.next()) {
            const double t = rows.real(0);
            if (std::isnan(begun)) begun = t;
            if (t == begun) continue;
            if (std::isnan(sample)) sample = t;
            if (t != sample) break;
            series->add(t, labels.find(rows.text(1)), rows.real(2));
        }
        COLIBRI_TRY(rows.status());
    }
    return {};
}

Status readTokens(const SessionDb& db, PooledValues* itl, Pace pace) {
    SessionRows rows;
    COLIBRI_TRY(rows.prepare(db, "SELECT t, gap_ns FROM tokens ORDER BY rowid"));
    while (rows.next()) {
        if (rows.integer(1) > 0) itl->add(rows.real(0), uint64_t(rows.integer(1)));
        if (pace.cancelled()) return cancelledStatus();
    }
    return rows.status();
}

Status readLoads(const SessionDb& db, PooledValues* loads, Pace pace) {
    SessionRows rows;
    COLIBRI_TRY(rows.prepare(db, "SELECT t, need_ns, failed FROM loads ORDER BY rowid"));
    while (rows.next()) {
        if (rows.integer(1) > 0 && rows.integer(2) == 0)
            loads->add(rows.real(0), uint64_t(rows.integer(1)));
        if (pace.cancelled()) return cancelledStatus();
    }
    return rows.status();
}

// The number of gaps in the window of each value of ITL P99.
RecordedSeries countsOf(const RecordedSeries& percentile, const PooledValues& itl) {
    RecordedSeries counts;
    const SeriesData data = percentile.all();
    for (size_t i = 0; i < data.t.size(); ++i) {
        if (std::isnan(data.y[i])) {
            counts.add(data.t[i], data.y[i]);
            continue;
        }
        const double t = data.t[i];
        counts.add(t, double(itl.countBetween(t - kWindowSeconds, t)));
    }
    return counts;
}

}  // namespace

std::shared_ptr<const PlaybackIndex> makeQuickIndex(const SessionDb& db) {
    auto index = std::make_shared<PlaybackIndex>();
    if (Status status = readSomeSamples(db, &index->series); !status.ok())
        index->problems.push_back(std::move(status));
    return index;
}

Result<std::shared_ptr<const PlaybackIndex>> makeFullIndex(const SessionDb& db,
                                                           const PlaybackFacts& facts,
                                                           const ProgressFn& progress,
                                                           const CancelFlag* cancel) {
    auto index = std::make_shared<PlaybackIndex>();
    index->complete = true;
    index->itl = PooledValues(db.rows("tokens"));
    index->expertLoads = PooledValues(db.rows("loads"));
    const auto pace = [&](const char* stage, const char* table) {
        return Pace{progress, cancel, stage, uint64_t(db.rows(table))};
    };
    auto experts = Result<std::shared_ptr<const ExpertCheckpoints>>(Status(Code::Cancelled, ""));
    const auto keep = [&](Status status) {
        if (!status.ok() && status.code() != Code::Cancelled) index->problems.push_back(status);
        return status.code() != Code::Cancelled;
    };
    if (!keep(readSamples(db, &index->series, pace("Reading series", "samples"))) ||
        !keep(readTokens(db, &index->itl, pace("Reading tokens", "tokens"))) ||
        !keep(readLoads(db, &index->expertLoads, pace("Reading expert reads", "loads"))) ||
        !keep((experts = ExpertCheckpoints::make(db, facts, progress, cancel)).status()))
        return cancelledStatus();
    index->series.finish();
    index->itlCount = countsOf(index->series.series(SeriesId::ItlP99), index->itl);
    index->itlCount.finish();
    if (experts) index->experts = *experts;
    return std::shared_ptr<const PlaybackIndex>(index);
}

}  // namespace colibri
