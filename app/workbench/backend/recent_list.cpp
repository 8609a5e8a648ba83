// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/workbench/backend/recent_list.h"

#include <QFile>
#include <QFileInfo>
#include <QLocale>
#include <QSet>
#include <algorithm>
#include <memory>
#include <nlohmann/json.hpp>

#include "app/workbench/platform/job.h"
#include "app/workbench/platform/save_file.h"
#include "app/workbench/platform/text.h"
#include "engine/base/file.h"
#include "engine/base/json_fields.h"
#include "profiler/session/session_files.h"

namespace colibri::ui {
namespace {

constexpr int kMaxEntries = 40;
constexpr int kRecentSchema = 1;

}  // namespace

RecentList::RecentList(const QString& file, QObject* parent) : QObject(parent), m_file(file) {
    read();
}

void RecentList::read() {
    const auto text = readTextFile(m_file.toStdString(), 4 << 20);
    if (!text) return;  // first start
    const auto json = parseJson(*text, m_file.toStdString());
    if (!json) {
        m_damage = json.status();
        return;
    }
    Fields fields(*json, m_file.toStdString());
    fields.integer("schema", kRecentSchema, kRecentSchema);
    const nlohmann::json* list = fields.array("recent");
    if (!fields.status().ok()) {
        m_damage = fields.status();
        return;
    }
    for (const auto& item : *list) {
        Fields entry(item, m_file.toStdString() + ", an entry");
        RecentEntry read;
        read.kind = entry.text("kind", "") == "session" ? RecentEntry::Kind::Session
                                                        : RecentEntry::Kind::Model;
        read.path = exactText(entry.text("path"));
        read.name = exactText(entry.text("name", ""));
        read.what = exactText(entry.text("what", ""));
        read.bytes = entry.integer("bytes", 0, INT64_MAX, 0);
        read.used = QDateTime::fromString(exactText(entry.text("used", "")), Qt::ISODate);
        if (!entry.status().ok()) {
            if (m_damage.ok()) m_damage = entry.status();
        } else if (!read.path.isEmpty()) {
            m_entries.push_back(read);
        }
    }
}

void RecentList::write() {
    auto list = nlohmann::ordered_json::array();
    for (const RecentEntry& entry : m_entries) {
        list.push_back({{"kind", entry.kind == RecentEntry::Kind::Session ? "session" : "model"},
                        {"path", entry.path.toStdString()},
                        {"name", entry.name.toStdString()},
                        {"what", entry.what.toStdString()},
                        {"bytes", entry.bytes},
                        {"used", entry.used.toString(Qt::ISODate).toStdString()}});
    }
    const nlohmann::ordered_json json = {{"schema", kRecentSchema}, {"recent", std::move(list)}};
    // If the list cannot be written, it remains until the program ends.
    if (const Status status = saveFile(m_file, QByteArray::fromStdString(json.dump(1) + "\n"));
        !status.ok()) {
        emit failed(status);
    }
}

void RecentList::add(RecentEntry entry) {
    m_entries.removeIf([&](const RecentEntry& e) { return e.path == entry.path; });
    m_entries.push_front(std::move(entry));
    if (m_entries.size() > kMaxEntries) m_entries.resize(kMaxEntries);
    write();
    emit changed();
}

void RecentList::remove(const QString& path) {
    if (m_entries.removeIf([&](const RecentEntry& e) { return e.path == path; }) == 0) return;
    write();
    emit changed();
}

void RecentList::restore(const RecentEntry& entry) {
    const auto at = std::find_if(m_entries.begin(), m_entries.end(),
                                 [&](const RecentEntry& e) { return e.used < entry.used; });
    m_entries.insert(at, entry);
    write();
    emit changed();
}

void RecentList::checkFiles() {
    if (m_check || m_entries.isEmpty()) return;
    QStringList paths;
    for (const RecentEntry& entry : m_entries) paths.push_back(entry.path);
    const auto missing = std::make_shared<QSet<QString>>();
    const auto bytes = std::make_shared<QHash<QString, qint64>>();  // of session files
    m_check = new Job(
        [paths, missing, bytes](const ProgressFn&, const CancelFlag* cancel) {
            for (const QString& path : paths) {
                if (cancel->load()) return Status(Code::Cancelled, "cancelled");
                const QString probe = QFileInfo(path).isDir() ? path + "/model.json" : path;
                const QFileInfo info(probe);
                if (!info.exists())
                    missing->insert(path);
                else if (probe == path)
                    bytes->insert(path, sessionBytes(path.toStdString()));
            }
            return Status();
        },
        this);
    connect(m_check, &Job::finished, this, [this, missing, bytes] {
        m_check = nullptr;
        bool differs = false, resized = false;
        for (RecentEntry& entry : m_entries) {
            const bool gone = missing->contains(entry.path);
            differs |= gone != entry.missing;
            entry.missing = gone;
            const qint64 size = bytes->value(entry.path, entry.bytes);
            if (entry.kind != RecentEntry::Kind::Session || size == entry.bytes) continue;
            entry.bytes = size;
            resized = true;
        }
        if (resized) write();
        if (differs || resized) emit changed();
    });
    m_check->start();
}

QString usedText(const QDateTime& used, const QDateTime& now) {
    if (!used.isValid()) return "n/a";
    const qint64 days = used.date().daysTo(now.date());
    if (days == 0) return used.toString("HH:mm");
    if (days == 1) return "yesterday";
    const QString format = used.date().year() == now.date().year() ? "d MMM" : "d MMM yyyy";
    return QLocale::c().toString(used, format);
}

}  // namespace colibri::ui
