// SPDX-License-Identifier: Apache-2.0
// Opens session files: finished ones, those that are being recorded, and those of a killed process.
#pragma once

#include <filesystem>

#include "engine/base/status.h"
#include "engine/base/temporary_folder.h"
#include "profiler/session/sqlite.h"

namespace colibri {

struct OpenSession {
    TemporaryFolder copy;  // of the session, if any: deleted after the database is closed
    SqliteDb db;
};

// Opens a session for reading; nothing is changed. Also works in a read-only folder: a session that
// has ended is read directly, and one that was killed from a copy, because its newest records are
// still in the write-ahead log. Errors: BadInput (no such file), IoError.
Result<OpenSession> openForReading(const std::filesystem::path& path);
// Opens a session for writing. Errors: the same.
Result<SqliteDb> openWritable(const std::filesystem::path& path);

}  // namespace colibri
