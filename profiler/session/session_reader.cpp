// SPDX-License-Identifier: Apache-2.0
#include "profiler/session/session_reader.h"

#include "profiler/session/session_writer.h"
#include "profiler/session/sqlite.h"

namespace colibri {
namespace {

// Read-write, because a WAL can only be read by one who may create its index; nothing is changed.
Result<SqliteDb> openSession(const std::filesystem::path& path) {
    std::error_code error;
    if (!std::filesystem::is_regular_file(path, error)) {
        return Status(Code::BadInput, "session file " + path.string() + " does not exist",
                      "Check the path");
    }
    sqlite3* handle = nullptr;
    int result = sqlite3_open_v2(plainFileName(path).c_str(), &handle, SQLITE_OPEN_READWRITE,
                                 nullptr);
    SqliteDb db(handle);
    if (result != SQLITE_OK) return sqliteError(handle, result, path.string());
    sqlite3_busy_timeout(handle, 1000);
    return db;
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
        return {Code::BadInput, "session file " + summary.path.string() + " names no schema",
                "The file is not a session"};
    }
    if (it->second != std::to_string(kSessionSchema)) {
        return {Code::Unsupported, "session file " + summary.path.string() + " has schema " +
                                       it->second + "; this program reads " +
                                       std::to_string(kSessionSchema)};
    }
    return {};
}

}  // namespace

Result<SessionSummary> readSessionSummary(const std::filesystem::path& path) {
    auto db = openSession(path);
    if (!db) return db.status();
    SessionSummary summary;
    summary.path = path;
    if (Status status = readMeta(db->get(), summary); !status.ok()) {
        // A database without our tables is as little a session as one that is none.
        return Status(Code::BadInput, status.message(), "The file is not a session");
    }
    COLIBRI_TRY(checkSchema(summary));
    summary.endedCleanly = summary.meta.contains("ended");
    SqliteStatement totals;
    COLIBRI_TRY(totals.prepare(
        db->get(),
        "SELECT (SELECT count(*) FROM requests), (SELECT count(*) FROM tokens), "
        "(SELECT count(*) FROM loads), (SELECT coalesce(sum(lookups),0) FROM layer_steps), "
        "(SELECT coalesce(sum(hits),0) FROM layer_steps), "
        "max(coalesce((SELECT max(t) FROM samples),0), coalesce((SELECT max(t) FROM tokens),0))",
        path.string()));
    if (const auto row = totals.step(); !row) return row.status();
    summary.requests = totals.integer(0);
    summary.tokens = totals.integer(1);
    summary.loads = totals.integer(2);
    summary.lookups = totals.integer(3);
    summary.hits = totals.integer(4);
    summary.lastTime = totals.real(5);
    std::error_code error;
    summary.bytes = int64_t(std::filesystem::file_size(path, error));
    return summary;
}

Status recoverSession(const std::filesystem::path& path) {
    const auto summary = readSessionSummary(path);
    if (!summary) return summary.status();
    auto db = openSession(path);
    if (!db) return db.status();
    SqliteStatement insert;
    COLIBRI_TRY(insert.prepare(db->get(), "INSERT OR IGNORE INTO meta VALUES('ended','recovered')",
                               path.string()));
    COLIBRI_TRY(insert.run());
    const int result =
        sqlite3_wal_checkpoint_v2(db->get(), nullptr, SQLITE_CHECKPOINT_TRUNCATE, nullptr, nullptr);
    return result == SQLITE_OK ? Status() : sqliteError(db->get(), result, path.string());
}

}  // namespace colibri
