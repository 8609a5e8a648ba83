// SPDX-License-Identifier: Apache-2.0
// Read access to the rows of a session: a consistent view, cursors that hold one row
// at a time, and columns that older files do not have.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "engine/base/status.h"
#include "profiler/session/session_open.h"
#include "profiler/session/session_reader.h"
#include "profiler/session/sqlite.h"

namespace colibri {

// Seconds since the session began, both ends included.
struct TimeRange {
    double from, to;
};

// Not thread-safe. It may be read while another process records the session.
class SessionDb {
public:
    // Errors: those of readSessionSummary().
    static Result<SessionDb> open(const std::filesystem::path& path, Totals totals = Totals::Count);

    sqlite3* handle() const { return m_open.db.get(); }
    const std::string& name() const { return m_name; }  // for messages
    const SessionSummary& summary() const { return m_summary; }
    std::string meta(const char* key) const;  // "" if absent
    // The number of rows, from the smallest and largest row id; 0 for a table that does not exist.
    int64_t rows(const char* table) const;
    bool has(const char* table, const char* column) const;
    // The name of a column, or NULL if the file is older than the column.
    std::string columnOrNull(const char* table, const char* column) const {
        return has(table, column) ? column : "NULL";
    }

private:
    OpenSession m_open;
    std::string m_name;
    SessionSummary m_summary;
};

// A query that is read row by row. Texts and blobs are valid until next().
class SessionRows {
public:
    Status prepare(const SessionDb& db, const std::string& sql);
    SessionRows& bind(double value) {
        sqlite3_bind_double(m_statement.get(), ++m_position, value);
        return *this;
    }
    SessionRows& bind(std::string_view value) {
        sqlite3_bind_text(m_statement.get(), ++m_position, value.data(), int(value.size()),
                          SQLITE_TRANSIENT);
        return *this;
    }
    SessionRows& bind(int64_t value) {
        sqlite3_bind_int64(m_statement.get(), ++m_position, value);
        return *this;
    }
    // Runs the query again, with other parameters.
    void rewind() {
        sqlite3_reset(m_statement.get());
        m_position = 0;
    }
    // Binds both ends of a range.
    SessionRows& bind(const TimeRange& range) { return bind(range.from).bind(range.to); }
    // Moves to the next row. Returns false at the end and after an error; see status().
    bool next() {
        const int result = sqlite3_step(m_statement.get());
        if (result != SQLITE_ROW && result != SQLITE_DONE) m_result = result;
        return result == SQLITE_ROW;
    }
    Status status() const;

    bool isNull(int column) const {
        return sqlite3_column_type(m_statement.get(), column) == SQLITE_NULL;
    }
    int64_t integer(int column) const { return sqlite3_column_int64(m_statement.get(), column); }
    double real(int column) const {  // NaN for NULL
        return isNull(column) ? std::nan("") : sqlite3_column_double(m_statement.get(), column);
    }
    std::string_view text(int column) const {
        const auto* value = sqlite3_column_text(m_statement.get(), column);
        return value ? std::string_view(reinterpret_cast<const char*>(value),
                                        size_t(sqlite3_column_bytes(m_statement.get(), column)))
                     : std::string_view();
    }
    std::span<const uint8_t> blob(int column) const {
        const auto* value =
            static_cast<const uint8_t*>(sqlite3_column_blob(m_statement.get(), column));
        return {value, value ? size_t(sqlite3_column_bytes(m_statement.get(), column)) : 0};
    }

private:
    sqlite3* m_db = nullptr;  // borrowed
    std::string m_name;
    std::unique_ptr<sqlite3_stmt, SqliteClose> m_statement;
    int m_position = 0;
    int m_result = SQLITE_OK;
};

}  // namespace colibri
