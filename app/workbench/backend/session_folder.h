// SPDX-License-Identifier: GPL-3.0-or-later
// The folder of session files: names of new files, locks that distinguish running programs from
// killed ones, and recovery of interrupted sessions. Functions are thread-safe; they read and write
// the disk.
#pragma once

#include <QString>
#include <memory>
#include <optional>

#include "engine/base/status.h"
#include "profiler/session/session_reader.h"

class QLockFile;

namespace colibri::ui {

inline const QString kSessionSuffix = "colibri-session";

// A reserved file. The lock must exist as long as the session is written.
struct ReservedSession {
    QString path;
    std::shared_ptr<QLockFile> lock;
};

class SessionFolder {
public:
    explicit SessionFolder(const QString& dir) : m_dir(dir) {}
    const QString& dir() const { return m_dir; }

    // The path of a new file, named by date and time; never an existing file.
    Result<ReservedSession> reserve() const;
    // The newest of the last ten sessions that did not end cleanly and that no running program
    // writes. Reads the disk, so it runs in a job.
    std::optional<SessionSummary> interrupted() const;
    // Marks the session as discarded. restore() undoes it; purge() deletes the sessions that were
    // discarded in earlier runs.
    static Status discard(const QString& path);
    static Status restore(const QString& path);
    void purge() const;

private:
    QString m_dir;
};

}  // namespace colibri::ui
