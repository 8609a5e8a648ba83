// SPDX-License-Identifier: Apache-2.0
// Writes a session file: SQLite in WAL mode, with inserts batched in transactions. A killed process
// loses at most the last uncommitted batch, and the file is never damaged. A finished session is a
// single file, not in WAL mode, so it can be opened in a read-only folder.
// resources/help/session-file.md documents the schema, with example queries.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "engine/base/status.h"
#include "engine/telemetry/events.h"
#include "profiler/gpu/gpu_span.h"
#include "profiler/metrics/snapshot.h"

namespace colibri {

// Version 2 adds the tables threads, steps, step_requests, evictions and prefetches, and columns
// that name the step of a token and of a read.
constexpr int kSessionSchema = 2;
constexpr int kOldestSessionSchema = 1;  // that the readers accept

// Not thread-safe: one owner at a time. After an error the writer must be dropped.
class SessionWriter {
public:
    // Errors: InvalidArgument if the file exists; IoError or NoSpace with the path.
    // `mostBytes`: the oldest detail is thinned so that the file stays below this size (see
    // session_thinning.h); 0: no limit.
    static Result<std::unique_ptr<SessionWriter>> create(
        const std::filesystem::path& path,
        const std::vector<std::pair<std::string, std::string>>& meta, int64_t mostBytes = 0);
    // Returns the errors of create; call it before a long operation. Leaves no files.
    static Status check(const std::filesystem::path& path);
    ~SessionWriter();  // calls finish(), unless an error occurred

    Status thread(int64_t number, const std::string& name);  // of Event::thread
    Status write(const Event& event, double t);
    Status gpuSpan(const GpuSpan& span, double t);
    Status mark(double t, const std::string& kind, const std::string& label);
    Status sample(const Snapshot& snapshot, double t);  // writes the newest value of every series
    Status commit();
    // Commits, records a clean end and merges the WAL into the file. No writes may follow.
    Status finish();
    int64_t fileBytes() const;  // size of database and WAL

private:
    SessionWriter();
    struct Impl;
    std::unique_ptr<Impl> m_impl;
};

}  // namespace colibri
