// SPDX-License-Identifier: Apache-2.0
// Reads the summary of a session file: for the recent list, recovery after a crash, and totals to
// compare with the window.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <string>

#include "engine/base/status.h"

namespace colibri {

struct SessionSummary {
    std::filesystem::path path;
    std::map<std::string, std::string> meta;  // schema, started, ended, model, ...
    bool endedCleanly = false;                // false: killed, or still being written
    double lastTime = 0;                      // seconds of the last record
    int64_t requests = 0, tokens = 0, loads = 0;
    int64_t lookups = 0, hits = 0;  // over all layer steps
    int64_t bytes = 0;              // of the file
};

// How readSessionSummary() gets the totals of a session without a clean end.
enum class Totals : uint8_t {
    Count,  // from all rows, which takes seconds for a large file
    None,   // not at all: they stay 0
};

// Changes nothing. Also reads the WAL of a killed process, from a copy if the folder is read-only.
// Errors: BadInput (not a session, or damaged), Unsupported (newer schema; the message gives both
// numbers).
Result<SessionSummary> readSessionSummary(const std::filesystem::path& path,
                                          Totals totals = Totals::Count);

// Marks a session that was killed as ended ("recovered") and merges the WAL into the file.
// Errors: the same; IoError if the file cannot be written; Busy if another program has it open,
// which may still be recording it.
Status recoverSession(const std::filesystem::path& path);

}  // namespace colibri
