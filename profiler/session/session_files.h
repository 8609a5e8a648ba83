// SPDX-License-Identifier: Apache-2.0
// The files of one session: a SQLite database, and the files that SQLite keeps beside it while it
// is open or after a crash.
#pragma once

#include <cstdint>
#include <filesystem>
#include <vector>

namespace colibri {

// The session file and its companions, whether or not they exist.
std::vector<std::filesystem::path> sessionFiles(const std::filesystem::path& path);
// The write-ahead log (WAL), which holds the newest records until the session ends.
std::filesystem::path sessionWal(const std::filesystem::path& path);
// Bytes of the session file and its write-ahead log; a missing file counts as 0.
int64_t sessionBytes(const std::filesystem::path& path);
void removeSession(const std::filesystem::path& path);

}  // namespace colibri
