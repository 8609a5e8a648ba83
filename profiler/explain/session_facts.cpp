// SPDX-License-Identifier: Apache-2.0
#include "profiler/explain/session_facts.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <numeric>
#include <unordered_map>

#include "engine/base/format.h"
#include "profiler/session/routing_reader.h"

namespace colibri {
namespace {

double metaNumber(const SessionDb& db, const char* key) {
    const std::string text = db.meta(key);
    double value = 0;
    std::from_chars(text.data(), text.data() + text.size(), value);
    return value;
}

std::optional<int64_t> knobNumber(const KnobRow& row, std::string_view text) {
    for (size_t i = 0; i < row.choices.size(); ++i)
        if (text == row.choices[i]) return int64_t(i);
    int64_t value = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
    return value;
}

Status readKnobs(const SessionDb& db, const TimeRange& range, SessionFacts& facts) {
    SessionRows rows;
    COLIBRI_TRY(rows.prepare(db, "SELECT name, effective FROM knobs WHERE t <= ? ORDER BY rowid"));
    rows.bind(range.to);
    while (rows.next()) {
        const std::string name(rows.text(0));
        const KnobRow* row = findKnob(name);
        if (!row) continue;
        if (const auto value = knobNumber(*row, rows.text(1))) facts.knobs[name] = *value;
    }
    return rows.status();
}

Status readTokens(const SessionDb& db, const TimeRange& range, SessionFacts& facts) {
    SessionRows rows;
    COLIBRI_TRY(
        rows.prepare(db, "SELECT gap_ns FROM tokens WHERE gap_ns > 0 AND t BETWEEN ? AND ?"));
    rows.bind(range);
    while (rows.next()) facts.itl.add(uint64_t(rows.integer(0)));
    COLIBRI_TRY(rows.status());
    COLIBRI_TRY(rows.prepare(db,
                             "SELECT avg(requests), coalesce(sum(total_ns + since_last_ns), 0) "
                             "FROM steps WHERE prefill_rows = 0 AND t BETWEEN ? AND ?"));
    rows.bind(range);
    if (rows.next()) {
        facts.requests = rows.isNull(0) ? 0 : rows.real(0);
        facts.seconds = rows.real(1) / 1e9;
    }
    return rows.status();
}

Status readExperts(const SessionDb& db, const TimeRange& range, SessionFacts& facts) {
    SessionRows rows;
    COLIBRI_TRY(rows.prepare(db,
                             "SELECT coalesce(sum(lookups), 0), coalesce(sum(hits), 0), "
                             "coalesce(sum(prefetched), 0), count(DISTINCT layer) FROM layer_steps "
                             "WHERE t BETWEEN ? AND ?"));
    rows.bind(range);
    if (rows.next()) {
        facts.lookups = rows.integer(0);
        facts.hits = rows.integer(1);
        facts.prefetched = rows.integer(2);
        facts.moeLayers = rows.integer(3);
    }
    COLIBRI_TRY(rows.status());
    COLIBRI_TRY(rows.prepare(
        db,
        "SELECT coalesce(sum(issued), 0), coalesce(sum(useful), 0), coalesce(sum(late), 0), "
        "coalesce(sum(wasted), 0), coalesce(sum(cancelled), 0) FROM prefetches "
        "WHERE t BETWEEN ? AND ?"));
    rows.bind(range);
    if (rows.next())
        facts.prefetch = {rows.integer(0), rows.integer(1), rows.integer(2), rows.integer(3),
                          rows.integer(4)};
    return rows.status();
}

// Bytes by reason, and the time in which at least one read was on the disk: the union of the reads'
// intervals. They end at t, nearly in order, so it is enough to sort them by their begin.
Status readReads(const SessionDb& db, const TimeRange& range, SessionFacts& facts) {
    SessionRows rows;
    COLIBRI_TRY(rows.prepare(db,
                             "SELECT t, read_ns - link_ns, link_ns, bytes, reason = 'demand' "
                             "FROM loads WHERE failed = 0 AND t BETWEEN ? AND ? "
                             "ORDER BY t - read_ns / 1e9"));
    rows.bind(range);
    double until = -INFINITY;
    while (rows.next()) {
        const double end = rows.real(0) - rows.real(2) / 1e9, begin = end - rows.real(1) / 1e9;
        if (end > until) facts.diskBusySeconds += end - std::max(begin, until);
        until = std::max(until, end);
        const bool demand = rows.integer(4) != 0;
        facts.demandReads += demand;
        (demand ? facts.demandBytes : facts.prefetchBytes) += rows.real(3);
        if (!demand) facts.prefetchSeconds += end - begin;
    }
    return rows.status();
}

Status readRequests(const SessionDb& db, const TimeRange& range, SessionFacts& facts) {
    SessionRows rows;
    COLIBRI_TRY(rows.prepare(db,
                             "SELECT admitted - arrived, joined = 'timeout' FROM requests "
                             "WHERE admitted BETWEEN ? AND ?"));
    rows.bind(range);
    std::vector<double> queue;
    while (rows.next()) {
        queue.push_back(rows.real(0) * 1e3);
        facts.joinedByTimeout += rows.integer(1);
    }
    facts.admitted = int64_t(queue.size());
    if (!queue.empty()) {
        std::ranges::nth_element(queue, queue.begin() + std::ptrdiff_t(queue.size() / 2));
        facts.medianQueueMs = queue[queue.size() / 2];
    }
    return rows.status();
}

// Counts the uses of every expert, and how many a token shares with the token before it.
class SpreadCounter {
public:
    SpreadCounter(int64_t layers, int64_t experts)
        : m_experts(size_t(experts)), m_uses(size_t(layers * experts)), m_last(size_t(layers)) {}

