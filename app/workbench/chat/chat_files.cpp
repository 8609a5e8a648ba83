// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/workbench/chat/chat_files.h"

#include <QFile>
#include <QJsonDocument>

#include "app/workbench/platform/save_file.h"

namespace colibri::ui {

Status exportConversation(const Conversation& conversation, const QString& path) {
    const bool json = path.endsWith(".json", Qt::CaseInsensitive);
    return saveFile(path, json ? QJsonDocument(conversation.toJson()).toJson()
                               : conversation.markdown().toUtf8());
}

Result<Conversation> importConversation(const QString& path) {
    QFile file(path);
    if (!file.open(QIODevice::ReadOnly))
        return Status(Code::BadInput, (path + ": " + file.errorString()).toStdString());
    QJsonParseError parse;
    const QJsonDocument document = QJsonDocument::fromJson(file.readAll(), &parse);
    auto conversation = Conversation::fromJson(document.object());
    if (!conversation) {
        const QString why = parse.error != QJsonParseError::NoError
                                ? QString("byte %1: %2").arg(parse.offset).arg(parse.errorString())
                                : QString("it is not a chat from this program (schema 1)");
        return Status(Code::BadInput, (path + ": " + why).toStdString());
    }
    conversation->id = Conversation::create().id;
    return std::move(*conversation);
}

}  // namespace colibri::ui
