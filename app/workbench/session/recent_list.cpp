// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/workbench/session/recent_list.h"

#include <QFile>
#include <QFileInfo>
#include <QLocale>
#include <QSet>
#include <algorithm>
#include <memory>
#include <nlohmann/json.hpp>

#include "app/workbench/session/job.h"
#include "app/workbench/session/save_file.h"
#include "engine/base/file.h"

namespace colibri::ui {
namespace {

constexpr int kMaxEntries = 40;
constexpr int kSchema = 1;

}  // namespace

RecentList::RecentList(const QString& file, QObject* parent) : QObject(parent), m_file(file) {
    read();
}

void RecentList::read() {
    const auto text = readTextFile(m_file.toStdString(), 4 << 20);
    if (!text) return;  // first start
    const auto json = nlohmann::json::parse(*text, nullptr, false);
    if (!json.is_object() || json.value("schema", 0) != kSchema || !json.contains("recent") ||
        !json["recent"].is_array()) {
        return;
    }
    for (const auto& item : json["recent"]) {
        if (!item.is_object()) continue;
        const auto string = [&](const char* key) {
            return item.contains(key) && item[key].is_string()
                       ? QString::fromStdString(item[key].get<std::string>())
                       : QString();
        };
        RecentEntry entry;
        entry.kind =
            string("kind") == "session" ? RecentEntry::Kind::Session : RecentEntry::Kind::Model;
        entry.path = string("path");
        entry.name = string("name");
        entry.what = string("what");
        entry.bytes = item.contains("bytes") && item["bytes"].is_number_integer()
                          ? item["bytes"].get<qint64>()
                          : 0;
        entry.used = QDateTime::fromString(string("used"), Qt::ISODate);
        if (!entry.path.isEmpty()) m_entries.push_back(entry);
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
    const nlohmann::ordered_json json = {{"schema", kSchema}, {"recent", std::move(list)}};
    // A list that cannot be written is no reason to stop anybody: it is kept for this run.
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
    const auto bytes = std::make_shared<QHash<QString, qint64>>();   // of session files
    m_check = new Job(
        [paths, missing, bytes](const ProgressFn&, const CancelFlag* cancel) {
            for (const QString& path : paths) {
                if (cancel->load()) return Status(Code::Cancelled, "cancelled");
                const QString probe = QFileInfo(path).isDir() ? path + "/model.json" : path;
                const QFileInfo info(probe);
                if (!info.exists()) missing->insert(path);
                else if (probe == path) bytes->insert(path, info.size() + QFileInfo(path + "-wal").size());
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
