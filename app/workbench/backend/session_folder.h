// SPDX-License-Identifier: GPL-3.0-or-later
// The folder of session files: new names, the lock that tells a running program from one that was
// killed, and what to do with the file of a killed one.
#pragma once

#include <QString>
#include <memory>
#include <optional>

#include "engine/base/status.h"
#include "profiler/session/session_reader.h"

class QLockFile;

namespace colibri::ui {

inline const QString kSessionSuffix = "colibri-session";

// A name in use: the lock lives as long as the session is written.
struct SessionPlace {
    QString path;
    std::shared_ptr<QLockFile> lock;
};

class SessionFolder {
public:
    explicit SessionFolder(const QString& dir) : m_dir(dir) {}
    const QString& dir() const { return m_dir; }

    // A new file's path, named by date and time; an existing file is never taken.
    Result<SessionPlace> reserve() const;
    // The newest session that did not end cleanly and that no running program writes, out of the
    // last ten. Reads the disk: not for the GUI thread.
    std::optional<SessionSummary> interrupted() const;
    // Moves the session out of the way; restore() brings it back, purge() deletes what was
    // discarded in earlier runs.
    static Status discard(const QString& path);
    static Status restore(const QString& path);
    void purge() const;

private:
    QString m_dir;
};

}  // namespace colibri::ui
