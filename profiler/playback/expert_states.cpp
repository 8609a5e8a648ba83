// SPDX-License-Identifier: Apache-2.0
#include "profiler/playback/expert_states.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "engine/base/format.h"

namespace colibri {
namespace {

constexpr double kLongestRead = 5;       // seconds; a read that takes longer is not drawn as such
constexpr int64_t kReadsInFlight = 512;  // rows after a time that can be reads in flight
constexpr double kRecordedHeatHalfLife = 5;  // seconds, as in Metrics
constexpr double kHeatSeconds = 4 * kRecordedHeatHalfLife;
constexpr int64_t kHeatRows = 1024;                 // rows of layer steps that are read at most
constexpr size_t kEntryHead = 13, kExpertSize = 3;  // bytes of routing; see session-file.md

// A read that ended, or an eviction.
struct Change {
    double t;
    int64_t cell;
    bool resident;
};

void setBit(std::vector<uint64_t>* bits, int64_t cell, bool on) {
    const uint64_t bit = uint64_t(1) << (cell & 63);
    uint64_t& word = (*bits)[size_t(cell >> 6)];
    word = on ? word | bit : word & ~bit;
}

// A cursor over the changes of one table, in order of its rows.
class Changes {
public:
    Status open(const SessionDb& db, const PlaybackFacts& facts, bool loads) {
        m_facts = &facts;
        m_loads = loads;
        COLIBRI_TRY(
            m_rows.prepare(db, loads ? "SELECT t, layer, expert, failed FROM loads ORDER BY rowid"
                                     : "SELECT t, layer, expert FROM evictions ORDER BY rowid"));
        return next();
    }
    bool ended() const { return m_ended; }
    const Change& current() const { return m_change; }
    Status next() {
        while (m_rows.next()) {
            if (m_loads && m_rows.integer(3) != 0) continue;
            const int64_t cell = m_facts->cellOf(m_rows.integer(1), m_rows.integer(2));
            if (cell < 0 || !std::isfinite(m_rows.real(0))) continue;
            m_change = {m_rows.real(0), cell, m_loads};
            return {};
        }
        m_ended = true;
        return m_rows.status();
    }

private:
    const PlaybackFacts* m_facts = nullptr;
    SessionRows m_rows;
    Change m_change{};
    bool m_loads = false, m_ended = false;
};

std::string clock(double seconds) {
    return formatClock(seconds);
}

}  // namespace

// One pass over both tables.
struct ExpertCheckpoints::Pass {
    ExpertCheckpoints* const out;
    std::vector<uint64_t> resident;
    std::vector<int32_t> firstSeen;  // checkpoints that were made before the cell's first change
    std::vector<int64_t> fromStart;  // cells whose first change is an eviction
    int64_t sinceLast = 0, rows = 0;
    double lastTime = 0;

