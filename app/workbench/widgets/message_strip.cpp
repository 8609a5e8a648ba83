// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/workbench/widgets/message_strip.h"

#include <algorithm>
#include <cmath>

#include "app/workbench/platform/text.h"
#include "app/workbench/widgets/page_parts.h"

namespace colibri::ui {
namespace {

struct Look {
    const char* icon;
    Tone ground, ink;
};

Look lookOf(MessageKind kind) {
    switch (kind) {
        case MessageKind::Ok:
            return {"check", Tone::OkBg, Tone::Ok};
        case MessageKind::Warning:
            return {"warn", Tone::WarnBg, Tone::Warn};
        case MessageKind::Error:
            return {"error", Tone::ErrorBg, Tone::Error};
        case MessageKind::Info:
            break;
    }
    return {"info", Tone::Bg2, Tone::Text2};
}

constexpr int kTextLeft = 42, kTextTop = 11, kHeight = 40;

}  // namespace

void paintMessageGround(QPainter& p, const QRectF& rect, MessageKind kind, const QPointF& icon,
                        bool framed) {
    const Look look = lookOf(kind);
    if (framed) {
        fillBox(p, rect, tone(look.ground), tone(Tone::Line1), 4);
    } else {
        p.fillRect(rect, tone(look.ground));
        p.fillRect(QRectF(rect.left(), rect.bottom() - 1, rect.width(), 1), tone(Tone::Line1));
    }
    paintIcon(p, look.icon, QRectF(icon, QSizeF(16, 16)), tone(look.ink));
}

double drawMessageLines(QPainter* p, const QPointF& at, double room,
                        const QVector<MessageLine>& lines) {
    double y = 0;
    for (const MessageLine& line : lines) {
        if (line.text.isEmpty()) continue;
        y += drawWrapped(p, at + QPointF(0, y), room, line.text, line.font, line.height,
                         tone(line.tone));
    }
    return y;
}

MessageStrip::MessageStrip(QWidget* parent) : QWidget(parent) {
    QSizePolicy policy(QSizePolicy::Preferred, QSizePolicy::Fixed);
    policy.setHeightForWidth(true);
    setSizePolicy(policy);
    hide();
}

void MessageStrip::showMessage(Kind kind, const QString& text, const QString& detail) {
    m_kind = kind;
    m_text = shown(text);
    m_detail = shown(detail);
    clearActions();
    setAccessibleName(text + " " + detail);
    setVisible(true);
    updateGeometry();
    update();
}

void MessageStrip::showError(const QString& what, const Status& status) {
    QString detail = str(status.message());
    if (!detail.endsWith('.')) detail += ".";
    QString hint = str(status.hint());
    if (!hint.isEmpty()) detail += " " + hint + (hint.endsWith('.') ? "" : ".");
    showMessage(Kind::Error, what, detail);
    addCopy(m_text + " " + m_detail);
    addClose();
}

void MessageStrip::addCopy(const QString& text) {
    Button* copy = addAction("Copy", true);
    copy->setIconName("copy");
    connect(copy, &QAbstractButton::clicked, this, [text] { copyText(text); });
}

Button* MessageStrip::addAction(const QString& text, bool quiet) {
    auto* button = new Button(text, quiet ? Button::Kind::Quiet : Button::Kind::Default,
                              Button::Size::Dense, this);
    put(button);
    return button;
}

IconButton* MessageStrip::addClose() {
    if (m_close) return m_close;
    auto* close = new IconButton("close", "Close message", 24, this);
    connect(close, &QAbstractButton::clicked, this, &QWidget::hide);
    put(close);
    return m_close = close;
}

void MessageStrip::put(QAbstractButton* action) {
    // Close is always the last button.
    m_actions.insert(m_actions.size() - (m_close ? 1 : 0), action);
    action->show();
    placeActions();
}

void MessageStrip::clearActions() {
    for (QAbstractButton* action : m_actions) {
        action->hide();
        action->deleteLater();  // may be the button whose click is being handled
    }
    m_actions.clear();
    m_close = nullptr;
    updateGeometry();
}

void MessageStrip::placeActions() {
    int right = width() - 16;
    for (qsizetype i = m_actions.size(); i-- > 0;) {
        const QSize size = m_actions[i]->sizeHint();
        m_actions[i]->setGeometry(right - size.width(), 8, size.width(), size.height());
        right -= size.width() + 10;
    }
    updateGeometry();
}

int MessageStrip::textRoom(int width) const {
    int actions = 16;
    for (const QAbstractButton* action : m_actions) actions += action->sizeHint().width() + 10;
    return std::max(80, width - kTextLeft - actions - 8);
}

bool MessageStrip::oneLine(int room) const {
    return textWidth(type::body(), m_text + " " + m_detail) <= room && !m_detail.contains('\n');
}

int MessageStrip::heightForWidth(int width) const {
    const int room = textRoom(width);
    if (oneLine(room)) return kHeight;
    return int(std::ceil(drawLines(nullptr, room))) + 2 * kTextTop;
}

double MessageStrip::drawLines(QPainter* p, int room) const {
    return drawMessageLines(
        p, {kTextLeft, kTextTop}, room,
        {{m_text, type::body(), 18, Tone::Text1}, {m_detail, type::body(), 18, Tone::Text2}});
}

void MessageStrip::resizeEvent(QResizeEvent*) {
    placeActions();
}

void MessageStrip::paintEvent(QPaintEvent*) {
    QPainter p(this);
    paintMessageGround(p, rect(), m_kind, {16, 12}, false);
    const int room = textRoom(width());
    if (oneLine(room)) {
        drawSpans(p, QRectF(kTextLeft, 0, room, height() - 1),
                  {{m_text, Tone::Text1, type::body()}, {m_detail, Tone::Text2, type::body()}}, 4);
        return;
    }
    drawLines(&p, room);
}

}  // namespace colibri::ui
