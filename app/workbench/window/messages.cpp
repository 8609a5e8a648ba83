// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/workbench/window/messages.h"

#include <QLabel>
#include <QScrollArea>
#include <QVBoxLayout>
#include <algorithm>
#include <utility>

#include "app/workbench/platform/text.h"
#include "app/workbench/widgets/page_parts.h"

namespace colibri::ui {
namespace {

constexpr size_t kMostMessages = 200;
constexpr int kBarMs = 8000, kListWidth = 360;

// One message of the list: background by kind, icon, sentence, detail, actions at the right.
class Card : public QWidget {
public:
    Card(const Message& message, MessageCenter* center) : m_message(message) {
        auto* line = new QHBoxLayout(this);
        line->setContentsMargins(36, 7, 8, 7);
        line->setSpacing(8);
        line->addStretch(1);
        auto* actions = new QVBoxLayout;
        actions->setSpacing(2);
        if (!message.actionText.isEmpty()) {
            auto* act = new Button(message.actionText, Button::Kind::Quiet, Button::Size::Dense);
            QObject::connect(act, &QAbstractButton::clicked, this, [message] { message.action(); });
            actions->addWidget(act, 0, Qt::AlignRight);
            m_room = act->sizeHint().width();
        }
        auto* buttons = new QHBoxLayout;
        buttons->setSpacing(0);
        auto* copy = new IconButton("copy", "Copy message");
        copy->setIconSize(12);
        auto* close = new IconButton("close", "Close message");
        close->setIconSize(12);
        QObject::connect(copy, &QAbstractButton::clicked, this,
                         [message] { copyText(message.copyText()); });
        QObject::connect(close, &QAbstractButton::clicked, this,
                         [center, id = message.id] { center->close(id); });
        buttons->addWidget(copy);
        buttons->addWidget(close);
        actions->addLayout(buttons);
        actions->addStretch();
        line->addLayout(actions);
        m_room = std::max(m_room, 48) + 16;
        setFixedHeight(int(std::max(46.0, arrangeText(nullptr))));
        setAccessibleName(message.text);
    }

protected:
    double arrangeText(QPainter* p) const {
        const QString time = m_message.time.toString("HH:mm:ss");
        const double left = 36, room = (kListWidth - 24) - left - m_room;
        return 14 + drawMessageLines(p, {left, 7}, room,
                                     {{m_message.text, type::body(), 18, Tone::Text1},
                                      {m_message.detail, type::dense(), 16, Tone::Text2},
                                      {time, type::caption(), 14, Tone::Text3}});
    }
    void paintEvent(QPaintEvent*) override {
        QPainter p(this);
        paintMessageGround(p, rect(), m_message.kind, {10, 8}, true);
        arrangeText(&p);
    }

private:
    Message m_message;
    int m_room = 48;
};

}  // namespace

MessageCenter::MessageCenter(QObject* parent) : QObject(parent) {}

int MessageCenter::post(Message message) {
    message.id = m_next++;
    message.text = shown(message.text);
    message.detail = shown(message.detail);
    if (!message.time.isValid()) message.time = QDateTime::currentDateTime();
    const int id = message.id;
    if (message.inBar) {
        // The former message stays in the list; it does not return to the bar.
        m_barId = id;
        if (message.kind != Message::Kind::Error && !message.stays) {
            QTimer::singleShot(kBarMs, this, [this, id] {
                if (m_barId != id) return;
                m_barId = 0;
                emit changed();
            });
        }
    }
    m_messages.push_back(std::move(message));
    if (m_messages.size() > kMostMessages) m_messages.erase(m_messages.begin());
    ++m_unread;
    emit changed();
    return id;
}

void MessageCenter::ok(const QString& text, const QString& detail) {
    post({Message::Kind::Ok, text, detail});
}

void MessageCenter::error(const QString& text, const QString& detail) {
    post({Message::Kind::Error, text, detail});
}

void MessageCenter::close(int id) {
    if (m_barId == id) m_barId = 0;
    std::erase_if(m_messages, [id](const Message& m) { return m.id == id; });
    m_unread = std::min(m_unread, int(m_messages.size()));
    emit changed();
}

void MessageCenter::closeAll() {
    m_barId = 0;
    m_messages.clear();
    m_unread = 0;
    emit changed();
}

void MessageCenter::markRead() {
    m_unread = 0;
    emit changed();
}

const Message* MessageCenter::inBar() const {
    for (const Message& message : m_messages)
        if (message.id == m_barId) return &message;
    return nullptr;
}

// ---- MessageBar

MessageBar::MessageBar(MessageCenter* center, QWidget* parent)
    : MessageStrip(parent), m_center(center) {
    connect(center, &MessageCenter::changed, this, &MessageBar::refresh);
    refresh();
}

void MessageBar::refresh() {
    const Message* message = m_center->inBar();
    const int id = message ? message->id : 0;
    if (std::exchange(m_id, id) == id) return;
    if (!message) return hide();
    showMessage(message->kind, message->text, message->detail);
    if (!message->actionText.isEmpty()) {
        connect(addAction(message->actionText), &QAbstractButton::clicked, this,
                [center = m_center, id, action = message->action] {
                    center->close(id);
                    action();
                });
    }
    if (message->kind == Message::Kind::Error) addCopy(message->copyText());
    connect(addClose(), &QAbstractButton::clicked, this,
            [center = m_center, id] { center->close(id); });
}

// ---- MessageList

MessageList::MessageList(MessageCenter* center, QWidget* window)
    : Popover(window), m_center(center), m_rows(nullptr), m_content(new QWidget) {
    auto* column = new QVBoxLayout(this);
    column->setContentsMargins(1, 1, 1, 1);
    column->setSpacing(0);
    auto* head = new PanelHead("Messages");
    head->setLineBelow(false);
    auto* clear = new Button("Clear all", Button::Kind::Quiet, Button::Size::Dense);
    head->addWidget(clear);
    connect(clear, &QAbstractButton::clicked, center, &MessageCenter::closeAll);
    column->addWidget(head);
    auto* scroll = new QScrollArea;
    scroll->setWidgetResizable(true);
    scroll->setWidget(m_content);
    scroll->setHorizontalScrollBarPolicy(Qt::ScrollBarAlwaysOff);
    column->addWidget(scroll);
    m_rows = new QVBoxLayout(m_content);
    m_rows->setContentsMargins(12, 4, 12, 12);
    m_rows->setSpacing(8);
    connect(center, &MessageCenter::changed, this, [this] {
        if (isVisible()) {
            refresh();
            reposition();
        }
    });
    refresh();
}

QSize MessageList::sizeHint() const {
    const_cast<MessageList*>(this)->refresh();
    m_rows->activate();
    return {kListWidth, std::clamp(36 + m_rows->sizeHint().height(), 96, 520)};
}

void MessageList::refresh() {
    while (QLayoutItem* item = m_rows->takeAt(0)) {
        delete item->widget();
        delete item;
    }
    const auto& all = m_center->all();
    for (size_t i = all.size(); i-- > 0;) {
        auto* card = new Card(all[i], m_center);
        m_rows->addWidget(card);
        card->show();  // a hidden widget has no size in the layout
    }
    if (all.empty()) {
        auto* empty = new QLabel("No messages");
        empty->setProperty("tone", "text3");
        empty->setAlignment(Qt::AlignCenter);
        m_rows->addWidget(empty);
    }
    m_rows->addStretch();
}

}  // namespace colibri::ui
