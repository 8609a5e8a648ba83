// SPDX-License-Identifier: Apache-2.0
#include "profiler/session/session_details.h"

#include <algorithm>

#include "profiler/session/session_open.h"

namespace colibri {
namespace {

bool hasTable(sqlite3* db, const std::string& path, const std::string& table) {
    SqliteStatement query;
    if (!query.prepare(db, "SELECT 1 FROM sqlite_master WHERE name = '" + table + "'", path).ok())
        return false;
    const auto row = query.step();
    return row.ok() && *row;
}

}  // namespace

Result<SessionDetails> readSessionDetails(const std::filesystem::path& path) {
    auto opened = openForReading(path);
    if (!opened) return opened.status();
    sqlite3* const handle = opened->db.get();
    const std::string name = path.string();
    SessionDetails details;
    COLIBRI_TRY(eachRow(handle, name,
                        "SELECT t, name, requested, effective, reason FROM knobs WHERE t <= 0",
                        [&](const SqliteStatement& row) {
                            details.atStart.push_back(
                                {row.real(0), row.text(1), row.text(2), row.text(3), row.text(4)});
                        }));
    COLIBRI_TRY(eachRow(handle, name, "SELECT t, kind, label FROM marks ORDER BY t",
                        [&](const SqliteStatement& row) {
                            details.marks.push_back({row.real(0), row.text(1), row.text(2)});
                        }));
    COLIBRI_TRY(eachRow(handle, name,
                        "SELECT coalesce(stop, ''), count(*), coalesce(sum(prompt_tokens), 0), "
                        "coalesce(sum(cached_tokens), 0) FROM requests GROUP BY 1",
                        [&](const SqliteStatement& row) {
                            details.stops[row.text(0)] = row.integer(1);
                            details.promptTokens += uint64_t(row.integer(2));
                            details.cachedTokens += uint64_t(row.integer(3));
                        }));
    COLIBRI_TRY(eachRow(handle, name,
                        "SELECT first_token - arrived FROM requests WHERE first_token > 0",
                        [&](const SqliteStatement& row) {
                            details.ttft.add(uint64_t(std::max(0.0, row.real(0)) * 1e9));
                        }));
    COLIBRI_TRY(
        eachRow(handle, name, "SELECT gap_ns FROM tokens WHERE gap_ns > 0",
                [&](const SqliteStatement& row) { details.itl.add(uint64_t(row.integer(0))); }));
    COLIBRI_TRY(eachRow(
        handle, name, "SELECT need_ns FROM loads WHERE need_ns > 0 AND failed = 0",
        [&](const SqliteStatement& row) { details.expertLoad.add(uint64_t(row.integer(0))); }));
    if (hasTable(handle, name, "histograms"))
        COLIBRI_TRY(eachRow(handle, name, "SELECT name, value_ns, count FROM histograms",
                            [&](const SqliteStatement& row) {
                                Histogram& of = row.text(0) == "tokens.gap_ns" ? details.itl
                                                                               : details.expertLoad;
                                of.add(uint64_t(row.integer(1)), uint64_t(row.integer(2)));
                            }));
    return details;
}

}  // namespace colibri