    Pass(ExpertCheckpoints* to, size_t cells)
        : out(to), resident((cells + 63) / 64), firstSeen(cells, -1) {
        keep(-std::numeric_limits<double>::infinity());
    }
    void keep(double t) {
        out->m_checkpoints.push_back({t, resident});
        sinceLast = 0;
    }
    void add(const Change& change) {
        if (sinceLast >= kRows) keep(lastTime);
        int32_t& seen = firstSeen[size_t(change.cell)];
        if (seen < 0) {
            seen = int32_t(out->m_checkpoints.size());
            if (!change.resident) fromStart.push_back(change.cell);
        }
        setBit(&resident, change.cell, change.resident);
        lastTime = std::max(lastTime, change.t);
        ++sinceLast;
        ++rows;
    }
    // An expert that was evicted without a read before was in memory from the start of the rows.
    void finish() {
        for (const int64_t cell : fromStart)
            for (int32_t i = 0; i < firstSeen[size_t(cell)]; ++i)
                setBit(&out->m_checkpoints[size_t(i)].resident, cell, true);
    }
};

Result<std::shared_ptr<const ExpertCheckpoints>> ExpertCheckpoints::make(const SessionDb& db,
                                                                         const PlaybackFacts& facts,
                                                                         const ProgressFn& progress,
                                                                         const CancelFlag* cancel) {
    auto out = std::make_shared<ExpertCheckpoints>();
    if (facts.cells() == 0) return std::shared_ptr<const ExpertCheckpoints>(out);
    if (!db.has("evictions", "t")) {
        out->m_unknown = "this session of an earlier program has no evictions";
        return std::shared_ptr<const ExpertCheckpoints>(out);
    }
    Pass pass(out.get(), facts.cells());
    Changes loads, evictions;
    COLIBRI_TRY(loads.open(db, facts, true));
    COLIBRI_TRY(evictions.open(db, facts, false));
    const uint64_t total = uint64_t(db.rows("loads") + db.rows("evictions"));
    while (!loads.ended() || !evictions.ended()) {
        const bool load =
            evictions.ended() || (!loads.ended() && loads.current().t < evictions.current().t);
        Changes& next = load ? loads : evictions;
        pass.add(next.current());
        COLIBRI_TRY(next.next());
        if (pass.rows % 65536 != 0) continue;
        if (cancel && cancel->load()) return Status(Code::Cancelled, "Reading was cancelled");
        if (progress) progress({"Reading experts", uint64_t(pass.rows), total, "rows"});
    }
    pass.finish();
    return std::shared_ptr<const ExpertCheckpoints>(out);
}

const ExpertCheckpoints::Checkpoint& ExpertCheckpoints::before(double t) const {
    const auto it =
        std::upper_bound(m_checkpoints.begin(), m_checkpoints.end(), t,
                         [](double at, const Checkpoint& checkpoint) { return at < checkpoint.t; });
    return *(it - 1);
}

Status ExpertStates::open(const SessionDb& db, const PlaybackFacts& facts) {
    m_facts = &facts;
    if (facts.cells() == 0) return {};
    m_hasEvictions = db.has("evictions", "t");
    COLIBRI_TRY(m_loadTimes.open(db, "loads"));
    COLIBRI_TRY(m_evictionTimes.open(db, "evictions"));
    COLIBRI_TRY(m_stepTimes.open(db, "layer_steps"));
    COLIBRI_TRY(m_loads.prepare(db,
                                "SELECT t, layer, expert, failed, queue_ns + read_ns FROM loads "
                                "WHERE rowid >= ? AND rowid <= ? ORDER BY rowid"));
    if (m_hasEvictions)
        COLIBRI_TRY(m_evictions.prepare(db,
                                        "SELECT t, layer, expert FROM evictions "
                                        "WHERE rowid >= ? AND rowid <= ? ORDER BY rowid"));
    m_hasSteps = db.has("layer_steps", "routing");
    if (!m_hasSteps) return {};
    return m_step.prepare(db, "SELECT t, layer, routing FROM layer_steps WHERE rowid = ?");
}

void ExpertStates::setCheckpoints(std::shared_ptr<const ExpertCheckpoints> checkpoints) {
    m_checkpoints = std::move(checkpoints);
}

Status ExpertStates::fill(double t, Snapshot* snapshot) {
    snapshot->residency.clear();
    snapshot->heat.clear();
    snapshot->residencyUnknown.clear();
    m_rowsRead = 0;
    if (m_facts->cells() == 0) return {};
    if (m_failed)
        snapshot->residencyUnknown = "the reads of experts in the session file are damaged";
    else if (!m_checkpoints)
        snapshot->residencyUnknown = "the session is being read";
    else if (!m_checkpoints->unknown().empty())
        snapshot->residencyUnknown = m_checkpoints->unknown();
    else if (t < m_facts->detailFrom)
        snapshot->residencyUnknown =
            "reads before " + clock(m_facts->detailFrom) + " were removed to keep the file small";
    if (!snapshot->residencyUnknown.empty()) return {};
    COLIBRI_TRY(readStates(t, &snapshot->residency));
    return readHeat(t, &snapshot->heat);
}

Status ExpertStates::readStates(double t, std::vector<Residency>* states) {
    const ExpertCheckpoints::Checkpoint& from = m_checkpoints->before(t);
    std::vector<Change> changes;
    const auto after = [&](double at) { return at > from.t && at <= t; };
    const double begin = std::isfinite(from.t) ? from.t - kRowDisorder : -1;
    m_evictions.rewind();
    m_evictions.bind(m_evictionTimes.firstAt(begin))
        .bind(m_evictionTimes.firstAt(t + kRowDisorder) - 1);
    while (!m_evictionTimes.empty() && m_evictions.next()) {
        const int64_t cell = m_facts->cellOf(m_evictions.integer(1), m_evictions.integer(2));
        ++m_rowsRead;
        if (cell >= 0 && after(m_evictions.real(0)))
            changes.push_back({m_evictions.real(0), cell, false});
    }
    COLIBRI_TRY(m_evictions.status());
    std::vector<int64_t> reading;
    m_loads.rewind();
    const int64_t last = m_loadTimes.firstAt(t + kRowDisorder) - 1;
    m_loads.bind(m_loadTimes.firstAt(begin)).bind(last + kReadsInFlight);
    while (!m_loadTimes.empty() && m_loads.next()) {
        const double at = m_loads.real(0);
        ++m_rowsRead;
        const int64_t cell = m_facts->cellOf(m_loads.integer(1), m_loads.integer(2));
        if (at > t + kLongestRead) break;
        if (cell < 0) continue;
        if (at > t && at - double(m_loads.integer(4)) / 1e9 <= t) reading.push_back(cell);
        if (m_loads.integer(3) == 0 && after(at)) changes.push_back({at, cell, true});
    }
    COLIBRI_TRY(m_loads.status());
    // An eviction makes room for the read that ends after it.
    std::stable_sort(changes.begin(), changes.end(),
                     [](const Change& a, const Change& b) { return a.t < b.t; });
    states->assign(m_facts->cells(), Residency::OnDisk);
    for (size_t cell = 0; cell < states->size(); ++cell)
        if (from.resident[cell >> 6] >> (cell & 63) & 1) (*states)[cell] = Residency::Resident;
    for (const Change& change : changes)
        (*states)[size_t(change.cell)] = change.resident ? Residency::Resident : Residency::OnDisk;
    for (const int64_t cell : reading)
        if ((*states)[size_t(cell)] == Residency::OnDisk)
            (*states)[size_t(cell)] = Residency::Reading;
    return {};
}

// From evenly spread rows if there are more than kHeatRows, so that the time it takes is bounded.
Status ExpertStates::readHeat(double t, std::vector<float>* heat) {
    heat->assign(m_facts->cells(), 0);
    if (m_stepTimes.empty() || !m_hasSteps) return {};
    const int64_t begin = m_stepTimes.firstAt(t - kHeatSeconds);
    const int64_t end = m_stepTimes.firstAt(std::nextafter(t, INFINITY));
    int64_t stride = std::max<int64_t>(1, (end - begin + kHeatRows - 1) / kHeatRows);
    // The rows of a step are its layers in order: a stride that shares a factor with their number
    // would meet only some of them.
    while (stride > 1 && std::gcd(stride, int64_t(m_facts->moeLayers.size())) > 1) ++stride;
    for (int64_t row = begin; row < end; row += stride) {
        m_step.rewind();
        m_step.bind(row);
        if (!m_step.next()) continue;
        ++m_rowsRead;
        const float use =
            float(double(stride) * std::exp2(-(t - m_step.real(0)) / kRecordedHeatHalfLife));
        std::span<const uint8_t> blob = m_step.blob(2);
        while (blob.size() >= kEntryHead) {
            const size_t count = blob[kEntryHead - 1];
            blob = blob.subspan(kEntryHead);
            for (size_t i = 0; i < count && blob.size() >= kExpertSize; ++i) {
                const int64_t cell =
                    m_facts->cellOf(m_step.integer(1), int64_t(blob[0]) | int64_t(blob[1]) << 8);
                if (cell >= 0) (*heat)[size_t(cell)] += use;
                blob = blob.subspan(kExpertSize);
            }
        }
    }
    COLIBRI_TRY(m_step.status());
    // Relative to the hottest expert, or to one full use, as in a live session.
    const float hottest = std::max(1.0f, *std::max_element(heat->begin(), heat->end()));
    for (float& value : *heat) value /= hottest;
    return {};
}

}  // namespace colibri
