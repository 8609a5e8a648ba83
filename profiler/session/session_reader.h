// SPDX-License-Identifier: Apache-2.0
// Reads what a session file says about itself: for the recent list, recovery after a crash, and
// the totals a person would check the screen against.
#pragma once

#include <filesystem>
#include <map>
#include <string>

#include "engine/base/status.h"

namespace colibri {

struct SessionSummary {
    std::filesystem::path path;
    std::map<std::string, std::string> meta;   // schema, started, ended, model, ...
    bool endedCleanly = false;                 // false: killed, or still being written
    double lastTime = 0;                       // seconds of the last record
    int64_t requests = 0, tokens = 0, loads = 0;
    int64_t lookups = 0, hits = 0;             // over all layer steps
    int64_t bytes = 0;                         // of the file
};

// Changes nothing; a WAL left by a killed process is read too, from a copy where nothing can be
// written beside it. Errors: BadInput (no session, or
// damaged), Unsupported (newer schema, both numbers said).
Result<SessionSummary> readSessionSummary(const std::filesystem::path& path);

// Marks a session that was killed as ended ("recovered") and makes it one ordinary file. Errors: also
// IoError where nothing can be written.
Status recoverSession(const std::filesystem::path& path);

}  // namespace colibri
