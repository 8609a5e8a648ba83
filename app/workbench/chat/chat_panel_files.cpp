// SPDX-License-Identifier: GPL-3.0-or-later
// Chats leave the window: as files of the user's, and as options of the command line.
#include <QFile>
#include <QJsonDocument>

#include "app/workbench/chat/chat_panel.h"
#include "app/workbench/pages/page_parts.h"
#include "app/workbench/session/save_file.h"

namespace colibri::ui {

QString ChatPanel::commandOptions() const {
    const QString system = m_chat.system.trimmed();
    return m_settings.options() + (system.isEmpty() ? QString() : " --system " + shellQuoted(m_chat.system));
}

bool ChatPanel::exportTo(const QString& path, QString* error) const {
    const QByteArray bytes = path.endsWith(".json", Qt::CaseInsensitive)
                                 ? QJsonDocument(m_chat.toJson()).toJson()
                                 : m_chat.markdown().toUtf8();
    const Status status = saveFile(path, bytes);
    if (!status.ok()) *error = QString::fromStdString(status.text());
    return status.ok();
}

bool ChatPanel::importFrom(const QString& path, QString* error) {
    QFile file(path);
    if (!file.open(QIODevice::ReadOnly)) {
        *error = file.errorString();
        return false;
    }
    QJsonParseError parse;
    const QJsonDocument document = QJsonDocument::fromJson(file.readAll(), &parse);
    auto conversation = Conversation::fromJson(document.object());
    if (!conversation) {
        *error = parse.error != QJsonParseError::NoError
                     ? QString("byte %1: %2").arg(parse.offset).arg(parse.errorString())
                     : QString("it is not a chat of this program (schema 1)");
        return false;
    }
    conversation->id = Conversation::create().id;   // never over an existing one
    openConversation(std::move(*conversation));
    save();
    return true;
}

}  // namespace colibri::ui