    void add(const RoutedLayer& layer) {
        if (layer.prefill) return;
        uint64_t* uses = &m_uses[size_t(layer.moeLayer) * m_experts];
        for (const RoutedLayer::Row& row : layer.rows) {
            const std::vector<uint16_t> now(layer.experts.begin() + std::ptrdiff_t(row.begin),
                                            layer.experts.begin() + std::ptrdiff_t(row.end));
            std::vector<uint16_t>& before = m_last[size_t(layer.moeLayer)][row.request];
            for (const uint16_t expert : now) {
                if (expert < m_experts) ++uses[expert];
                m_shared += std::ranges::count(before, expert);
            }
            if (!before.empty()) m_compared += int64_t(now.size());
            before = now;
        }
    }

    std::optional<SessionFacts::Spread> spread() const {
        SessionFacts::Spread out;
        int64_t layers = 0;
        for (size_t at = 0; at + m_experts <= m_uses.size(); at += m_experts) {
            std::vector<uint64_t> uses(m_uses.begin() + std::ptrdiff_t(at),
                                       m_uses.begin() + std::ptrdiff_t(at + m_experts));
            const auto sum = double(std::accumulate(uses.begin(), uses.end(), uint64_t(0)));
            if (sum <= 0) continue;
            ++layers;
            std::ranges::sort(uses, std::greater());
            const size_t quarter = std::max<size_t>(1, m_experts / 4);
            for (size_t i = 0; i < quarter; ++i) out.hottestQuarter += double(uses[i]) / sum;
            for (const uint64_t n : uses)
                if (n > 0) out.entropy -= double(n) / sum * std::log(double(n) / sum);
        }
        if (layers == 0 || m_experts < 2) return std::nullopt;
        out.hottestQuarter /= double(layers);
        out.entropy /= double(layers) * std::log(double(m_experts));
        out.overlap = m_compared > 0 ? double(m_shared) / double(m_compared) : std::nan("");
        return out;
    }

private:
    const size_t m_experts;
    std::vector<uint64_t> m_uses;                                             // (layers * E)
    std::vector<std::unordered_map<uint64_t, std::vector<uint16_t>>> m_last;  // by request
    int64_t m_shared = 0, m_compared = 0;
};

Status readSpread(const SessionDb& db, const TimeRange& range, SessionFacts& facts,
                  const ProgressFn& progress, const CancelFlag* cancel) {
    auto routing = readRoutingFacts(db.summary().path);
    if (!routing) return {};  // a dense model, or no routing: nothing to say
    SpreadCounter counter(int64_t(routing->moeLayers.size()), routing->experts);
    COLIBRI_TRY(readRouting(
        *routing,
        [&](const RoutedLayer& layer) {
            if (layer.t >= range.from && layer.t <= range.to) counter.add(layer);
        },
        progress, cancel));
    facts.experts = routing->experts;
    facts.topK = routing->topK;
    facts.moeLayers = int64_t(routing->moeLayers.size());
    facts.spread = counter.spread();
    return {};
}

}  // namespace

int64_t SessionFacts::knob(KnobId id) const {
    const KnobRow& row = knobRow(id);
    const auto it = knobs.find(row.name);
    return it == knobs.end() ? row.defaultValue : it->second;
}

double SessionFacts::tokensPerSecond() const {
    return causes.gapNs > 0 ? double(causes.tokens) * 1e9 / causes.gapNs : std::nan("");
}

Result<SessionFacts> readSessionFacts(const SessionDb& db, const TimeRange& range,
                                      const ProgressFn& progress, const CancelFlag* cancel) {
    SessionFacts facts;
    auto causes = causesOf(db, range, cancel);
    if (!causes) return causes.status();
    facts.causes = std::move(*causes);
    COLIBRI_TRY(readKnobs(db, range, facts));
    COLIBRI_TRY(readTokens(db, range, facts));
    COLIBRI_TRY(readExperts(db, range, facts));
    COLIBRI_TRY(readReads(db, range, facts));
    COLIBRI_TRY(readRequests(db, range, facts));
    COLIBRI_TRY(readSpread(db, range, facts, progress, cancel));
    facts.diskBytesPerSecond = metaNumber(db, "disk_bytes_per_s");
    facts.memoryBytesPerSecond = metaNumber(db, "memory_bytes_per_s");
    facts.kernelBytesPerSecond = metaNumber(db, "kernel_bytes_per_s");
    facts.ratesMeasuredAt = int64_t(metaNumber(db, "rates_measured_at"));
    facts.bytesPerToken = metaNumber(db, "bytes_per_token");
    facts.cores = int64_t(metaNumber(db, "cores"));
    facts.numaNodes = int64_t(metaNumber(db, "numa_nodes"));
    facts.remoteMemoryShare = metaNumber(db, "remote_memory_share");
    if (const double from = metaNumber(db, "thinned_detail_before"); from > range.from)
        facts.note = "To bound the file's size, reads and layer steps before " + formatClock(from) +
                     " were removed; their causes and rules rest on the rest";
    return facts;
}

}  // namespace colibri
