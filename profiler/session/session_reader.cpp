// SPDX-License-Identifier: Apache-2.0
#include "profiler/session/session_reader.h"

#include <charconv>

#include "profiler/session/session_files.h"
#include "profiler/session/session_open.h"
#include "profiler/session/session_writer.h"
#include "profiler/session/sqlite.h"

namespace colibri {
namespace {

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

bool isInWalMode(sqlite3* db) {
    SqliteStatement query;
    if (!query.prepare(db, "PRAGMA journal_mode", "").ok()) return false;
    const auto row = query.step();
    return row && *row && query.text(0) == "wal";
}

}  // namespace

Result<SessionSummary> readSessionSummary(const std::filesystem::path& path, Totals totals) {
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
    if (!readTotals(summary) && totals == Totals::Count) COLIBRI_TRY(countRows(db->get(), summary));
    summary.bytes = sessionBytes(path);
    return summary;
}

Status recoverSession(const std::filesystem::path& path) {
    const auto summary = readSessionSummary(path);
    if (!summary) return summary.status();
    auto db = openWritable(path);
    if (!db) return db.status();
    COLIBRI_TRY(leaveWal(db->get(), path.string()));
    if (isInWalMode(db->get()))
        return {Code::Busy,
                "session file " + path.string() +
                    " is open in another program, which may still be recording it",
                "Close it there first"};
    SqliteStatement insert;
    COLIBRI_TRY(insert.prepare(db->get(), "INSERT OR IGNORE INTO meta VALUES('ended','recovered')",
                               path.string()));
    return insert.run();
}

}  // namespace colibri
