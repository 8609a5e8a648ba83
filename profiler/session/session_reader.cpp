// SPDX-License-Identifier: Apache-2.0
#include "profiler/session/session_reader.h"

#include <unistd.h>
#include <charconv>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <utility>

#include "engine/base/file.h"
#include "profiler/session/session_files.h"
#include "profiler/session/session_writer.h"
#include "profiler/session/sqlite.h"

namespace colibri {
namespace {

namespace fs = std::filesystem;

// A temporary copy of a session. The destructor deletes it.
class Copy {
public:
    Copy() = default;
    Copy(Copy&& other) noexcept : m_folder(std::exchange(other.m_folder, {})) {}
    Copy& operator=(Copy&& other) noexcept {
        std::swap(m_folder, other.m_folder);
        return *this;
    }
    ~Copy() {
        std::error_code ignored;
        if (!m_folder.empty()) fs::remove_all(m_folder, ignored);
    }
    Status make(const fs::path& path) {
        std::error_code error;
        std::string name = (fs::temp_directory_path(error) / "colibri-session-XXXXXX").string();
        if (error || !mkdtemp(name.data())) return systemError("cannot create", name, errno);
        m_folder = name;
        for (const auto& [from, to] :
             {std::pair(path, file()), std::pair(sessionWal(path), sessionWal(file()))}) {
            fs::copy_file(from, to, error);
            if (error) return systemError("cannot copy to", m_folder, error.value());
            fs::permissions(to, fs::perms::owner_write, fs::perm_options::add, error);
        }
        return {};
    }
    fs::path file() const { return m_folder / "session"; }

private:
    fs::path m_folder;
};

struct OpenSession {
    Copy copy;  // deleted after the database is closed
    SqliteDb db;
};

Result<SqliteDb> openDatabase(const std::string& name, int flags, const fs::path& path) {
    sqlite3* handle = nullptr;
    const int result = sqlite3_open_v2(name.c_str(), &handle, flags, nullptr);
    SqliteDb db(handle);
    if (result != SQLITE_OK) return sqliteError(handle, result, path.string());
    sqlite3_busy_timeout(handle, 1000);
    return db;
}

// The URI that opens a file without locks or an index. REQUIRES: no process writes to it.
std::string immutableName(const fs::path& path) {
    std::error_code error;
    std::string name = "file:";
    for (const char c : fs::absolute(path, error).string()) {
        if (c == '%' || c == '?' || c == '#') {
            char code[4];
            std::snprintf(code, sizeof code, "%%%02X", unsigned(uint8_t(c)));
            name += code;
        } else {
            name += c;
        }
    }
    return name + "?immutable=1";
}

Status checkFile(const fs::path& path) {
    std::error_code error;
    if (fs::is_regular_file(path, error)) return {};
    return Status(Code::BadInput, "session file " + path.string() + " does not exist",
                  "Check the path");
}

// Opens for writing, because SQLite can only read a WAL if it may create its index. Nothing is
// changed.
Result<SqliteDb> openWritable(const fs::path& path) {
    COLIBRI_TRY(checkFile(path));
    return openDatabase(plainFileName(path), SQLITE_OPEN_READWRITE, path);
}

// Also works in a read-only folder. A session that has ended is read directly. A session that was
// killed is read from a copy, because its newest records are still in the WAL.
Result<OpenSession> openForReading(const fs::path& path) {
    OpenSession out;
    Result<SqliteDb> db = openWritable(path);
    if (!db && db.status().code() == Code::BadInput) return db.status();
    if (db) {
        const int result = sqlite3_exec(db->get(), "SELECT count(*) FROM sqlite_master", nullptr,
                                        nullptr, nullptr);
        const int kind = result & 0xff;
        if (kind != SQLITE_READONLY && kind != SQLITE_CANTOPEN && kind != SQLITE_IOERR) {
            out.db = std::move(*db);
            return out;
        }
    }
    std::error_code error;
    const fs::path wal = sessionWal(path);
    if (fs::exists(wal, error) && fs::file_size(wal, error) > 0) {
        if (Status status = out.copy.make(path); !status.ok()) {
            return Status(status.code(),
                          "session file " + path.string() +
                              " has no clean end and its folder is read-only; reading it from a "
                              "copy failed: " +
                              status.message(),
                          "Copy it and its -wal file to a writable folder and open it there");
        }
        db = openDatabase(out.copy.file().string(), SQLITE_OPEN_READWRITE, path);
    } else {
        db = openDatabase(immutableName(path), SQLITE_OPEN_READONLY | SQLITE_OPEN_URI, path);
    }
    if (!db) return db.status();
    out.db = std::move(*db);
    return out;
}

Status readMeta(sqlite3* db, SessionSummary& summary) {
    SqliteStatement query;
    COLIBRI_TRY(query.prepare(db, "SELECT key, value FROM meta", summary.path.string()));
    while (true) {
        const auto row = query.step();
        if (!row) return row.status();
        if (!*row) return {};
        summary.meta[query.text(0)] = query.text(1);
    }
}

Status checkSchema(const SessionSummary& summary) {
    const auto it = summary.meta.find("schema");
    if (it == summary.meta.end()) {
        return {Code::BadInput, "session file " + summary.path.string() + " has no schema",
                "The file is not a session"};
    }
    for (int schema = kOldestSessionSchema; schema <= kSessionSchema; ++schema)
        if (it->second == std::to_string(schema)) return {};
    return {Code::Unsupported,
            "session file " + summary.path.string() + " has schema " + it->second +
                "; this program reads " + std::to_string(kOldestSessionSchema) + " to " +
                std::to_string(kSessionSchema),
            "Use the program that recorded it, or a newer one"};
}

// The totals of a session that was closed. False: it was not, or an earlier version wrote it.
bool readTotals(SessionSummary& summary) {
    const auto number = [&](const char* key, auto& to) {
        const auto it = summary.meta.find(key);
        if (it == summary.meta.end()) return false;
        const std::string& text = it->second;
        const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), to);
        return error == std::errc() && end == text.data() + text.size();
    };
    return number("requests", summary.requests) && number("tokens", summary.tokens) &&
           number("reads", summary.loads) && number("lookups", summary.lookups) &&
           number("hits", summary.hits) && number("duration", summary.lastTime);
}

