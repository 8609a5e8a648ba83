// SPDX-License-Identifier: Apache-2.0
// The files of one session: a SQLite database and what SQLite keeps beside it while it is open, or
// after a crash.
#pragma once

#include <cstdint>
#include <filesystem>
#include <vector>

namespace colibri {

// The session file first, then its companions, whether they are there or not.
std::vector<std::filesystem::path> sessionFiles(const std::filesystem::path& path);
// The write-ahead log: the newest records are in it until the session ends.
std::filesystem::path sessionWal(const std::filesystem::path& path);
// Bytes of the session file and its write-ahead log, 0 for one that is not there.
int64_t sessionBytes(const std::filesystem::path& path);
void removeSession(const std::filesystem::path& path);

}  // namespace colibri
