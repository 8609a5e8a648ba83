// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/workbench/chat/chat_list.h"

#include <QContextMenuEvent>
#include <QKeyEvent>
#include <QMenu>
#include <QScrollBar>
#include <QVBoxLayout>

#include "app/workbench/widgets/page_parts.h"

namespace colibri::ui {
namespace {

constexpr int kChatRow = 48;

QString whenText(const QDateTime& time) {
    const QDateTime now = QDateTime::currentDateTime();
    const qint64 seconds = time.secsTo(now);
    if (seconds < 120) return "now";
    if (time.date() == now.date()) return time.toString("HH:mm");
    if (time.date().addDays(1) == now.date()) return "yesterday";
    return time.toString(time.date().year() == now.date().year() ? "d MMM" : "d MMM yyyy");
}

}  // namespace

// ---- ChatRows

ChatRows::ChatRows(QWidget* parent) : QAbstractScrollArea(parent) {
    viewport()->setMouseTracking(true);
    viewport()->setAutoFillBackground(false);
    setHorizontalScrollBarPolicy(Qt::ScrollBarAlwaysOff);
    setFocusPolicy(Qt::StrongFocus);
    setAccessibleName("Chats");
}

void ChatRows::setRows(const QVector<ChatSummary>& rows, const QString& current) {
    m_rows = rows;
    m_current = current;
    m_focus = std::clamp(m_focus, 0, std::max(0, int(rows.size()) - 1));
    updateScroll();
    viewport()->update();
}

void ChatRows::setReplying(const QSet<QString>& ids) {
    m_replying = ids;
    viewport()->update();
}

void ChatRows::setMarked(bool on) {
    m_marked = on;
    viewport()->update();
}

void ChatRows::openMarked() {
    if (m_focus < m_rows.size()) emit openWanted(m_rows[m_focus].id);
}

void ChatRows::restart() {
    m_focus = 0;
    verticalScrollBar()->setValue(0);
    viewport()->update();
}

int ChatRows::contentHeight() const {
    return int(m_rows.size()) * kChatRow;
}

void ChatRows::updateScroll() {
    verticalScrollBar()->setRange(0, std::max(0, contentHeight() - viewport()->height()));
    verticalScrollBar()->setPageStep(viewport()->height());
    verticalScrollBar()->setSingleStep(kChatRow);
}

int ChatRows::rowAt(int y) const {
    const int row = (y + verticalScrollBar()->value()) / kChatRow;
    return row >= 0 && row < m_rows.size() ? row : -1;
}

void ChatRows::mouseMoveEvent(QMouseEvent* event) {
    m_hover = rowAt(int(event->position().y()));
    viewport()->update();
}

void ChatRows::leaveEvent(QEvent*) {
    m_hover = -1;
    viewport()->update();
}

void ChatRows::mousePressEvent(QMouseEvent* event) {
    const int row = rowAt(int(event->position().y()));
    if (row < 0 || event->button() != Qt::LeftButton) return;
    m_focus = row;
    if (event->position().x() > viewport()->width() - 30) {
        menuFor(row, event->globalPosition().toPoint());
    } else {
        emit openWanted(m_rows[row].id);
    }
}

void ChatRows::keyPressEvent(QKeyEvent* event) {
    if (m_rows.isEmpty()) return QAbstractScrollArea::keyPressEvent(event);
    switch (event->key()) {
        case Qt::Key_Down:
            m_focus = std::min(m_focus + 1, int(m_rows.size()) - 1);
            break;
        case Qt::Key_Up:
            if (m_focus == 0) return emit leftAtTop();
            --m_focus;
            break;
        case Qt::Key_Return:
        case Qt::Key_Enter:
            openMarked();
            return;
        case Qt::Key_F2:
            emit renameWanted(m_rows[m_focus].id);
            return;
        case Qt::Key_Delete:
            emit deleteWanted(m_rows[m_focus].id);
            return;
        case Qt::Key_Menu:
            menuFor(m_focus, viewport()->mapToGlobal(QPoint(20, m_focus * kChatRow)));
            return;
        default:
            return QAbstractScrollArea::keyPressEvent(event);
    }
    verticalScrollBar()->setValue(std::clamp(verticalScrollBar()->value(),
                                             (m_focus + 1) * kChatRow - viewport()->height(),
                                             m_focus * kChatRow));
    viewport()->update();
}

void ChatRows::contextMenuEvent(QContextMenuEvent* event) {
    const int row = rowAt(event->pos().y());
    if (row >= 0) menuFor(row, event->globalPos());
}

void ChatRows::menuFor(int row, const QPoint& at) {
    const QString id = m_rows[row].id;
    QMenu menu;
    menu.addAction("Open", this, [=, this] { emit openWanted(id); });
    menu.addAction("Rename...", this, [=, this] { emit renameWanted(id); });
    menu.addAction("Duplicate", this, [=, this] { emit duplicateWanted(id); });
    menu.addAction("Export...", this, [=, this] { emit exportWanted(id); });
    menu.addAction("Delete", this, [=, this] { emit deleteWanted(id); });
    menu.exec(at);
}

void ChatRows::paintEvent(QPaintEvent*) {
    QPainter p(viewport());
    const double width = viewport()->width();
    if (m_rows.isEmpty()) {
        drawText(p, QRectF(12, 8, width - 24, 18), Qt::AlignVCenter, "No chats", type::dense(),
                 tone(Tone::Text3));
        return;
    }
    for (int i = 0; i < m_rows.size(); ++i) {
        const ChatSummary& row = m_rows[i];
        const double y = i * kChatRow - verticalScrollBar()->value();
        if (y > viewport()->height() || y + kChatRow < 0) continue;
        const bool current = row.id == m_current;
        if (current || i == m_hover)
            p.fillRect(QRectF(0, y, width, kChatRow), tone(current ? Tone::Bg3 : Tone::Bg2));
        drawElided(p, QRectF(12, y + 8, width - 24 - (i == m_hover ? 20 : 0), 18), Qt::AlignVCenter,
                   row.title, current ? type::bodyMedium() : type::body(), tone(Tone::Text1));
        if (i == m_hover)
            paintIcon(p, "more", QRectF(width - 28, y + 9, 16, 16), tone(Tone::Text2));
        QString facts = QString("%1 turn%2").arg(row.turns).arg(row.turns == 1 ? "" : "s");
        if (!row.model.isEmpty()) facts += ", " + row.model;
        const bool replying = m_replying.contains(row.id);
        const QString when = replying ? QString("replying") : whenText(row.changed);
        const QFont font = replying ? type::caption() : type::monoSmall();
        const double right = textWidth(font, when) + (replying ? 12 : 0);
        drawElided(p, QRectF(12, y + 26, width - 24 - right - 8, 14), Qt::AlignVCenter, facts,
                   type::caption(), tone(Tone::Text3));
        drawText(p, QRectF(12, y + 26, width - 24, 14), Qt::AlignVCenter | Qt::AlignRight, when,
                 font, tone(replying ? Tone::Accent : Tone::Text3));
        if (replying)
            fillBox(p, QRectF(width - 12 - right, y + 30, 6, 6), tone(Tone::Accent),
                    Qt::transparent, 3);
        if ((hasFocus() || m_marked) && i == m_focus)
            focusRing(p, QRectF(1, y, width - 2, kChatRow), 4);
    }
}

// ---- ChatList

ChatList::ChatList(ChatStore* store, QWidget* parent)
    : QWidget(parent), m_store(store), m_search(new QLineEdit), m_rows(new ChatRows) {
    auto* column = new QVBoxLayout(this);
    column->setContentsMargins(0, 0, 0, 0);
    column->setSpacing(0);
    auto* head = new PanelHead("Chats");
    auto* save = new IconButton("save", "Export this chat");
    auto* add = new IconButton("plus", "New chat");
    add->describe("New chat", "Ctrl+N");
    head->addWidget(save);
    head->addWidget(add);
    column->addWidget(head);
    auto* box = new QWidget;
    auto* inset = new QHBoxLayout(box);
    inset->setContentsMargins(12, 8, 12, 8);
    m_search->setPlaceholderText("Search chats");
    m_search->setAccessibleName("Search chats");
    m_search->addAction(makeIcon("search", tone(Tone::Text3)), QLineEdit::LeadingPosition);
    m_search->setFixedHeight(28);
    m_search->setClearButtonEnabled(false);
    inset->addWidget(m_search);
    column->addWidget(box);
    column->addWidget(m_rows, 1);
    connect(add, &QAbstractButton::clicked, this, &ChatList::newWanted);
    connect(save, &QAbstractButton::clicked, this, &ChatList::exportWanted);
    m_search->installEventFilter(this);
    connect(m_search, &QLineEdit::textChanged, this, [this](const QString& text) {
        m_rows->setMarked(!text.isEmpty());
        m_rows->restart();
        refresh();
    });
    connect(m_search, &QLineEdit::returnPressed, m_rows, &ChatRows::openMarked);
    connect(m_rows, &ChatRows::leftAtTop, m_search, qOverload<>(&QWidget::setFocus));
    connect(m_rows, &ChatRows::exportWanted, this, &ChatList::exportChatWanted);
    connect(m_rows, &ChatRows::duplicateWanted, this, &ChatList::duplicateWanted);
    connect(store, &ChatStore::listed, this, &ChatList::refresh);
    connect(m_rows, &ChatRows::openWanted, this, &ChatList::openWanted);
    connect(m_rows, &ChatRows::renameWanted, this, &ChatList::renameWanted);
    connect(m_rows, &ChatRows::deleteWanted, this, &ChatList::deleteWanted);
    refresh();
}

void ChatList::beginSearch() {
    m_search->clear();
    m_rows->restart();
    m_search->setFocus();
}

bool ChatList::eventFilter(QObject* object, QEvent* event) {
    if (object == m_search && event->type() == QEvent::KeyPress &&
        static_cast<QKeyEvent*>(event)->key() == Qt::Key_Down) {
        m_rows->setFocus();
        return true;
    }
    return QWidget::eventFilter(object, event);
}

void ChatList::setCurrent(const QString& id) {
    m_current = id;
    refresh();
}

void ChatList::refresh() {
    const QString needle = m_search->text().trimmed().toLower();
    QVector<ChatSummary> rows;
    for (const ChatSummary& summary : m_store->summaries())
        if (needle.isEmpty() || summary.text.contains(needle) ||
            summary.title.toLower().contains(needle))
            rows << summary;
    m_rows->setRows(rows, m_current);
}

void ChatList::paintEvent(QPaintEvent*) {
    QPainter p(this);
    p.fillRect(rect(), tone(Tone::Bg1));
}

}  // namespace colibri::ui
