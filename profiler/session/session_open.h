// SPDX-License-Identifier: Apache-2.0
// Opens session files: finished ones, those that are being recorded, and those of a killed process.
#pragma once

#include <filesystem>
#include <utility>

#include "engine/base/status.h"
#include "profiler/session/sqlite.h"

namespace colibri {

// A temporary copy of a session and its write-ahead log. The destructor deletes it.
class SessionCopy {
public:
    SessionCopy() = default;
    SessionCopy(SessionCopy&& other) noexcept : m_folder(std::exchange(other.m_folder, {})) {}
    SessionCopy& operator=(SessionCopy&& other) noexcept {
        std::swap(m_folder, other.m_folder);
        return *this;
    }
    ~SessionCopy();
    Status make(const std::filesystem::path& path);
    std::filesystem::path file() const { return m_folder / "session"; }

private:
    std::filesystem::path m_folder;
};

struct OpenSession {
    SessionCopy copy;  // deleted after the database is closed
    SqliteDb db;
};

// Opens a session for reading; nothing is changed. Also works in a read-only folder: a session that
// has ended is read directly, and one that was killed from a copy, because its newest records are
// still in the write-ahead log. Errors: BadInput (no such file), IoError.
Result<OpenSession> openForReading(const std::filesystem::path& path);
// Opens a session for writing. Errors: the same.
Result<SqliteDb> openWritable(const std::filesystem::path& path);

}  // namespace colibri
