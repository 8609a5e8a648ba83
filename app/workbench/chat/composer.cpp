// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/workbench/chat/composer.h"

#include <QAbstractTextDocumentLayout>
#include <QKeyEvent>
#include <QPainter>
#include <QScrollBar>
#include <algorithm>
#include <cmath>

#include "app/workbench/platform/text.h"

namespace colibri::ui {
namespace {

constexpr int kFoot = 32, kMinEdit = 36, kMaxEdit = 160;

}  // namespace

// ---- ContextMeter

ContextMeter::ContextMeter(QWidget* parent) : QWidget(parent) {
    setFixedHeight(24);
    setSizePolicy(QSizePolicy::Fixed, QSizePolicy::Fixed);
}

void ContextMeter::setUse(int used, int draft, int limit) {
    if (used == m_used && draft == m_draft && limit == m_limit) return;
    m_used = used;
    m_draft = draft;
    m_limit = limit;
    QString tip = QString("Context: %1 of %2 tokens").arg(count(used), count(limit));
    if (draft > 0) tip += QString(", %1 of them in your message").arg(count(draft));
    setToolTip(limit > 0 ? tip : QString());
    setAccessibleName("Context " + text());
    updateGeometry();
    update();
}

QString ContextMeter::text() const {
    return count(m_used) + " / " + count(m_limit);
}

QSize ContextMeter::sizeHint() const {
    if (m_limit <= 0) return {0, 24};
    return {48 + 6 + int(std::ceil(textWidth(type::monoSmall(), text()))), 24};
}

void ContextMeter::paintEvent(QPaintEvent*) {
    if (m_limit <= 0) return;
    QPainter p(this);
    const double share = std::clamp(double(m_used) / m_limit, 0.0, 1.0);
    const Tone ink = m_used >= m_limit ? Tone::Error : share >= 0.9 ? Tone::Warn : Tone::Text3;
    fillBox(p, QRectF(0, 9, 48, 6), tone(Tone::Bg3), Qt::transparent, 1);
    if (share > 0)
        fillBox(p, QRectF(0, 9, std::max(1.0, 48 * share), 6), tone(ink), Qt::transparent, 1);
    drawText(p, QRectF(54, 0, width(), 24), Qt::AlignVCenter, text(), type::monoSmall(), tone(ink));
}

// ---- Composer

Composer::Composer(QWidget* parent)
    : QWidget(parent),
      m_edit(new MessageEdit(this)),
      m_notice(new Note(this)),
      m_action(new LinkButton("", type::caption(), this)),
      m_sampling(new Button("", Button::Kind::Quiet, Button::Size::Dense, this)),
      m_send(new Button("Send", Button::Kind::Primary, Button::Size::Dense, this)),
      m_stop(new Button("Stop", Button::Kind::Default, Button::Size::Dense, this)),
      m_meter(new ContextMeter(this)) {
    m_edit->setAccessibleName("Message");
    m_edit->setVerticalScrollBarPolicy(Qt::ScrollBarAlwaysOff);
    m_edit->setHorizontalScrollBarPolicy(Qt::ScrollBarAlwaysOff);
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
        emit drafted();
    });
    connect(m_edit, &MessageEdit::submitted, this, &Composer::send);
    connect(m_edit, &MessageEdit::pageWanted, this, &Composer::pageWanted);
    connect(m_action, &QAbstractButton::clicked, this, &Composer::noticeAction);
    m_notice->hide();
    m_action->hide();
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
    layOut();
}

void Composer::setContext(int used, int draft, int limit) {
    m_meter->setUse(used, draft, limit);
    layOut();
}

QString Composer::notice() const {
    return m_notice->isVisibleTo(this) ? m_notice->text() : QString();
}

void Composer::setNotice(const QString& text, bool stops, const QString& action) {
    const Tone ink = stops ? Tone::Error : Tone::Warn;
    const bool stopped = stops && !text.isEmpty();
    if (text == m_notice->text() && stopped == m_stopped && action == m_action->text()) return;
    m_stopped = stopped;
    m_notice->setNote(text, text.isEmpty() ? "" : stops ? "error" : "warn", ink, Tone::Text2);
    m_notice->setVisible(!text.isEmpty());
    m_action->setText(action);
    m_action->setVisible(!text.isEmpty() && !action.isEmpty());
    grow();
    refresh();
}

void Composer::setEscapeStops(bool on) {
    m_stop->setKey(on ? "Esc" : "Ctrl+.");
    layOut();
}

void Composer::setText(const QString& text) {
    m_edit->setPlainText(text);
    m_edit->moveCursor(QTextCursor::End);
}

void Composer::refresh() {
    m_edit->setHint(!m_reason.isEmpty() ? m_reason
                    : m_compact         ? QString("Message (Enter to send)")
                                        : "Message " + m_model);
    m_sampling->setVisible(!m_compact);
    m_send->setVisible(!m_generating);
    m_stop->setVisible(m_generating);
    m_send->setEnabled(m_available && !m_stopped && !m_edit->toPlainText().trimmed().isEmpty());
    layOut();
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
    const int whole = height + kFoot + noticeHeight();
    if (whole != this->height()) setFixedHeight(whole);
    layOut();
}

int Composer::noticeHeight() const {
    if (!m_notice->isVisibleTo(this)) return 0;
    const int link = m_action->isVisibleTo(this) ? m_action->sizeHint().width() + 8 : 0;
    return m_notice->heightForWidth(width() - 26 - link) + 6;
}

void Composer::layOut() {
    const int notice = noticeHeight();
    m_edit->setGeometry(13, 10, width() - 26, height() - kFoot - 10 - notice);
    const int link = m_action->isVisibleTo(this) ? m_action->sizeHint().width() : 0;
    m_notice->setGeometry(13, height() - kFoot - notice, width() - 26 - (link ? link + 8 : 0),
                          notice - 2);
    m_action->setGeometry(width() - 13 - link, height() - kFoot - notice - 2, link,
                          m_action->sizeHint().height());
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
    layOut();
}

void Composer::mousePressEvent(QMouseEvent*) {
    m_edit->setFocus();
}

void Composer::send() {
    const QString text = m_edit->toPlainText().trimmed();
    if (text.isEmpty() || !m_available || m_generating || m_stopped) return;
    emit sendWanted(text);
}

bool Composer::eventFilter(QObject* object, QEvent* event) {
    // In an empty field End belongs to the plots.
    if (object == m_edit && event->type() == QEvent::ShortcutOverride &&
        m_edit->document()->isEmpty() && static_cast<QKeyEvent*>(event)->key() == Qt::Key_End) {
        event->ignore();
        return true;
    }
    if (object == m_edit && (event->type() == QEvent::FocusIn || event->type() == QEvent::FocusOut))
        update();
    return QWidget::eventFilter(object, event);
}

void Composer::paintEvent(QPaintEvent*) {
    QPainter p(this);
    fillBox(p, rect(), tone(Tone::Bg2), tone(Tone::Line2), 6);
    if (m_edit->hasFocus()) focusRing(p, rect(), 6);
}

}  // namespace colibri::ui
