// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/workbench/chat/chat_store.h"

#include <QDir>
#include <QFile>
#include <QJsonDocument>
#include <QStandardPaths>
#include <algorithm>
#include <utility>

#include "app/workbench/platform/save_file.h"
#include "app/workbench/platform/text.h"

namespace colibri::ui {
namespace {

constexpr qsizetype kSearchText = 20000;
constexpr qint64 kLargestFile = 256 << 20;

std::optional<QJsonObject> readObject(const QString& path) {
    QFile file(path);
    if (!file.open(QIODevice::ReadOnly) || file.size() > kLargestFile) return std::nullopt;
    const QJsonDocument document = QJsonDocument::fromJson(file.readAll());
    return document.isObject() ? std::optional(document.object()) : std::nullopt;
}

QByteArray compact(const QJsonObject& json) {
    return QJsonDocument(json).toJson(QJsonDocument::Compact);
}

// "chats/ID.json" -> "chats/ID.reply"
QString replyPath(const QString& path) {
    return path.chopped(5) + ".reply";
}

// A reply that was running when the program was killed, unless the chat was saved later.
void takeReply(const QString& path, Conversation* conversation) {
    const auto saved = readObject(path);
    if (!saved) return;
    const int index = (*saved)["index"].toInt(-1);
    if (index < 0 || index >= conversation->turns.size()) return;
    const Turn before = conversation->turns[index];
    if (before.figures.stop != kInterrupted ||
        !conversation->putTurn(index, (*saved)["turn"].toObject()))
        return;
    if (conversation->turns[index].text.size() < before.text.size())
        conversation->turns[index] = before;
}

std::optional<Conversation> readFile(const QString& path) {
    const auto json = readObject(path);
    auto conversation = json ? Conversation::fromJson(*json) : std::nullopt;
    if (conversation) takeReply(replyPath(path), &*conversation);
    return conversation;
}

Status writeFile(const QString& path, const Conversation& conversation) {
    const Status status = saveFile(path, compact(conversation.toJson()));
    if (status.ok()) QFile::remove(replyPath(path));
    return status;
}

// A file name from an id, which may come from a file: only harmless characters are kept.
QString safeId(QString id) {
    for (QChar& c : id)
        if (!c.isLetterOrNumber() && c != '-') c = '_';
    return id;
}

}  // namespace

ChatStore::ChatStore(const QString& folder, QObject* parent) : QObject(parent), m_folder(folder) {}

ChatStore::~ChatStore() = default;

void ChatStore::report(const Status& status) {
    if (status.ok()) return;
    m_gui.post([this, status] { emit failed(str(status.text())); });
}

QString ChatStore::defaultFolder() {
    return QStandardPaths::writableLocation(QStandardPaths::AppDataLocation) + "/chats";
}

QString ChatStore::pathOf(const QString& id) const {
    return m_folder + "/" + safeId(id) + ".json";
}

ChatSummary ChatStore::summarize(const Conversation& c) {
    QString model;
    for (const int index : c.path())
        if (!c.turns[index].model.isEmpty()) model = c.turns[index].model;
    return {c.id,  c.title,   c.turnCount(),
            model, c.changed, c.plainText().left(kSearchText).toLower()};
}

void ChatStore::list() {
    m_worker.post([this, folder = m_folder] {
        QVector<ChatSummary> found;
        for (const QFileInfo& info : QDir(folder).entryInfoList({"*.json"}, QDir::Files))
            if (const auto conversation = readFile(info.filePath()))
                found << summarize(*conversation);
        m_gui.post([this, found = std::move(found)] {
            for (const ChatSummary& summary : found) {
                const bool known =
                    std::any_of(m_summaries.begin(), m_summaries.end(),
                                [&](const ChatSummary& s) { return s.id == summary.id; });
                if (!known) m_summaries << summary;
            }
            sort();
            emit listed();
        });
    });
}

void ChatStore::note(const Conversation& conversation) {
    m_summaries.removeIf([&](const ChatSummary& s) { return s.id == conversation.id; });
    m_summaries.prepend(summarize(conversation));
    sort();
    emit listed();
}

// Sorted by the time of change, so a restored chat returns to its position.
void ChatStore::sort() {
    std::stable_sort(
        m_summaries.begin(), m_summaries.end(),
        [](const ChatSummary& a, const ChatSummary& b) { return a.changed > b.changed; });
}

void ChatStore::save(const Conversation& conversation) {
    if (conversation.isEmpty()) return;
    note(conversation);
    m_worker.post(
        [this, folder = m_folder, path = pathOf(conversation.id), copy = conversation]() mutable {
            QDir().mkpath(folder);
            report(writeFile(path, copy));
            // The copy shares its data with the original, which the GUI thread changes. It is
            // destroyed there, so that the reference count is not decremented while a change is in
            // progress.
            m_gui.post([copy = std::move(copy)] {});
        });
}

void ChatStore::saveReply(const Conversation& conversation, int turn) {
    Conversation alone;
    alone.turns << conversation.turns[turn];
    m_worker.post([this, path = replyPath(pathOf(conversation.id)), turn,
                   alone = std::move(alone)]() mutable {
        report(saveFile(path, compact({{"index", turn}, {"turn", alone.turnJson(0)}})));
        m_gui.post([alone = std::move(alone)] {});  // as in save()
    });
}

void ChatStore::load(const QString& id, std::function<void(std::optional<Conversation>)> done) {
    m_worker.post([this, path = pathOf(id), done = std::move(done)] {
        m_gui.post([done, conversation = readFile(path)] { done(conversation); });
    });
}

void ChatStore::remove(const QString& id) {
    m_removed.reset();
    m_removing = true;
    load(id, [this](std::optional<Conversation> conversation) {
        m_removing = false;
        m_removed = std::move(conversation);
        if (std::exchange(m_restoreWanted, false)) restore();
    });
    m_summaries.removeIf([&](const ChatSummary& s) { return s.id == id; });
    m_worker.post([path = pathOf(id)] {
        QFile::remove(path);
        QFile::remove(replyPath(path));
    });
    emit listed();
}

bool ChatStore::restore() {
    if (m_removing) return m_restoreWanted = true;  // it is still being read
    if (!m_removed) return false;
    save(*m_removed);
    m_removed.reset();
    return true;
}

void ChatStore::rename(const QString& id, const QString& title) {
    for (ChatSummary& summary : m_summaries)
        if (summary.id == id) summary.title = title;
    emit listed();
    // One task, so that a chat that is opened meanwhile has either title, but no outdated text.
    m_worker.post([this, path = pathOf(id), title] {
        auto conversation = readFile(path);
        if (!conversation) return;
        conversation->title = title;
        report(writeFile(path, *conversation));
    });
}

void ChatStore::flush() {
    m_worker.waitForAll();
}

}  // namespace colibri::ui
