// SPDX-License-Identifier: Apache-2.0
#include "profiler/session/session_db.h"

#include <utility>

namespace colibri {

Result<SessionDb> SessionDb::open(const std::filesystem::path& path, Totals totals) {
    auto summary = readSessionSummary(path, totals);
    if (!summary) return summary.status();
    SessionDb out;
    out.m_summary = std::move(*summary);
    out.m_name = path.string();
    auto opened = openForReading(path);
    if (!opened) return opened.status();
    out.m_open = std::move(*opened);
    sqlite3* const handle = out.handle();
    // One transaction: all cursors see the rows of one moment.
    const int begun = sqlite3_exec(handle, "PRAGMA query_only=1; BEGIN; SELECT count(*) FROM meta",
                                   nullptr, nullptr, nullptr);
    if (begun != SQLITE_OK) return sqliteError(handle, begun, out.m_name);
    return out;
}

std::string SessionDb::meta(const char* key) const {
    const auto it = m_summary.meta.find(key);
    return it == m_summary.meta.end() ? std::string() : it->second;
}

int64_t SessionDb::rows(const char* table) const {
    SessionRows query;
    const std::string from = std::string("(rowid) FROM ") + table + ")";
    if (!query.prepare(*this, "SELECT (SELECT max" + from + " - (SELECT min" + from + " + 1").ok())
        return 0;
    return query.next() ? query.integer(0) : 0;
}

bool SessionDb::has(const char* table, const char* column) const {
    SessionRows query;
    if (!query.prepare(*this, "SELECT 1 FROM pragma_table_info(?) WHERE name=?").ok()) return false;
    query.bind(std::string_view(table)).bind(std::string_view(column));
    return query.next();
}

Status SessionRows::prepare(const SessionDb& db, const std::string& sql) {
    m_db = db.handle();
    m_name = db.name();
    sqlite3_stmt* statement = nullptr;
    const int result = sqlite3_prepare_v2(m_db, sql.c_str(), -1, &statement, nullptr);
    m_statement.reset(statement);
    m_position = 0;
    m_result = result;
    return status();
}

Status SessionRows::status() const {
    return m_result == SQLITE_OK ? Status() : sqliteError(m_db, m_result, m_name);
}

}  // namespace colibri
