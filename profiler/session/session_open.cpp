// SPDX-License-Identifier: Apache-2.0
#include "profiler/session/session_open.h"

#include <cstdio>
#include <string>
#include <utility>

#include "engine/base/file.h"
#include "profiler/session/session_files.h"

namespace colibri {

namespace fs = std::filesystem;

namespace {

constexpr const char* kCopyName = "session";

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

// The copy is a file "session" and its write-ahead log.
Result<TemporaryFolder> copyOf(const fs::path& path) {
    Result<TemporaryFolder> folder = TemporaryFolder::make("colibri-session");
    if (!folder) return folder.status();
    const fs::path copy = folder->path() / kCopyName;
    std::error_code error;
    for (const auto& [from, to] :
         {std::pair(path, copy), std::pair(sessionWal(path), sessionWal(copy))}) {
        fs::copy_file(from, to, error);
        if (error) return systemError("cannot copy to", folder->path(), error.value());
        fs::permissions(to, fs::perms::owner_write, fs::perm_options::add, error);
    }
    return folder;
}

}  // namespace

// Opens for writing, because SQLite can only read a WAL if it may create its index. Nothing is
// changed.
Result<SqliteDb> openWritable(const fs::path& path) {
    COLIBRI_TRY(checkFile(path));
    return openDatabase(plainFileName(path), SQLITE_OPEN_READWRITE, path);
}

namespace {

// SQLite merges the WAL into the file when the last connection closes it. A session that has not
// ended stays as it is, for its recorder or for recovery.
void keepWal(sqlite3* db) {
    SqliteStatement ended;
    if (!ended.prepare(db, "SELECT 1 FROM meta WHERE key = 'ended'", "").ok()) return;
    if (const auto row = ended.step(); row && !*row)
        sqlite3_db_config(db, SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1, nullptr);
}

}  // namespace

Result<OpenSession> openForReading(const fs::path& path) {
    OpenSession out;
    Result<SqliteDb> db = openWritable(path);
    if (!db && db.status().code() == Code::BadInput) return db.status();
    if (db) {
        const int result = sqlite3_exec(db->get(), "SELECT count(*) FROM sqlite_master", nullptr,
                                        nullptr, nullptr);
        const int kind = result & 0xff;
        if (kind != SQLITE_READONLY && kind != SQLITE_CANTOPEN && kind != SQLITE_IOERR) {
            keepWal(db->get());
            out.db = std::move(*db);
            return out;
        }
    }
    std::error_code error;
    const fs::path wal = sessionWal(path);
    if (fs::exists(wal, error) && fs::file_size(wal, error) > 0) {
        Result<TemporaryFolder> copy = copyOf(path);
        if (!copy) {
            return Status(copy.status().code(),
                          "session file " + path.string() +
                              " has no clean end and its folder is read-only; reading it from a "
                              "copy failed: " +
                              copy.status().message(),
                          "Copy it and its -wal file to a writable folder and open it there");
        }
        out.copy = std::move(*copy);
        db = openDatabase((out.copy.path() / kCopyName).string(), SQLITE_OPEN_READWRITE, path);
    } else {
        db = openDatabase(immutableName(path), SQLITE_OPEN_READONLY | SQLITE_OPEN_URI, path);
    }
    if (!db) return db.status();
    out.db = std::move(*db);
    return out;
}

}  // namespace colibri
