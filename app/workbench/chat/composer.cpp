// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/workbench/chat/composer.h"

#include <QAbstractTextDocumentLayout>
#include <QKeyEvent>
#include <QMimeData>
#include <QPainter>
#include <QScrollBar>
#include <algorithm>
#include <cmath>

#include "engine/base/format.h"

namespace colibri::ui {
namespace {

constexpr int kFoot = 32, kMinEdit = 36, kMaxEdit = 160;

}  // namespace

// ---- ContextMeter

ContextMeter::ContextMeter(QWidget* parent) : QWidget(parent) {
    setFixedHeight(24);
    setSizePolicy(QSizePolicy::Fixed, QSizePolicy::Fixed);
}

void ContextMeter::setUse(int used, int limit) {
    if (used == m_used && limit == m_limit) return;
    m_used = used;
    m_limit = limit;
    setToolTip(limit > 0 ? QString("Context: %1 of %2 tokens").arg(used).arg(limit) : QString());
    setAccessibleName("Context " + text());
    updateGeometry();
    update();
}

QString ContextMeter::text() const {
    return QString::fromStdString(formatCount(m_used) + " / " + formatCount(m_limit));
}

QSize ContextMeter::sizeHint() const {
    if (m_limit <= 0) return {0, 24};
    return {48 + 6 + int(std::ceil(textWidth(type::monoSmall(), text()))), 24};
}

void ContextMeter::paintEvent(QPaintEvent*) {
    if (m_limit <= 0) return;
    QPainter p(this);
    const double share = std::clamp(double(m_used) / m_limit, 0.0, 1.0);
    const bool warn = share >= 0.9;
    fillBox(p, QRectF(0, 9, 48, 6), tone(Tone::Bg3), Qt::transparent, 1);
    if (share > 0)
        fillBox(p, QRectF(0, 9, std::max(1.0, 48 * share), 6), tone(warn ? Tone::Warn : Tone::Text3),
                Qt::transparent, 1);
    drawText(p, QRectF(54, 0, width(), 24), Qt::AlignVCenter, text(), type::monoSmall(),
             tone(warn ? Tone::Warn : Tone::Text3));
}

// ---- Composer

// The editor paints its own placeholder in the caption colour.
class Composer::Edit : public QPlainTextEdit {
public:
    QString hint;

protected:
    void paintEvent(QPaintEvent* event) override {
        QPlainTextEdit::paintEvent(event);
        if (!toPlainText().isEmpty()) return;
        QPainter p(viewport());
        drawElided(p, QRectF(0, 0, viewport()->width(), 20), Qt::AlignVCenter, hint, type::chat(),
                   tone(Tone::Text3));
    }
    // Pasted text keeps no formats.
    void insertFromMimeData(const QMimeData* source) override { insertPlainText(source->text()); }
    // A file that is dragged here is the window's, which knows what kinds there are.
    bool canInsertFromMimeData(const QMimeData* source) const override {
        return !source->hasUrls() && QPlainTextEdit::canInsertFromMimeData(source);
    }
};

Composer::Composer(QWidget* parent)
    : QWidget(parent), m_edit(new Edit),
      m_sampling(new Button("", Button::Kind::Quiet, Button::Size::Dense, this)),
      m_send(new Button("Send", Button::Kind::Primary, Button::Size::Dense, this)),
      m_stop(new Button("Stop", Button::Kind::Default, Button::Size::Dense, this)),
      m_meter(new ContextMeter(this)) {
    m_edit->setParent(this);
    m_edit->setFont(type::chat());
    m_edit->setAccessibleName("Message");
    m_edit->setVerticalScrollBarPolicy(Qt::ScrollBarAlwaysOff);
    m_edit->setTabChangesFocus(true);
    m_edit->document()->setDocumentMargin(0);
    m_edit->installEventFilter(this);
    m_edit->viewport()->setAutoFillBackground(false);
    m_sampling->setIconName("knob");
    m_sampling->setPadding(7);
    m_stop->setIconName("stop");
    m_stop->setKey("Esc");
    m_send->setKey("Enter");
    connect(m_edit, &QPlainTextEdit::textChanged, this, [this] {
        grow();
        refresh();
    });
    connect(m_sampling, &QAbstractButton::clicked, this, &Composer::samplingWanted);
    connect(m_send, &QAbstractButton::clicked, this, &Composer::send);
    connect(m_stop, &QAbstractButton::clicked, this, &Composer::stopWanted);
    setFixedHeight(kMinEdit + kFoot);
    refresh();
}

void Composer::setModelName(const QString& name) {
    m_model = name;
    refresh();
}

void Composer::setCompact(bool on) {
    m_compact = on;
    refresh();
}

void Composer::setGenerating(bool on) {
    m_generating = on;
    refresh();
}

void Composer::setAvailable(bool on, const QString& reason) {
    m_available = on;
    m_reason = reason;
    refresh();
}

void Composer::setSummary(const QString& text) {
    m_sampling->setText(text);
    m_sampling->setAccessibleName("Sampling: " + text);
    m_sampling->setToolTip("Sampling: " + text);
    place();
}

void Composer::setContext(int used, int limit) {
    m_meter->setUse(used, limit);
    place();
}

void Composer::setText(const QString& text) {
    m_edit->setPlainText(text);
    m_edit->moveCursor(QTextCursor::End);
}

void Composer::refresh() {
    auto* edit = static_cast<Edit*>(m_edit);
    edit->hint = !m_reason.isEmpty() ? m_reason
                 : m_compact ? QString("Message (Enter to send)") : "Message " + m_model;
    m_sampling->setVisible(!m_compact);
    m_send->setVisible(!m_generating);
    m_stop->setVisible(m_generating);
    m_send->setEnabled(m_available && !m_edit->toPlainText().trimmed().isEmpty());
    m_edit->viewport()->update();
    place();
}

void Composer::grow() {
    const QTextDocument* document = m_edit->document();
    double lines = 0;
    for (QTextBlock block = document->begin(); block.isValid(); block = block.next())
        lines += std::max(1, block.layout() ? block.layout()->lineCount() : 1);
    const QFontMetricsF metrics(type::chat());
    const int want = int(std::ceil(lines * metrics.lineSpacing())) + 16;
    const int height = std::clamp(std::max(kMinEdit, want), kMinEdit, kMaxEdit);
    m_edit->setVerticalScrollBarPolicy(want > kMaxEdit ? Qt::ScrollBarAsNeeded
                                                       : Qt::ScrollBarAlwaysOff);
    if (height + kFoot != this->height()) setFixedHeight(height + kFoot);
    place();
}

void Composer::place() {
    m_edit->setGeometry(13, 10, width() - 26, height() - kFoot - 10);
    const int y = height() - kFoot + 1;
    Button* action = m_generating ? m_stop : m_send;
    const int w = action->sizeHint().width();
    action->setGeometry(width() - 7 - w, y, w, 24);
    const int meter = m_meter->sizeHint().width();
    const int meterX = action->x() - 10 - meter;
    m_meter->setGeometry(meterX, y, meter, 24);
    m_sampling->setGeometry(9, y, std::min(m_sampling->sizeHint().width(), meterX - 16), 24);
}

void Composer::resizeEvent(QResizeEvent*) {
    grow();
    place();
}

void Composer::mousePressEvent(QMouseEvent*) { m_edit->setFocus(); }

void Composer::send() {
    const QString text = m_edit->toPlainText().trimmed();
    if (text.isEmpty() || !m_available || m_generating) return;
    emit sendWanted(text);
}

bool Composer::eventFilter(QObject* object, QEvent* event) {
    if (object == m_edit) {
        if (event->type() == QEvent::KeyPress) {
            auto* key = static_cast<QKeyEvent*>(event);
            if (key->key() == Qt::Key_PageUp || key->key() == Qt::Key_PageDown) {
                emit pageWanted(key->key() == Qt::Key_PageUp ? -1 : 1);
                return true;
            }
            const bool enter = key->key() == Qt::Key_Return || key->key() == Qt::Key_Enter;
            if (enter && !(key->modifiers() & Qt::ShiftModifier)) {
                send();
                return true;
            }
        } else if (event->type() == QEvent::FocusIn || event->type() == QEvent::FocusOut) {
            update();
        }
    }
    return QWidget::eventFilter(object, event);
}

void Composer::paintEvent(QPaintEvent*) {
    QPainter p(this);
    fillBox(p, rect(), tone(Tone::Bg2), tone(Tone::Line2), 6);
    if (m_edit->hasFocus()) focusRing(p, rect(), 6);
}

}  // namespace colibri::ui
