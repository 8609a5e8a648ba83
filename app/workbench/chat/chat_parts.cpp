// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/workbench/chat/chat_parts.h"

#include <QHBoxLayout>
#include <QKeyEvent>
#include <algorithm>
#include <cmath>

#include "app/workbench/chat/chat_view.h"
#include "app/workbench/platform/text.h"

namespace colibri::ui {
namespace {

// The conversation's title with a chevron; opens the list of chats.
class TitleButton : public QAbstractButton {
public:
    TitleButton() {
        setFocusPolicy(Qt::StrongFocus);
        setSizePolicy(QSizePolicy::Preferred, QSizePolicy::Fixed);
        setFixedHeight(24);
    }
    bool icon = true;
    QSize sizeHint() const override {
        return {int(std::ceil(textWidth(type::bodyBold(), text()))) + (icon ? 22 : 0) + 22, 24};
    }
    QSize minimumSizeHint() const override { return {60, 24}; }

protected:
    void paintEvent(QPaintEvent*) override {
        QPainter p(this);
        double x = 0;
        const QColor ink = tone(Tone::Text1);
        if (icon) {
            paintIcon(p, "chat", QRectF(0, 4, 16, 16), ink);
            x = 22;
        }
        const double room = width() - x - 20;
        drawElided(p, QRectF(x, 0, room, 24), Qt::AlignVCenter, text(), type::bodyBold(), ink);
        x += std::min(room, textWidth(type::bodyBold(), text())) + 6;
        paintIcon(p, "down", QRectF(x, 6, 12, 12), tone(underMouse() ? Tone::Text1 : Tone::Text2));
        if (hasFocus()) focusRing(p, QRectF(rect()).adjusted(-1, 0, 1, 0), 4);
    }
    void enterEvent(QEnterEvent*) override { update(); }
    void leaveEvent(QEvent*) override { update(); }
};

}  // namespace

ChatHead::ChatHead(QWidget* parent) : QWidget(parent) {
    setFixedHeight(32);
    auto* line = new QHBoxLayout(this);
    line->setContentsMargins(12, 0, 6, 1);
    line->setSpacing(6);
    m_title = new TitleButton;
    m_find = new IconButton("search", "Find in chat");
    m_find->describe("Find in chat", "Ctrl+F");
    m_list = new IconButton("list", "Chats");
    m_list->describe("Chats", "Ctrl+H");
    m_new = new IconButton("plus", "New chat");
    m_new->describe("New chat", "Ctrl+N");
    m_more = new IconButton("more", "More actions for this chat");
    line->addWidget(m_title);
    line->addStretch(1);
    for (IconButton* button : {m_find, m_list, m_new, m_more}) line->addWidget(button);
    connect(m_title, &QAbstractButton::clicked, this, &ChatHead::titleClicked);
    connect(m_find, &QAbstractButton::clicked, this, &ChatHead::findWanted);
    connect(m_list, &QAbstractButton::clicked, this, &ChatHead::listWanted);
    connect(m_new, &QAbstractButton::clicked, this, &ChatHead::newWanted);
    connect(m_more, &QAbstractButton::clicked, this, &ChatHead::moreWanted);
}

void ChatHead::setTitle(const QString& title) {
    m_title->setText(title);
    m_title->setAccessibleName("Chat: " + title + ", chats");
    m_title->updateGeometry();
    m_title->update();
}

void ChatHead::setCompact(bool on) {
    m_compact = on;
    static_cast<TitleButton*>(m_title)->icon = !on;
    m_list->setVisible(!on);
    m_title->updateGeometry();
    m_title->update();
}

void ChatHead::resizeEvent(QResizeEvent*) {
    m_title->setMaximumWidth(std::max(80, width() - 150));
}

void ChatHead::paintEvent(QPaintEvent*) {
    QPainter p(this);
    p.fillRect(QRectF(0, height() - 1, width(), 1), tone(Tone::Line1));
}

// ---- FindBar

FindBar::FindBar(QWidget* parent) : QWidget(parent), m_input(new QLineEdit) {
    setFixedHeight(36);
    auto* line = new QHBoxLayout(this);
    line->setContentsMargins(12, 0, 6, 1);
    line->setSpacing(4);
    m_input->setPlaceholderText("Find in this chat");
    m_input->setAccessibleName("Find in this chat");
    m_input->installEventFilter(this);
    auto* up = new IconButton("up", "Previous match");
    auto* down = new IconButton("down", "Next match");
    auto* close = new IconButton("close", "Close find");
    line->addWidget(m_input, 1);
    line->addSpacing(72);
    line->addWidget(up);
    line->addWidget(down);
    line->addWidget(close);
    connect(m_input, &QLineEdit::textChanged, this, &FindBar::changed);
    connect(up, &QAbstractButton::clicked, this, [this] { emit stepped(-1); });
    connect(down, &QAbstractButton::clicked, this, [this] { emit stepped(1); });
    connect(close, &QAbstractButton::clicked, this, &FindBar::close);
    hide();
}

void FindBar::open() {
    show();
    m_input->setFocus();
    m_input->selectAll();
    emit changed(m_input->text());
}

void FindBar::close() {
    if (!isVisible()) return;
    hide();
    emit closed();
}

void FindBar::searchIn(ChatView* view) {
    const auto show = [this, view] {
        if (m_matches > 0) view->showMatch(m_match);
        setCount(m_match, m_matches);
    };
    connect(this, &FindBar::changed, view, [=, this](const QString& text) {
        m_matches = view->find(text);
        m_match = std::max(0, m_matches - 1);
        show();
    });
    connect(this, &FindBar::stepped, view, [=, this](int by) {
        if (m_matches > 0) m_match = (m_match + by + m_matches) % m_matches;
        show();
    });
    connect(this, &FindBar::closed, view, [view] { view->find({}); });
}

void FindBar::setCount(int at, int count) {
    m_count = m_input->text().isEmpty() ? QString()
              : count == 0              ? QString("no match")
                                        : QString("%1 of %2").arg(at + 1).arg(count);
    update();
}

bool FindBar::eventFilter(QObject* object, QEvent* event) {
    if (object == m_input && event->type() == QEvent::KeyPress) {
        auto* key = static_cast<QKeyEvent*>(event);
        if (key->key() == Qt::Key_Escape) {
            close();
            return true;
        }
        if (key->key() == Qt::Key_Return || key->key() == Qt::Key_Enter) {
            emit stepped(key->modifiers() & Qt::ShiftModifier ? -1 : 1);
            return true;
        }
    }
    return QWidget::eventFilter(object, event);
}

void FindBar::paintEvent(QPaintEvent*) {
    QPainter p(this);
    p.fillRect(QRectF(0, height() - 1, width(), 1), tone(Tone::Line1));
    drawText(p, QRectF(m_input->geometry().right() + 8, 0, 70, height()), Qt::AlignVCenter, m_count,
             type::monoSmall(), tone(m_count == "no match" ? Tone::Error : Tone::Text3));
}

// ---- Readout

Readout::Readout(QWidget* parent)
    : QWidget(parent), m_show(new Button("Plots", Button::Kind::Quiet, Button::Size::Dense, this)) {
    setFixedHeight(28);
    m_show->setIconName("chart");
    m_show->setToolTip("Show this moment in the plots");
    m_show->hide();
    connect(m_show, &QAbstractButton::clicked, this, [this] { emit showWanted(m_content.t); });
    setAccessibleName("Token readout");
}

void Readout::setSloMs(double ms) {
    m_slow = str(formatFixed(ms, std::round(ms) == ms || ms >= 100 ? 0 : 1)) + " ms";
    setToolTip("Underlined tokens took longer than the SLO, " + m_slow +
               ".\nIf most tokens of a reply did: tokens over 1.5 times its median.");
    update();
}

void Readout::setContent(const Content& content) {
    m_content = content;
    m_show->setVisible(!content.token.isEmpty() && content.inPlots);
    setAccessibleDescription(content.token + " " + content.gap + ", " + spansText(content.reason));
    update();
}

void Readout::setInset(int right) {
    if (right == m_inset) return;
    m_inset = right;
    layOut();
    update();
}

void Readout::layOut() {
    const QSize size = m_show->sizeHint();
    m_show->setGeometry(width() - m_inset - 8 - size.width(), 3, size.width(), size.height());
}

void Readout::paintEvent(QPaintEvent*) {
    QPainter p(this);
    p.fillRect(QRectF(0, 0, width(), 1), tone(Tone::Line1));
    const double h = 27;
    if (m_content.token.isEmpty()) {
        drawElided(p, QRectF(16, 1, width() - m_inset - 24, h), Qt::AlignVCenter,
                   "Point at a token to see what it waited for; underlined: over " + m_slow,
                   type::dense(), tone(Tone::Text3));
        return;
    }
    // If there is little room, the text of the token is cut and the SLO left out, so that the
    // reason fits.
    const double right = (m_show->isVisibleTo(this) ? m_show->x() : width() - m_inset) - 8;
    const QVector<Span> gap{
        {m_content.gap, m_content.slow ? Tone::Error : Tone::Text1, type::monoSmall()}};
    const QVector<Span> slo{{m_content.slo, Tone::Text3, type::dense()}};
    const double rest = right - 16 - 8 - spansWidth(gap) - 8 - spansWidth(m_content.reason);
    const double token = std::ceil(textWidth(type::monoSmall(), m_content.token)) + 6;
    const double w = std::min(token, std::clamp(rest, 28.0, 160.0));
    double x = 16;
    const QRectF plate(x, 6, w, 16);
    fillBox(p, plate, tone(Tone::Tint), tone(Tone::Accent), 2);
    drawElided(p, plate.adjusted(3, 0, -2, 0), Qt::AlignVCenter, m_content.token, type::monoSmall(),
               tone(Tone::Text1));
    x += w + 8;
    x += 8 + drawSpans(p, QRectF(x, 1, right - x, h), gap);
    if (rest - w >= spansWidth(slo) + 8) x += 8 + drawSpans(p, QRectF(x, 1, right - x, h), slo);
    drawSpans(p, QRectF(x, 1, right - x, h), m_content.reason);
}

Readout::Content tokenReadout(const Turn& turn, int token, double sloMs) {
    const auto formatted = [](double v, int decimals) { return str(formatFixed(v, decimals)); };
    const TokenMark& mark = turn.tokens[token];
    const int from = token > 0 ? turn.tokens[token - 1].end : 0;
    Readout::Content content;
    content.token = turn.text.mid(from, mark.end - from).replace('\n', "⏎");
    if (content.token.startsWith(' ')) content.token[0] = QChar(0x2423);
    content.gap = mark.gapMs > 0 ? formatted(mark.gapMs, 1) + " ms" : QString("first token");
    content.slo = "SLO " + formatted(sloMs, 0);
    content.slow = mark.gapMs > sloMs;
    content.t = mark.t;
    if (mark.layer >= 0) {
        content.reason = {{QString("layer %1 waited ").arg(mark.layer), Tone::Text2, type::dense()},
                          {formatted(mark.waitMs, 1) + " ms", Tone::Text2, type::monoSmall()},
                          {QString(" for expert %1").arg(mark.expert), Tone::Text2, type::dense()}};
        // The sum of all layers, if others waited too.
        if (mark.stallMs > mark.waitMs)
            content.reason << Span{", all layers ", Tone::Text2, type::dense()}
                           << Span{formatted(mark.stallMs, 1) + " ms", Tone::Text2,
                                   type::monoSmall()};
    } else {
        content.reason = {{"no wait for an expert", Tone::Text2, type::dense()}};
    }
    content.inPlots = turn.live;
    return content;
}

}  // namespace colibri::ui
