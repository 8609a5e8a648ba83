// SPDX-License-Identifier: Apache-2.0
#include "profiler/session/routing_reader.h"

#include <algorithm>
#include <charconv>

#include "engine/base/format.h"
#include "profiler/session/session_open.h"
#include "profiler/session/session_reader.h"
#include "profiler/session/sqlite.h"

namespace colibri {
namespace {

constexpr int64_t kMostExperts = 1 << 16;  // ids have 16 bits
constexpr int64_t kMostLayers = 1 << 12;
constexpr size_t kRowHead = 8 + 4 + 1, kExpertBytes = 3;
constexpr int kFirstBit = 1;

int64_t numberIn(const std::map<std::string, std::string>& meta, const char* key) {
    int64_t value = 0;
    if (const auto it = meta.find(key); it != meta.end()) {
        const std::string& text = it->second;
        std::from_chars(text.data(), text.data() + text.size(), value);
    }
    return value;
}

uint64_t duration(const SqliteStatement& row, int column) {
    return uint64_t(std::max<int64_t>(0, row.integer(column)));
}

// The model's shape, and that there is routing to read.
Status readShape(sqlite3* db, RoutingFacts& facts) {
    const std::string where = "session file " + facts.path;
    facts.experts = numberIn(facts.meta, "experts");
    facts.topK = numberIn(facts.meta, "top_k");
    if (facts.experts == 0)
        return {Code::Unsupported,
                where + ": its model is dense, so it has no experts and no expert cache",
                "Record a session of a Mixture-of-Experts model"};
    COLIBRI_TRY(eachRow(db, facts.path, "SELECT DISTINCT layer FROM layer_steps ORDER BY layer",
                        [&](const SqliteStatement& row) {
                            facts.moeLayers.push_back(row.integer(0));
                            return Status();
                        }));
    if (facts.moeLayers.empty())
        return {Code::BadInput, where + " has no routing: no token was computed while it recorded",
                "Record a session with some prompts, e.g. colibri generate DIR --session FILE"};
    if (facts.experts < 0 || facts.experts > kMostExperts || facts.topK < 1 ||
        facts.topK > facts.experts || int64_t(facts.moeLayers.size()) > kMostLayers)
        return {Code::BadInput, where + " is damaged: it names " + formatCount(facts.experts) +
                                    " experts and " + formatCount(facts.topK) + " per token"};
    return {};
}

Status readTimes(sqlite3* db, RoutingFacts& facts) {
    COLIBRI_TRY(eachRow(db, facts.path,
                        "SELECT t, gap_ns, stall_ns, preempted_ns FROM tokens ORDER BY t",
                        [&](const SqliteStatement& row) {
                            facts.tokens.push_back({row.real(0), duration(row, 1), duration(row, 2),
                                                    duration(row, 3)});
                            return Status();
                        }));
    COLIBRI_TRY(eachRow(db, facts.path, "SELECT name, effective, t <= 0 FROM knobs ORDER BY t",
                        [&](const SqliteStatement& row) {
                            const std::string name = row.text(0);
                            const bool ofCache =
                                name == "expert_cache_size" || name == "cache_policy";
                            if (row.integer(2)) facts.knobs[name] = row.text(1);
                            facts.cacheChanges += !row.integer(2) && ofCache;
                            return Status();
                        }));
    COLIBRI_TRY(eachRow(db, facts.path,
                        "SELECT count(*), avg(read_ns), avg(need_ns) FROM loads WHERE failed = 0 "
                        "AND reason = 'demand'",
                        [&](const SqliteStatement& row) {
                            facts.demandReads = row.integer(0);
                            if (facts.demandReads == 0) return Status();
                            facts.meanReadNs = row.real(1);
                            facts.meanNeedNs = row.real(2);
                            return Status();
                        }));
    return eachRow(db, facts.path,
                   "SELECT t, layer, expert FROM loads WHERE failed = 0 AND reason = 'warm_start' "
                   "ORDER BY t",
                   [&](const SqliteStatement& row) {
                       const auto& layers = facts.moeLayers;
                       const auto it =
                           std::lower_bound(layers.begin(), layers.end(), row.integer(1));
                       const int64_t expert = row.integer(2);
                       if (it != layers.end() && *it == row.integer(1) && expert >= 0 &&
                           expert < facts.experts)
                           facts.preloaded.push_back({row.real(0), it - layers.begin(), expert});
                       return Status();
                   });
}

uint64_t littleEndian(std::span<const uint8_t> bytes) {
    uint64_t value = 0;
    for (size_t i = bytes.size(); i-- > 0;) value = value << 8 | bytes[i];
    return value;
}

// Decodes a routing blob; false if it is damaged. resources/help/session-file.md has the format.
bool decode(std::span<const uint8_t> blob, int64_t experts, RoutedLayer& out) {
    out.lookups.clear();
    out.rows.clear();
    out.experts.clear();
    while (!blob.empty()) {
        if (blob.size() < kRowHead) return false;
        RoutedLayer::Row row;
        row.request = littleEndian(blob.first(8));
        row.position = uint32_t(littleEndian(blob.subspan(8, 4)));
        const size_t count = blob[12];
        blob = blob.subspan(kRowHead);
        if (blob.size() < count * kExpertBytes) return false;
        row.begin = out.experts.size();
        for (size_t i = 0; i < count; ++i) {
            const auto expert = uint16_t(littleEndian(blob.subspan(i * kExpertBytes, 2)));
            if (expert >= experts) return false;
            out.experts.push_back(expert);
            if (blob[i * kExpertBytes + 2] & kFirstBit) out.lookups.push_back(expert);
        }
        row.end = out.experts.size();
        blob = blob.subspan(count * kExpertBytes);
        // A row with more than 16 experts takes several entries.
        if (!out.rows.empty() && out.rows.back().request == row.request &&
            out.rows.back().position == row.position) {
            out.rows.back().end = row.end;
        } else {
            out.rows.push_back(row);
        }
    }
    return true;
}

}  // namespace

Result<RoutingFacts> readRoutingFacts(const std::filesystem::path& path) {
    const Result<SessionSummary> summary = readSessionSummary(path);
    if (!summary) return summary.status();
    RoutingFacts facts;
    facts.path = path.string();
    facts.meta = summary->meta;
    facts.lookups = summary->lookups;
    facts.hits = summary->hits;
    const Result<OpenSession> db = openForReading(facts.path);
    if (!db) return db.status();
    COLIBRI_TRY(readShape(db->db.get(), facts));
    COLIBRI_TRY(readTimes(db->db.get(), facts));
    COLIBRI_TRY(eachRow(db->db.get(), facts.path, "SELECT sum(prefetched) FROM layer_steps",
                        [&](const SqliteStatement& row) {
                            facts.prefetched = row.integer(0);
                            return Status();
                        }));
    return facts;
}

Status readRouting(const RoutingFacts& facts, const std::function<void(const RoutedLayer&)>& take,
                   const ProgressFn& progress, const CancelFlag* cancel) {
    const Result<OpenSession> db = openForReading(facts.path);
    if (!db) return db.status();
    RoutedLayer routed;
    int64_t last = INT64_MAX, lookups = 0, rows = 0;
    return eachRow(
        db->db.get(), facts.path,
        "SELECT rowid, t, layer, prefill, wait_ns, hits, prefetched, routing, compute_ns "
        "FROM layer_steps "
        "ORDER BY rowid",
        [&](const SqliteStatement& row) {
            const auto& layers = facts.moeLayers;
            const auto it = std::lower_bound(layers.begin(), layers.end(), row.integer(2));
            if (it == layers.end() || *it != row.integer(2) ||
                !decode(row.blob(7), facts.experts, routed))
                return Status(Code::BadInput,
                              "session file " + facts.path + ": the routing in row " +
                                  std::to_string(row.integer(0)) +
                                  " of the table layer_steps is damaged",
                              "Record the session again");
            routed.t = row.real(1);
            routed.moeLayer = it - layers.begin();
            routed.newStep = routed.moeLayer <= last;
            last = routed.moeLayer;
            routed.prefill = row.integer(3) != 0;
            routed.waitNs = duration(row, 4);
            routed.computeNs = duration(row, 8);
            routed.hits = row.integer(5);
            routed.prefetched = row.integer(6);
            take(routed);
            lookups += int64_t(routed.lookups.size());
            if (++rows % 1024 != 0) return Status();
            if (progress)
                progress(
                    {"Reading routing", uint64_t(lookups), uint64_t(facts.lookups), "lookups"});
            if (cancel && cancel->load()) return Status(Code::Cancelled, "stopped");
            return Status();
        });
}

}  // namespace colibri
