// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/workbench/backend/session_folder.h"

#include <QDateTime>
#include <QDir>
#include <QFile>
#include <QLockFile>
#include <algorithm>

#include "app/workbench/platform/text.h"
#include "engine/base/file.h"
#include "profiler/session/session_files.h"

namespace colibri::ui {
namespace {

constexpr int kLookedAt = 10;  // newest sessions; older ones were offered before

QString discardedDir(const QString& path) {
    return QFileInfo(path).path() + "/discarded";
}

Status moveSession(const QString& from, const QString& to) {
    const auto sources = sessionFiles(from.toStdString()), targets = sessionFiles(to.toStdString());
    for (size_t i = 0; i < sources.size(); ++i) {
        QFile file(exactText(sources[i].string()));
        if (!file.exists()) continue;
        if (!file.rename(exactText(targets[i].string()))) {
            return Status(Code::IoError, sources[i].string() + ": cannot move it to " +
                                             targets[i].string() + ": " +
                                             file.errorString().toStdString());
        }
    }
    return {};
}

}  // namespace

Result<ReservedSession> SessionFolder::reserve() const {
    if (!QDir().mkpath(m_dir)) {
        return Status(Code::IoError, m_dir.toStdString() + ": cannot create the sessions folder",
                      "Check its permissions and the free disk space");
    }
    const QString stem = m_dir + "/" + QDateTime::currentDateTime().toString("yyyy-MM-dd_HH-mm-ss");
    for (int n = 1; n < 1000; ++n) {
        ReservedSession reserved;
        reserved.path = stem + (n > 1 ? QString("-%1").arg(n) : QString()) + "." + kSessionSuffix;
        if (QFile::exists(reserved.path)) continue;
        reserved.lock = std::make_shared<QLockFile>(reserved.path + ".lock");
        reserved.lock->setStaleLockTime(0);  // locks do not expire: a session may last for days
        if (reserved.lock->tryLock(0) && !QFile::exists(reserved.path)) return reserved;
    }
    return Status(Code::IoError,
                  m_dir.toStdString() + ": cannot choose a name for a new session file",
                  "Check the permissions of the folder");
}

std::optional<SessionSummary> SessionFolder::interrupted() const {
    const QDir dir(m_dir);
    const auto files = dir.entryInfoList({"*." + kSessionSuffix}, QDir::Files, QDir::Time);
    for (const QFileInfo& file : files.mid(0, kLookedAt)) {
        QLockFile lock(file.filePath() + ".lock");
        lock.setStaleLockTime(0);
        if (!lock.tryLock(0)) continue;  // a running program records it
        auto summary = readSessionSummary(file.filePath().toStdString());
        if (summary && !summary->endedCleanly) return std::move(*summary);
    }
    return std::nullopt;
}

Status SessionFolder::discard(const QString& path) {
    const QString to = discardedDir(path);
    if (!QDir().mkpath(to))
        return Status(Code::IoError, to.toStdString() + ": cannot create the folder");
    return moveSession(path, to + "/" + QFileInfo(path).fileName());
}

Status SessionFolder::restore(const QString& path) {
    return moveSession(discardedDir(path) + "/" + QFileInfo(path).fileName(), path);
}

void SessionFolder::purge() const {
    QDir(m_dir + "/discarded").removeRecursively();
}

}  // namespace colibri::ui
