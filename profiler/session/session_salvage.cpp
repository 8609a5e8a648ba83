// SPDX-License-Identifier: Apache-2.0
#include "profiler/session/session_salvage.h"

#include <algorithm>
#include <sstream>

#include "engine/base/format.h"
#include "profiler/session/session_files.h"
#include "profiler/session/session_open.h"
#include "profiler/session/session_writer.h"
#include "profiler/session/sqlite.h"

namespace colibri {
namespace {

constexpr int64_t kLastRow = int64_t(1) << 48;  // no session has as many rows
constexpr int64_t kSalvageCancelEvery = 4096;   // rows

bool damaged(int result) {
    const int kind = result & 0xff;
    return kind == SQLITE_CORRUPT || kind == SQLITE_NOTADB || kind == SQLITE_IOERR;
}

std::string quoted(const std::string& name) {
    std::string out = "\"";
    for (const char c : name) out += c == '"' ? std::string("\"\"") : std::string(1, c);
    return out + "\"";
}

// The statements that make the tables of a session. Other tables and all other objects of the file
// are left out.
Result<std::vector<std::pair<std::string, std::string>>> tablesOf(sqlite3* db,
                                                                  const std::string& path) {
    // Lets SQLite read a file that is shorter than its header says. Nothing is written.
    sqlite3_exec(db, "PRAGMA writable_schema=1", nullptr, nullptr, nullptr);
    std::vector<std::pair<std::string, std::string>> out;
    const Status status = eachRow(
        db, path,
        "SELECT name, sql FROM sqlite_master WHERE type = 'table' AND sql LIKE 'CREATE TABLE %' "
        "AND name NOT LIKE 'sqlite%' ORDER BY name",
        [&](const SqliteStatement& row) { out.emplace_back(row.text(0), row.text(1)); });
    if (!status.ok() || out.empty())
        return Status(Code::BadInput, "nothing of session file " + path + " can be read",
                      "The file is not a session, or its first page is damaged");
    return out;
}

// Copies one table row by row, around the pages that cannot be read.
class TableCopy {
public:
    TableCopy(sqlite3* from, sqlite3* to, const std::string& table, const CancelFlag* cancel)
        : m_from(from), m_to(to), m_table(quoted(table)), m_cancel(cancel) {
        m_out.name = table;
    }

    Result<SalvagedTable> run(const std::string& toPath) {
        m_toPath = toPath;
        int64_t after = 0;  // all rows up to this one are copied or lost
        COLIBRI_TRY(prepareInsert());
        for (;;) {
            COLIBRI_TRY(copyAfter(after));
            if (!m_broken) return m_out;
            const int64_t next = firstReadableAfter(after);
            if (next > kLastRow) {
                m_out.lost += std::max<int64_t>(0, lastRow() - after);
                return m_out;
            }
            m_out.lost += next - after - 1;
            after = next - 1;
        }
    }

private:
    using Statement = std::unique_ptr<sqlite3_stmt, SqliteClose>;

    Statement prepared(sqlite3* db, const std::string& sql) const {
        sqlite3_stmt* statement = nullptr;
        sqlite3_prepare_v2(db, sql.c_str(), -1, &statement, nullptr);
        return Statement(statement);
    }
    // REQUIRES: the table can be prepared
    Statement rowsAfter(int64_t row) const {
        Statement query =
            prepared(m_from, "SELECT rowid, * FROM " + m_table + " WHERE rowid > ? ORDER BY rowid");
        if (query) sqlite3_bind_int64(query.get(), 1, row);
        return query;
    }

    Status prepareInsert() {
        const Statement query = rowsAfter(0);
        if (!query) return {};  // copyAfter() finds it broken
        m_columns = sqlite3_column_count(query.get()) - 1;
        std::string sql = "INSERT INTO " + m_table + " VALUES(?";
        for (int i = 1; i < m_columns; ++i) sql += ",?";
        m_insert = prepared(m_to, sql + ")");
        return m_insert ? Status() : sqliteError(m_to, sqlite3_errcode(m_to), m_toPath);
    }

    // Moves `after` to the last row that was copied.
    Status copyAfter(int64_t& after) {
        const Statement query = rowsAfter(after);
        m_broken = !query;
        if (!query) return {};
        for (;;) {
            const int result = sqlite3_step(query.get());
            if (result == SQLITE_DONE) return {};
            if (result != SQLITE_ROW) {
                m_broken = damaged(result);
                return m_broken ? Status() : sqliteError(m_from, result, m_out.name);
            }
            if (++m_rows % kSalvageCancelEvery == 0 && m_cancel && m_cancel->load())
                return {Code::Cancelled, "the recovery was cancelled"};
            for (int i = 0; i < m_columns; ++i)
                sqlite3_bind_value(m_insert.get(), i + 1, sqlite3_column_value(query.get(), i + 1));
            const int inserted = sqlite3_step(m_insert.get());
            sqlite3_reset(m_insert.get());
            if (inserted != SQLITE_DONE) return sqliteError(m_to, inserted, m_toPath);
            after = sqlite3_column_int64(query.get(), 0);
            ++m_out.kept;
        }
    }

