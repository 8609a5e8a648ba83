// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/workbench/window/file_drop.h"

#include <QFile>
#include <QFileInfo>
#include <QStringDecoder>

#include "app/workbench/backend/session_folder.h"
#include "app/workbench/platform/text.h"
#include "app/workbench/widgets/paint.h"
#include "engine/base/format.h"

namespace colibri::ui {
namespace {

constexpr qint64 kLookedAt = 64 << 10, kLongestText = 1 << 20;

// The end may be within a UTF-8 character.
bool isText(const QByteArray& bytes) {
    if (bytes.contains('\0')) return false;
    QStringDecoder decoder(QStringDecoder::Utf8);
    const QString text = decoder.decode(bytes);
    return !decoder.hasError() && !text.contains(QChar::ReplacementCharacter);
}

}  // namespace

DropKind dropKindOf(const QString& path) {
    const QFileInfo info(path);
    if (info.isDir()) return DropKind::Open;
    const QString suffix = info.suffix().toLower();
    if (suffix == kSessionSuffix || suffix == "gguf" || suffix == "safetensors")
        return DropKind::Open;
    QFile file(path);
    if (!file.open(QIODevice::ReadOnly)) return DropKind::Unknown;
    const QByteArray begin = file.read(kLookedAt);
    if (suffix == "json") {
        if (begin.contains("\"schema\"") && begin.contains("\"knobs\"")) return DropKind::Config;
        if (begin.contains("\"schema\"") && begin.contains("\"turns\"")) return DropKind::Chat;
        if (info.fileName() == "model.json" || info.fileName() == "config.json")
            return DropKind::Open;
    }
    return isText(begin) ? DropKind::Text : DropKind::Unknown;
}

QString droppedText(const QString& path, QString* error) {
    QFile file(path);
    if (!file.open(QIODevice::ReadOnly)) {
        *error = path + ": " + file.errorString();
        return {};
    }
    const QByteArray bytes = file.read(kLongestText + 1);
    if (bytes.size() > kLongestText) {
        *error = path + ": more than " + str(formatGiB(double(kLongestText))) +
                 " of text is too long for a message. Copy the relevant part.";
    } else if (!isText(bytes)) {
        *error = path + ": the file is not UTF-8 text.";
    } else if (bytes.trimmed().isEmpty()) {
        *error = path + ": the file is empty.";
    }
    return error->isEmpty() ? QString::fromUtf8(bytes) : QString();
}

// ---- DropHint

DropHint::DropHint(QWidget* window) : QWidget(window) {
    setAttribute(Qt::WA_TransparentForMouseEvents);
    hide();
}

void DropHint::showFor(const QString& path, bool chatShown) {
    const QString name = QFileInfo(path).fileName();
    const DropKind kind = dropKindOf(path);
    m_possible = kind != DropKind::Unknown && (kind != DropKind::Text || chatShown);
    switch (kind) {
        case DropKind::Open:
            m_text = "Open " + name;
            break;
        case DropKind::Config:
            m_text = "Apply the knobs of " + name;
            break;
        case DropKind::Chat:
            m_text = "Import the chat " + name;
            break;
        case DropKind::Text:
        case DropKind::Unknown:
            m_text = m_possible ? "Put the text of " + name + " into the message"
                                : name + " is not a model, session, config or chat";
            break;
    }
    setAccessibleName(m_text);
    setGeometry(parentWidget()->rect());
    raise();
    show();
    update();
}

void DropHint::paintEvent(QPaintEvent*) {
    QPainter p(this);
    p.fillRect(rect(), tone(Tone::Scrim));
    const Tone ink = m_possible ? Tone::Accent : Tone::Error;
    const double width = std::min(this->width() - 48.0, textWidth(type::section(), m_text) + 76);
    const QRectF plate((this->width() - width) / 2, height() / 2.0 - 28, width, 56);
    fillBox(p, plate, tone(Tone::Bg1), tone(ink), 6);
    paintIcon(p, m_possible ? "folder" : "warn",
              QRectF(plate.left() + 20, plate.top() + 20, 16, 16), tone(ink));
    drawElided(p, plate.adjusted(48, 0, -20, 0), Qt::AlignVCenter, m_text, type::section(),
               tone(Tone::Text1));
    p.setPen(QPen(tone(ink), 2));
    p.setBrush(Qt::NoBrush);
    p.drawRect(rect().adjusted(1, 1, -1, -1));
}

}  // namespace colibri::ui
