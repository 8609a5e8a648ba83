// SPDX-License-Identifier: Apache-2.0
// A thin layer over SQLite: owned handles, bound parameters, errors as Status.
#pragma once

#include <sqlite3.h>

#include <cmath>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "engine/base/status.h"

namespace colibri {

struct SqliteClose {
    void operator()(sqlite3* db) const { sqlite3_close(db); }
    void operator()(sqlite3_stmt* statement) const { sqlite3_finalize(statement); }
};
using SqliteDb = std::unique_ptr<sqlite3, SqliteClose>;

// The name by which SQLite opens any path as a file: ":memory:" and "file:x?mode=memory" become
// ordinary files of that name in the working folder.
inline std::string plainFileName(const std::filesystem::path& path) {
    return path.is_absolute() ? path.string() : "./" + path.string();
}

inline Status sqliteError(sqlite3* db, int result, const std::string& path) {
    const std::string message =
        "session file " + path + ": " + (db ? sqlite3_errmsg(db) : sqlite3_errstr(result));
    switch (result & 0xff) {
        case SQLITE_FULL:
            return {Code::NoSpace, message, "The disk is full; recording stopped. Free some space"};
        case SQLITE_NOTADB:
        case SQLITE_CORRUPT:
            return {Code::BadInput, message,
                    "The file is not a session, or it is damaged: colibri recover FILE copies what "
                    "can be read"};
        case SQLITE_READONLY:
            return {Code::IoError, message,
                    "The file or its folder is read-only: copy it to a writable folder"};
        case SQLITE_CANTOPEN:
            return {Code::IoError, message, "Check the folder and its permissions"};
        default:
            return {Code::IoError, message, "Check the disk"};
    }
}

// Merges the WAL into the file and turns WAL mode off. If another process is reading the file, the
// last one to close it does this.
inline Status leaveWal(sqlite3* db, const std::string& path) {
    sqlite3_busy_timeout(db, 1000);
    const int result = sqlite3_exec(db, "PRAGMA journal_mode=DELETE", nullptr, nullptr, nullptr);
    const int kind = result & 0xff;
    return result == SQLITE_OK || kind == SQLITE_BUSY || kind == SQLITE_LOCKED
               ? Status()
               : sqliteError(db, result, path);
}

// A prepared statement; bind() calls fill the parameters in order, starting at 1.
class SqliteStatement {
public:
    Status prepare(sqlite3* db, const std::string& sql, const std::string& path) {
        m_db = db;
        m_path = path;
        sqlite3_stmt* statement = nullptr;
        const int result =
            sqlite3_prepare_v3(db, sql.c_str(), -1, SQLITE_PREPARE_PERSISTENT, &statement, nullptr);
        m_statement.reset(statement);
        return result == SQLITE_OK ? Status() : sqliteError(db, result, path);
    }
    SqliteStatement& bind(int64_t value) {
        sqlite3_bind_int64(m_statement.get(), ++m_position, value);
        return *this;
    }
    SqliteStatement& bind(double value) {  // NaN becomes NULL
        sqlite3_bind_double(m_statement.get(), ++m_position, value);
        return *this;
    }
    SqliteStatement& bind(std::string_view value) {
        sqlite3_bind_text(m_statement.get(), ++m_position, value.data(), int(value.size()),
                          SQLITE_TRANSIENT);
        return *this;
    }
    SqliteStatement& bindBlob(const std::vector<uint8_t>& value) {
        sqlite3_bind_blob(m_statement.get(), ++m_position, value.data(), int(value.size()),
                          SQLITE_TRANSIENT);
        return *this;
    }
    // Runs an insert and resets the statement for the next one.
    Status run() {
        const int result = sqlite3_step(m_statement.get());
        reset();
        return result == SQLITE_DONE || result == SQLITE_ROW ? Status()
                                                             : sqliteError(m_db, result, m_path);
    }
    // Fetches one row of a query; false at the end.
    Result<bool> step() {
        const int result = sqlite3_step(m_statement.get());
        if (result == SQLITE_ROW) return true;
        if (result == SQLITE_DONE) return false;
        return sqliteError(m_db, result, m_path);
    }
    void reset() {
        sqlite3_reset(m_statement.get());
        m_position = 0;
    }
    int64_t integer(int column) const { return sqlite3_column_int64(m_statement.get(), column); }
    double real(int column) const {
        return sqlite3_column_type(m_statement.get(), column) == SQLITE_NULL
                   ? std::nan("")
                   : sqlite3_column_double(m_statement.get(), column);
    }
    std::string text(int column) const {
        const auto* value = sqlite3_column_text(m_statement.get(), column);
        return value ? reinterpret_cast<const char*>(value) : std::string();
    }
    // The bytes stay valid until the next step().
    std::span<const uint8_t> blob(int column) const {
        const auto* bytes =
            static_cast<const uint8_t*>(sqlite3_column_blob(m_statement.get(), column));
        return {bytes, bytes ? size_t(sqlite3_column_bytes(m_statement.get(), column)) : 0};
    }

private:
    sqlite3* m_db = nullptr;
    std::string m_path;
    std::unique_ptr<sqlite3_stmt, SqliteClose> m_statement;
    int m_position = 0;
};

// Calls `take(row)` for each row of a query, until it returns an error. It may return nothing.
template <class Take>
Status eachRow(sqlite3* db, const std::string& path, const char* sql, Take take) {
    SqliteStatement query;
    COLIBRI_TRY(query.prepare(db, sql, path));
    while (true) {
        const auto row = query.step();
        if (!row) return row.status();
        if (!*row) return {};
        if constexpr (std::is_void_v<decltype(take(query))>)
            take(query);
        else
            COLIBRI_TRY(take(query));
    }
}

}  // namespace colibri
