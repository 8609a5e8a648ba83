// SPDX-License-Identifier: GPL-3.0-or-later
// Models and sessions that were opened before, newest first, in a JSON file that is replaced as a
// whole. GUI thread only; only the small file itself is written on that thread.
#pragma once

#include <QDateTime>
#include <QObject>
#include <QString>
#include <QVector>

#include "engine/base/status.h"

namespace colibri::ui {

class Job;

struct RecentEntry {
    enum class Kind { Model, Session } kind = Kind::Model;
    QString path, name, what;  // what: "q8_0, 24 x 64 experts", "session, 12:38"
    qint64 bytes = 0;
    QDateTime used;
    bool missing = false;  // not stored: set by checkFiles()
};

class RecentList : public QObject {
    Q_OBJECT

public:
    explicit RecentList(const QString& file, QObject* parent = nullptr);
    const QVector<RecentEntry>& entries() const { return m_entries; }
    // What was damaged in the file and is ignored: all of it, or single entries.
    const Status& damage() const { return m_damage; }
    void add(RecentEntry entry);  // moves an existing entry to the top
    void remove(const QString& path);
    void restore(const RecentEntry& entry);  // undoes remove()
    void checkFiles();  // finds missing files and the size of sessions, on another thread

signals:
    void changed();
    void failed(const colibri::Status& status);  // the list could not be written

private:
    void read();
    void write();

    QString m_file;
    QVector<RecentEntry> m_entries;
    Status m_damage;
    Job* m_check = nullptr;
};

QString usedText(const QDateTime& used, const QDateTime& now);  // "10:41", "yesterday", "9 Apr"

}  // namespace colibri::ui
