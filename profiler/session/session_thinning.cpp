// SPDX-License-Identifier: Apache-2.0
#include "profiler/session/session_thinning.h"

#include <array>

namespace colibri {

const char* const kThinningSchemaSql = R"sql(
CREATE TABLE totals(name TEXT PRIMARY KEY, value INTEGER);
CREATE TABLE histograms(name TEXT, value_ns INTEGER, count INTEGER, PRIMARY KEY(name, value_ns));
)sql";

namespace {

constexpr int kPart = 50;        // of a table goes at a time: a short transaction
constexpr int64_t kLeast = 500;  // rows; a table with fewer stays as it is

// A table whose oldest rows can go. The columns to sum keep their totals, per value of `by`; the
// column of `histogram` keeps the distribution of the rows that `counted` selects.
struct ThinnedTable {
    const char* name;
    const char* sums;                 // "lookups hits": columns
    const char* by;                   // a text column, or nullptr
    bool tokens;                      // goes only when the detail alone is not enough
    const char* histogram = nullptr;  // a column of nanoseconds, or nullptr
    const char* counted = nullptr;
};
constexpr std::array<ThinnedTable, 9> kTables{{
    {"layer_steps", "rows router_ns wait_ns compute_ns lookups hits prefetched", nullptr, false},
    {"loads", "bytes queue_ns read_ns need_ns link_ns failed late", "reason", false, "need_ns",
     "need_ns > 0 AND failed = 0"},
    {"evictions", "resident_ns uses", nullptr, false},
    {"prefetches", "issued useful late wasted cancelled", "source", false},
    {"step_requests", "rows", nullptr, false},
    {"gpu_spans", "duration_ns bytes", "kind", false},
    {"steps",
     "rows prefill_rows total_ns since_last_ns attention_ns router_ns experts_ns dense_ns head_ns "
     "sample_ns stall_slot_ns stall_disk_ns stall_link_ns stall_memory_ns stall_prefetch_ns "
     "off_cpu_ns minor_faults major_faults",
     nullptr, true},
    {"tokens", "step_ns gap_ns stall_ns lookups hits preempted_ns memory_stall_ns", nullptr, true,
     "gap_ns", "gap_ns > 0"},
    {"samples", "", nullptr, true},
}};

class Thinning {
public:
    Thinning(sqlite3* db, const std::string& path) : m_db(db), m_path(path) {}

    // Adds the rows up to `last` to the totals and removes them.
    Status remove(const ThinnedTable& table, int64_t last) {
        const std::string from =
            " FROM " + std::string(table.name) + " WHERE rowid <= " + std::to_string(last);
        const std::string prefix = std::string("'") + table.name + ".'" +
                                   (table.by ? " || " + std::string(table.by) + " || '.'" : "");
        const std::string group = table.by ? " GROUP BY " + std::string(table.by) : "";
        COLIBRI_TRY(add(prefix + " || 'count'", "count(*)", from + group));
        std::string_view columns = table.sums;
        while (!columns.empty()) {
            const std::string column(columns.substr(0, columns.find(' ')));
            columns.remove_prefix(std::min(columns.size(), column.size() + 1));
            COLIBRI_TRY(add(prefix + " || '" + column + "'", "sum(" + column + ")", from + group));
        }
        if (table.histogram) COLIBRI_TRY(addHistogram(table, from));
        return exec("DELETE" + from);
    }

    // The last row of the oldest part of a table; 0: it is too small.
    Result<int64_t> oldestPart(const ThinnedTable& table) {
        SqliteStatement query;
        COLIBRI_TRY(query.prepare(
            m_db, "SELECT min(rowid), max(rowid) FROM " + std::string(table.name), m_path));
        if (const auto row = query.step(); !row) return row.status();
        const int64_t first = query.integer(0), rows = query.integer(1) - first + 1;
        return rows < kLeast ? 0 : first + rows / kPart;
    }

    // Records that the rows before the first remaining one are missing.
    Status note(const char* key, const char* table) {
        return exec("INSERT OR REPLACE INTO meta SELECT '" + std::string(key) +
                    "', printf('%.3f', t) FROM " + table + " ORDER BY rowid LIMIT 1");
    }

private:
    Status exec(const std::string& sql) {
        const int result = sqlite3_exec(m_db, sql.c_str(), nullptr, nullptr, nullptr);
        return result == SQLITE_OK ? Status() : sqliteError(m_db, result, m_path);
    }
    Status add(const std::string& name, const std::string& value, const std::string& from) {
        return exec("INSERT INTO totals SELECT " + name + ", coalesce(" + value + ", 0)" + from +
                    " ON CONFLICT(name) DO UPDATE SET value = value + excluded.value");
    }
    // To three significant digits, as Histogram does.
    Status addHistogram(const ThinnedTable& table, const std::string& from) {
        const std::string column = table.histogram;
        return exec("INSERT INTO histograms SELECT '" + std::string(table.name) + "." + column +
                    "', CAST(CAST(printf('%.3g', " + column +
                    ") AS REAL) AS INTEGER) AS rounded, count(*)" + from + " AND " + table.counted +
                    " GROUP BY rounded " +
                    "ON CONFLICT(name, value_ns) DO UPDATE SET count = count + excluded.count");
    }

    sqlite3* const m_db;
    const std::string& m_path;
};

}  // namespace

Result<int64_t> usedBytes(sqlite3* db, const std::string& path) {
    SqliteStatement query;
    COLIBRI_TRY(query.prepare(db,
                              "SELECT (page_count - freelist_count) * page_size "
                              "FROM pragma_page_count, pragma_freelist_count, pragma_page_size",
                              path));
    if (const auto row = query.step(); !row) return row.status();
    return query.integer(0);
}

Status thinOldest(sqlite3* db, const std::string& path, bool tokensToo) {
    Thinning thinning(db, path);
    for (const ThinnedTable& table : kTables) {
        if (table.tokens && !tokensToo) continue;
        const auto last = thinning.oldestPart(table);
        if (!last) return last.status();
        if (*last > 0) COLIBRI_TRY(thinning.remove(table, *last));
    }
    COLIBRI_TRY(thinning.note("thinned_detail_before", "layer_steps"));
    return tokensToo ? thinning.note("thinned_tokens_before", "tokens") : Status();
}

}  // namespace colibri