    // The smallest row number that a search from `row` reaches; > kLastRow: none.
    int64_t readableFrom(int64_t row) const {
        const Statement query = rowsAfter(row - 1);
        return query && sqlite3_step(query.get()) == SQLITE_ROW
                   ? sqlite3_column_int64(query.get(), 0)
                   : kLastRow + 1;
    }

    // Skips ahead in growing steps, then looks for the first readable row between the last failure
    // and the first success.
    int64_t firstReadableAfter(int64_t row) const {
        int64_t failed = row, step = 1, found = kLastRow + 1;
        for (; found > kLastRow && failed < kLastRow; step *= 2) {
            found = readableFrom(row + step);
            if (found > kLastRow) failed = row + step;
        }
        if (found > kLastRow) return found;
        for (int64_t low = failed + 1, high = found; low < high;) {
            const int64_t middle = low + (high - low) / 2;
            if (const int64_t here = readableFrom(middle); here <= kLastRow) {
                found = std::min(found, here);
                high = middle;
            } else {
                low = middle + 1;
            }
        }
        return found;
    }

    // The number of the last row, if that end of the table can be read; else 0.
    int64_t lastRow() const {
        const Statement query = prepared(m_from, "SELECT max(rowid) FROM " + m_table);
        return query && sqlite3_step(query.get()) == SQLITE_ROW
                   ? sqlite3_column_int64(query.get(), 0)
                   : 0;
    }

    sqlite3* const m_from;
    sqlite3* const m_to;
    const std::string m_table;
    const CancelFlag* const m_cancel;
    std::string m_toPath;
    Statement m_insert;
    int m_columns = 0;
    int64_t m_rows = 0;
    bool m_broken = false;
    SalvagedTable m_out;
};

std::string lossText(const std::vector<SalvagedTable>& tables) {
    std::string text;
    for (const SalvagedTable& table : tables)
        if (table.lost > 0)
            text += (text.empty() ? "" : ", ") + table.name + " " + formatCount(table.lost);
    return text.empty() ? "no row was lost" : "lost rows: " + text;
}

Status execute(sqlite3* db, const std::string& sql, const std::string& path) {
    const int result = sqlite3_exec(db, sql.c_str(), nullptr, nullptr, nullptr);
    return result == SQLITE_OK ? Status() : sqliteError(db, result, path);
}

Result<std::vector<SalvagedTable>> copyAll(sqlite3* from, sqlite3* to, const std::string& fromPath,
                                           const std::string& toPath, const ProgressFn& progress,
                                           const CancelFlag* cancel) {
    const auto tables = tablesOf(from, fromPath);
    if (!tables) return tables.status();
    std::vector<SalvagedTable> out;
    COLIBRI_TRY(execute(to, "PRAGMA trusted_schema=0; BEGIN", toPath));
    for (const auto& [name, sql] : *tables) {
        if (progress) progress({"Table " + name, out.size(), tables->size(), "tables"});
        COLIBRI_TRY(execute(to, sql, toPath));
        const auto copied = TableCopy(from, to, name, cancel).run(toPath);
        if (!copied) return copied.status();
        out.push_back(*copied);
    }
    SqliteStatement insert;
    COLIBRI_TRY(insert.prepare(to, "INSERT OR REPLACE INTO meta VALUES(?,?)", toPath));
    for (const auto& [key, value] :
         {std::pair<std::string, std::string>("ended", "recovered"), {"salvaged", lossText(out)}})
        COLIBRI_TRY(insert.bind(key).bind(value).run());
    COLIBRI_TRY(execute(to, "COMMIT", toPath));
    return out;
}

}  // namespace

Result<std::vector<std::string>> checkSession(const std::filesystem::path& path) {
    const auto opened = openForReading(path);
    if (!opened) return opened.status();
    if (const auto tables = tablesOf(opened->db.get(), path.string()); !tables)
        return tables.status();
    std::vector<std::string> out;
    const Status status = eachRow(opened->db.get(), path.string(), "PRAGMA quick_check(20)",
                                  [&](const SqliteStatement& row) {
                                      // SQLite may report several in one row.
                                      std::istringstream lines(row.text(0));
                                      for (std::string line; std::getline(lines, line);)
                                          if (line != "ok" && !line.starts_with("***"))
                                              out.push_back(line);
                                  });
    if (!status.ok()) out.push_back(status.message());
    return out;
}

Result<std::vector<SalvagedTable>> salvageSession(const std::filesystem::path& from,
                                                  const std::filesystem::path& to,
                                                  const ProgressFn& progress,
                                                  const CancelFlag* cancel) {
    const auto opened = openForReading(from);
    if (!opened) return opened.status();
    COLIBRI_TRY(SessionWriter::check(to));
    sqlite3* handle = nullptr;
    const int result = sqlite3_open_v2(plainFileName(to).c_str(), &handle,
                                       SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE, nullptr);
    SqliteDb db(handle);
    if (result != SQLITE_OK) return sqliteError(handle, result, to.string());
    auto out = copyAll(opened->db.get(), handle, from.string(), to.string(), progress, cancel);
    db.reset();
    if (!out) removeSession(to);
    return out;
}

}  // namespace colibri