// Adds what was counted of rows that were thinned.
Status addThinned(sqlite3* db, SessionSummary& summary) {
    SqliteStatement query;
    COLIBRI_TRY(query.prepare(
        db,
        "SELECT coalesce(sum(value) FILTER (WHERE name = 'tokens.count'), 0), "
        "coalesce(sum(value) FILTER (WHERE name GLOB 'loads.*.count'), 0), "
        "coalesce(sum(value) FILTER (WHERE name = 'layer_steps.lookups'), 0), "
        "coalesce(sum(value) FILTER (WHERE name = 'layer_steps.hits'), 0) FROM totals",
        summary.path.string()));
    if (const auto row = query.step(); !row) return row.status();
    summary.tokens += query.integer(0);
    summary.loads += query.integer(1);
    summary.lookups += query.integer(2);
    summary.hits += query.integer(3);
    return {};
}

Status countRows(sqlite3* db, SessionSummary& summary) {
    SqliteStatement totals;
    COLIBRI_TRY(totals.prepare(
        db,
        "SELECT (SELECT count(*) FROM requests), (SELECT count(*) FROM tokens), "
        "(SELECT count(*) FROM loads), (SELECT coalesce(sum(lookups),0) FROM layer_steps), "
        "(SELECT coalesce(sum(hits),0) FROM layer_steps), "
        "max(coalesce((SELECT max(t) FROM samples),0), coalesce((SELECT max(t) FROM tokens),0))",
        summary.path.string()));
    if (const auto row = totals.step(); !row) return row.status();
    summary.requests = totals.integer(0);
    summary.tokens = totals.integer(1);
    summary.loads = totals.integer(2);
    summary.lookups = totals.integer(3);
    summary.hits = totals.integer(4);
    summary.lastTime = totals.real(5);
    return summary.meta.contains("thinned_detail_before") ? addThinned(db, summary) : Status();
}

}  // namespace

Result<SessionSummary> readSessionSummary(const std::filesystem::path& path) {
    auto opened = openForReading(path);
    if (!opened) return opened.status();
    const SqliteDb* db = &opened->db;
    SessionSummary summary;
    summary.path = path;
    if (Status status = readMeta(db->get(), summary); !status.ok()) {
        // A database without the tables of a session gets the same error as a file that is not a
        // database.
        return Status(Code::BadInput, status.message(), "The file is not a session");
    }
    COLIBRI_TRY(checkSchema(summary));
    summary.endedCleanly = summary.meta.contains("ended");
    if (!readTotals(summary)) COLIBRI_TRY(countRows(db->get(), summary));
    std::error_code error;
    summary.bytes = int64_t(std::filesystem::file_size(path, error));
    return summary;
}

Status recoverSession(const std::filesystem::path& path) {
    const auto summary = readSessionSummary(path);
    if (!summary) return summary.status();
    auto db = openWritable(path);
    if (!db) return db.status();
    SqliteStatement insert;
    COLIBRI_TRY(insert.prepare(db->get(), "INSERT OR IGNORE INTO meta VALUES('ended','recovered')",
                               path.string()));
    COLIBRI_TRY(insert.run());
    return leaveWal(db->get(), path.string());
}

}  // namespace colibri
