// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/workbench/chat/chat_view.h"

#include <QKeyEvent>
#include <QMouseEvent>
#include <QPainter>
#include <QPlainTextEdit>
#include <QScrollBar>
#include <algorithm>

#include "app/workbench/platform/text.h"
#include "app/workbench/widgets/focus.h"
#include "engine/base/format.h"

namespace colibri::ui {
namespace {

constexpr int kTextWidth = 720, kUserGap = 12, kModelGap = 14, kLastGap = 2, kFoldHeight = 26;

// The button with this name in another turn; at the last branch the one for the other direction.
void focusAction(const TurnWidget* turn, const QString& name) {
    QWidget* other = nullptr;
    for (auto* button : turn->findChildren<IconButton*>()) {
        if (!isTabStop(button)) continue;
        if (button->accessibleName() == name) return button->setFocus();
        if (button->accessibleName().endsWith("branch")) other = button;
    }
    if (other && name.endsWith("branch")) other->setFocus();
}

}  // namespace

ChatView::ChatView(QWidget* parent)
    : QScrollArea(parent),
      m_content(new QWidget),
      m_system(new SystemFold(m_content)),
      m_emptyAction(new Button("", Button::Kind::Default, Button::Size::Normal, viewport())) {
    setWidget(m_content);
    setWidgetResizable(false);
    setHorizontalScrollBarPolicy(Qt::ScrollBarAlwaysOff);
    setFocusPolicy(Qt::NoFocus);
    verticalScrollBar()->setSingleStep(21);
    m_system->hide();
    m_emptyAction->hide();
    connect(m_emptyAction, &QAbstractButton::clicked, this, &ChatView::emptyActionWanted);
    connect(m_system, &SystemFold::changed, this, &ChatView::systemChanged);
    connect(m_system, &SystemFold::heightChanged, this, &ChatView::layoutTurns);
    connect(verticalScrollBar(), &QScrollBar::valueChanged, this, [this] {
        if (!m_laying) m_following = atBottom();
        emit scrolled();
    });
}

void ChatView::setCompact(bool on) {
    m_compact = on;
    for (TurnWidget* turn : m_turns) turn->setCompact(on);
    layoutTurns();
}

void ChatView::setPadding(int left, int top) {
    m_left = left;
    m_top = top;
    layoutTurns();
}

void ChatView::setSloMs(double ms) {
    m_sloMs = ms;
    for (TurnWidget* turn : m_turns)
        if (auto* model = qobject_cast<ModelTurn*>(turn)) model->setSloMs(ms);
}

void ChatView::reset() {
    for (TurnWidget* turn : m_turns) {
        turn->hide();
        turn->deleteLater();
    }
    m_turns.clear();
}

TurnWidget* ChatView::make(const Conversation& conversation, int index, bool running) {
    const Turn& turn = conversation.turns[index];
    TurnWidget* widget = nullptr;
    if (turn.role == Turn::Role::User) {
        auto* user = new UserTurn(index, turn, m_content);
        connect(user, &UserTurn::edited, this, &ChatView::editWanted);
        widget = user;
    } else {
        auto* model = new ModelTurn(index, turn, m_content);
        model->setSloMs(m_sloMs);
        if (running) model->refresh(turn, ModelTurn::State::Prompt, {});
        connect(model, &ModelTurn::regenerateWanted, this, &ChatView::regenerateWanted);
        connect(model, &ModelTurn::continueWanted, this, &ChatView::continueWanted);
        connect(model, &ModelTurn::newChatWanted, this, &ChatView::newChatWanted);
        connect(model, &ModelTurn::jumpWanted, this, &ChatView::jumpWanted);
        connect(model, &ModelTurn::tokenHovered, this, &ChatView::tokenHovered);
        widget = model;
    }
    widget->setCompact(m_compact);
    if (m_recorded) widget->setRecorded(true);
    const QVector<int> siblings = conversation.siblings(index);
    widget->setBranches(int(siblings.indexOf(index)), int(siblings.size()));
    connect(widget, &TurnWidget::branchWanted, this, &ChatView::branchWanted);
    connect(widget, &TurnWidget::copied, this, &ChatView::copied);
    connect(widget->flow(), &TextFlow::linkWanted, this, &ChatView::linkWanted);
    connect(widget, &TurnWidget::heightChanged, this, &ChatView::layoutTurns);
    return widget;
}

void ChatView::show(const Conversation& conversation, int running) {
    const QVector<int> path = conversation.path();
    if (conversation.id != m_shownId) reset();
    m_shownId = conversation.id;
    // Turns that stay keep their widgets, so that long chats are not laid out again.
    std::vector<TurnWidget*> kept;
    size_t same = 0;
    while (same < m_turns.size() && same < size_t(path.size()) &&
           m_turns[same]->turnIndex() == path[qsizetype(same)])
        ++same;
    QWidget* const focus = window()->focusWidget();
    QString action;  // name of the focused button, if its turn is created again
    for (size_t i = same; i < m_turns.size(); ++i) {
        if (m_turns[i]->isAncestorOf(focus) && qobject_cast<IconButton*>(focus))
            action = focus->accessibleName();
        m_turns[i]->hide();
        m_turns[i]->deleteLater();
    }
    m_turns.resize(same);
    for (qsizetype i = qsizetype(same); i < path.size(); ++i) {
        m_turns.push_back(make(conversation, path[i], path[i] == running));
        m_turns.back()->show();
    }
    for (size_t i = 0; i < m_turns.size(); ++i) {
        const int index = m_turns[i]->turnIndex();
        const QVector<int> siblings = conversation.siblings(index);
        m_turns[i]->setLast(i + 1 == m_turns.size());
        m_turns[i]->setBranches(int(siblings.indexOf(index)), int(siblings.size()));
    }
    if (!action.isEmpty() && same < m_turns.size()) focusAction(m_turns[same], action);
    m_system->setText(conversation.system);
    m_following = true;
    layoutTurns();
    viewport()->update();
}

void ChatView::update(const Conversation& conversation, int turn, ModelTurn::State state,
                      const QString& progress) {
    ModelTurn* widget = modelTurn(turn);
    if (!widget) return;
    widget->refresh(conversation.turns[turn], state, progress);
    if (widget != m_turns.back() || !layoutLast()) layoutTurns();
}

TurnWidget* ChatView::widgetOf(int turn) const {
    const auto at = std::find_if(m_turns.rbegin(), m_turns.rend(), [turn](TurnWidget* widget) {
        return widget->turnIndex() == turn;
    });
    return at == m_turns.rend() ? nullptr : *at;
}

ModelTurn* ChatView::modelTurn(int turn) const {
    return qobject_cast<ModelTurn*>(widgetOf(turn));
}

UserTurn* ChatView::userTurn(int turn) const {
    return qobject_cast<UserTurn*>(widgetOf(turn));
}

int ChatView::offsetOf(int turn) const {
    const TurnWidget* widget = widgetOf(turn);
    return widget ? widget->y() - verticalScrollBar()->value() : 0;
}

void ChatView::scrollTurnTo(int turn, int offset) {
    const TurnWidget* widget = widgetOf(turn);
    if (!widget) return;
    m_following = false;
    verticalScrollBar()->setValue(widget->y() - offset);
    m_following = atBottom();
}

void ChatView::editLast() {
    for (size_t i = m_turns.size(); i-- > 0;) {
        if (auto* user = qobject_cast<UserTurn*>(m_turns[i])) return user->startEdit();
    }
}

void ChatView::openSystemPrompt() {
    m_system->setOpen(true);
    verticalScrollBar()->setValue(0);
}

int ChatView::textWidth() const {
    return std::max(120, std::min(kTextWidth, width() - 2 * m_left));
}

// Once the chat is taller than the view, a growing reply moves no other turn.
bool ChatView::layoutLast() {
    if (m_laying || m_turns.size() < 2 || m_content->height() <= viewport()->height()) return false;
    TurnWidget* last = m_turns.back();
    const int height = last->layoutFor(textWidth());
    const int gap = qobject_cast<UserTurn*>(last) ? kUserGap : kModelGap;
    const int total = last->y() + height + gap + kLastGap;
    if (total < viewport()->height()) return false;
    m_laying = true;
    const int scroll = verticalScrollBar()->value();
    last->resize(last->width(), height);
    m_content->resize(m_content->width(), total);
    verticalScrollBar()->setValue(m_following ? verticalScrollBar()->maximum() : scroll);
    m_laying = false;
    return true;
}

void ChatView::layoutTurns() {
    if (m_laying) return;
    m_laying = true;
    const bool stick = m_following;
    const int scroll = verticalScrollBar()->value();
    // The scroll bar takes the place of the margin, so that the text keeps its width.
    const int width = textWidth();
    int y = m_top;
    std::vector<std::pair<QWidget*, int>> items;
    m_system->setVisible(m_system->shown());
    if (m_system->shown()) {
        const int height = m_system->layoutFor(width);
        items.emplace_back(m_system, height);
        y += height + 10;
    }
    for (TurnWidget* turn : m_turns) {
        const int height = turn->layoutFor(width);
        items.emplace_back(turn, height);
        y += height + (qobject_cast<UserTurn*>(turn) ? kUserGap : kModelGap);
    }
    const int total = y + kLastGap;
    // A short conversation is at the bottom, next to the input field.
    int top = m_top + std::max(0, viewport()->height() - total);
    m_content->resize(viewport()->width(), std::max(total, viewport()->height()));
    for (const auto& [widget, height] : items) {
        widget->setGeometry(m_left, top, width, height);
        const bool user = qobject_cast<UserTurn*>(widget) != nullptr;
        top += height + (widget == m_system ? 10 : user ? kUserGap : kModelGap);
    }
    if (stick)
        verticalScrollBar()->setValue(verticalScrollBar()->maximum());
    else
        verticalScrollBar()->setValue(scroll);
    m_laying = false;
    layOutEmptyAction();
}

void ChatView::reveal(TurnWidget* turn, const QRect& part) {
    const QRect place = part.translated(turn->pos());
    const int top = verticalScrollBar()->value(), height = viewport()->height();
    if (place.top() >= top && place.bottom() <= top + height) return;
    m_following = false;
    verticalScrollBar()->setValue(place.center().y() - height * 2 / 3);
}

bool ChatView::atBottom() const {
    return verticalScrollBar()->value() >= verticalScrollBar()->maximum() - 4;
}

void ChatView::scrollToBottom() {
    m_following = true;
    verticalScrollBar()->setValue(verticalScrollBar()->maximum());
}

int ChatView::find(const QString& needle) {
    m_matches.clear();
    int total = 0;
    for (TurnWidget* turn : m_turns) {
        const int n = turn->flow()->setFind(needle);
        turn->flow()->setFindCurrent(-1);
        m_matches.push_back(n);
        total += n;
    }
    return total;
}

void ChatView::showMatch(int index) {
    for (size_t i = 0; i < m_turns.size() && i < m_matches.size(); ++i) {
        TextFlow* flow = m_turns[i]->flow();
        if (index < 0 || index >= m_matches[i]) {
            flow->setFindCurrent(-1);
            index -= m_matches[i];
            continue;
        }
        flow->setFindCurrent(index);
        if (auto* user = qobject_cast<UserTurn*>(m_turns[i]); user && user->folded())
            user->setOpen(true);
        const QPoint at = flow->mapTo(m_content, flow->findRect(index).center());
        index = -1;
        m_following = false;
        ensureVisible(at.x(), at.y(), 0, viewport()->height() / 3);
    }
}

void ChatView::layOutEmptyAction() {
    m_emptyAction->setVisible(m_turns.empty() && !m_emptyAction->text().isEmpty());
    const QSize size = m_emptyAction->sizeHint();
    m_emptyAction->setGeometry((viewport()->width() - size.width()) / 2,
                               viewport()->height() / 2 + 40, size.width(), size.height());
}

void ChatView::setEmptyText(const QString& title, const QString& line, const QString& action) {
    m_emptyAction->setText(action);
    layOutEmptyAction();
    m_emptyTitle = title;
    m_emptyLine = line;
    viewport()->update();
}

void ChatView::resizeEvent(QResizeEvent* event) {
    QScrollArea::resizeEvent(event);
    layoutTurns();
}

void ChatView::paintEvent(QPaintEvent*) {
    if (!m_turns.empty() || m_emptyTitle.isEmpty()) return;
    QPainter p(viewport());
    const QRectF box(16, viewport()->height() / 2.0 - 36, viewport()->width() - 32, 72);
    paintIcon(p, "chat", QRectF(box.center().x() - 10, box.top(), 20, 20), tone(Tone::Text3));
    drawText(p, QRectF(box.left(), box.top() + 28, box.width(), 18), Qt::AlignCenter, m_emptyTitle,
             type::body(), tone(Tone::Text1));
    drawText(p, QRectF(box.left(), box.top() + 48, box.width(), 16), Qt::AlignCenter, m_emptyLine,
             type::dense(), tone(Tone::Text3));
}

// ---- SystemFold

SystemFold::SystemFold(QWidget* parent) : QWidget(parent), m_editor(new QPlainTextEdit(this)) {
    m_editor->setFont(type::body());
    m_editor->setAccessibleName("System prompt");
    m_editor->hide();
    m_editor->setTabChangesFocus(true);
    m_editor->installEventFilter(this);
    setFocusPolicy(Qt::TabFocus);
    connect(m_editor, &QPlainTextEdit::textChanged, this, [this] {
        m_text = m_editor->toPlainText();
        emit changed(m_text);
        emit heightChanged();
    });
}

void SystemFold::setText(const QString& text) {
    if (text == m_text) return;
    m_text = text;
    if (m_editor->toPlainText() != text) m_editor->setPlainText(text);
}

void SystemFold::setTokens(int tokens) {
    m_tokens = tokens;
    QWidget::update();
}

void SystemFold::setOpen(bool on) {
    if (on == m_open) return;
    m_open = on;
    m_editor->setVisible(on);
    if (on) m_editor->setFocus();
    emit heightChanged();
    QWidget::update();
}

int SystemFold::layoutFor(int width) {
    if (!m_open) return kFoldHeight;
    const int lines = std::clamp(m_editor->document()->blockCount() + 1, 3, 10);
    const int height = lines * 18 + 10;
    m_editor->setGeometry(10, kFoldHeight + 4, width - 20, height - 8);
    return kFoldHeight + height;
}

void SystemFold::paintEvent(QPaintEvent*) {
    QPainter p(this);
    paintIcon(p, m_open ? "down" : "right", QRectF(0, 7, 12, 12), tone(Tone::Text3));
    double x = 18;
    drawText(p, QRectF(x, 0, 200, kFoldHeight), Qt::AlignVCenter, "System prompt", type::dense(),
             tone(Tone::Text3));
    x += textWidth(type::dense(), "System prompt") + 6;
    if (m_tokens >= 0)
        drawText(p, QRectF(x, 0, 200, kFoldHeight), Qt::AlignVCenter, count(m_tokens) + " tokens",
                 type::monoSmall(), tone(Tone::Text3));
    if (m_open)
        fillBox(p, QRectF(0, kFoldHeight, width(), height() - kFoldHeight), tone(Tone::Bg2),
                tone(m_editor->hasFocus() ? Tone::Accent : Tone::Line1), 6);
    if (hasFocus()) focusRing(p, QRectF(0, 0, width(), kFoldHeight), 4);
}

void SystemFold::mousePressEvent(QMouseEvent* event) {
    if (event->position().y() < kFoldHeight) setOpen(!m_open);
}

void SystemFold::keyPressEvent(QKeyEvent* event) {
    if (event->key() == Qt::Key_Space || event->key() == Qt::Key_Return)
        setOpen(!m_open);
    else
        QWidget::keyPressEvent(event);
}

bool SystemFold::eventFilter(QObject* object, QEvent* event) {
    if (object == m_editor && event->type() == QEvent::KeyPress &&
        static_cast<QKeyEvent*>(event)->key() == Qt::Key_Escape) {
        setOpen(false);
        return true;
    }
    if (object == m_editor &&
        (event->type() == QEvent::FocusIn || event->type() == QEvent::FocusOut))
        QWidget::update();
    return QWidget::eventFilter(object, event);
}

}  // namespace colibri::ui
