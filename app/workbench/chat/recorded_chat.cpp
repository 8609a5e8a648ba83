// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/workbench/chat/recorded_chat.h"

#include <QHBoxLayout>
#include <QScrollBar>
#include <QStringDecoder>
#include <QUuid>
#include <algorithm>
#include <cmath>

#include "app/workbench/chat/chat_parts.h"
#include "app/workbench/platform/text.h"
#include "app/workbench/plots/plot_data.h"

namespace colibri::ui {
namespace {

constexpr qsizetype kMostUserText = 20'000;  // characters of a message

// A reply or message, or why it is not known.
QString orReason(const QString& text, const std::string& reason) {
    return reason.empty() ? text : "n/a: " + str(reason) + ".";
}

// The tokens with their ends in UTF-16. A character can be spread over several tokens.
QString textOf(const RecordedTurn& recorded, QVector<TokenMark>* marks) {
    QStringDecoder decoder(QStringDecoder::Utf8);
    QString text;
    size_t from = 0;
    for (const RecordedToken& token : recorded.tokens) {
        text += decoder(QByteArrayView(recorded.reply.data() + from, qsizetype(token.end - from)));
        from = token.end;
        TokenMark mark;
        mark.end = int(text.size());
        mark.gapMs = float(token.gapMs);
        mark.stallMs = float(token.stallMs);
        mark.waitMs = float(token.waitMs);
        mark.t = token.t;
        mark.layer = token.layer;
        mark.expert = token.expert;
        marks->push_back(mark);
    }
    return text;
}

TurnFigures figuresOf(const RecordedRequest& request, const RecordedTurn& turn) {
    TurnFigures f;
    const auto tokens = turn.tokens.size();
    if (tokens > 1 && turn.gapSeconds > 0) f.tokS = double(tokens - 1) / turn.gapSeconds;
    if (std::isfinite(request.firstToken)) {
        f.ttftMs = 1e3 * (request.firstToken - request.arrived);
        const double prompt = request.firstToken - request.admitted;
        const double computed = double(request.promptTokens - request.cachedTokens);
        if (prompt > 0 && computed > 0) f.promptTokS = computed / prompt;
    }
    if (turn.lookups > 0) f.hitRate = 100 * double(turn.hits) / double(turn.lookups);
    f.bytesRead = turn.bytesRead;
    f.promptTokens = int(request.promptTokens);
    f.cachedTokens = int(request.cachedTokens);
    f.tokens = int(tokens);
    f.from = request.admitted;
    f.to = request.done;
    f.stop = request.ended ? str(request.stop) : QString(kInterrupted);
    return f;
}

}  // namespace

// Title and the tag "read only".
class RecordedHead : public QWidget {
public:
    RecordedHead() : find(new IconButton("search", "Find in these turns")) {
        setFixedHeight(32);
        find->describe("Find in these turns", "Ctrl+F");
        auto* line = new QHBoxLayout(this);
        line->setContentsMargins(12, 0, 6, 1);
        line->addStretch(1);
        line->addWidget(find);
    }
    void setTitle(const QString& title) {
        m_title = title;
        setAccessibleName(title + ", read only");
        update();
    }
    IconButton* find;

protected:
    void paintEvent(QPaintEvent*) override {
        QPainter p(this);
        p.fillRect(QRectF(0, height() - 1, width(), 1), tone(Tone::Line1));
        paintIcon(p, "chat", QRectF(12, 7, 16, 16), tone(Tone::Text1));
        const TagLook tag{"read only", ""};
        const double room = find->x() - 8 - 34 - 8 - tagWidth(tag);
        drawElided(p, QRectF(34, 0, room, 31), Qt::AlignVCenter, m_title, type::bodyBold(),
                   tone(Tone::Text1));
        drawTag(p, 34 + std::min(room, textWidth(type::bodyBold(), m_title)) + 8, 15.5, tag);
    }

private:
    QString m_title;
};

// In place of the message field.
class RecordedChat::Foot : public QWidget {
public:
    Foot() : proceed(new Button("Continue as a new chat")) {
        setFixedHeight(62);
        proceed->setIconName("chat");
        proceed->setToolTip("Closes this session and opens its turns up to the playhead as a chat");
        auto* line = new QHBoxLayout(this);
        line->setContentsMargins(12, 0, 12, 0);
        line->addStretch(1);
        line->addWidget(proceed);
    }
    Button* proceed;

protected:
    void paintEvent(QPaintEvent*) override {
        QPainter p(this);
        fillBox(p, rect(), tone(Tone::Bg2), tone(Tone::Line1), 6);
        paintIcon(p, "clock", QRectF(13, 23, 16, 16), tone(Tone::Text2));
        const double room = proceed->x() - 8 - 39;
        drawElided(p, QRectF(39, 12, room, 18), Qt::AlignVCenter, "Recorded session", type::body(),
                   tone(Tone::Text1));
        drawElided(p, QRectF(39, 31, room, 16), Qt::AlignVCenter, "Nothing here changes the file.",
                   type::dense(), tone(Tone::Text3));
    }
};

RecordedChat::RecordedChat(ViewState* view, QWidget* parent)
    : QWidget(parent),
      m_viewState(view),
      m_head(new RecordedHead),
      m_find(new FindBar),
      m_view(new ChatView),
      m_readout(new Readout),
      m_foot(new Foot) {
    auto* column = new QVBoxLayout(this);
    column->setContentsMargins(0, 0, 0, 0);
    column->setSpacing(0);
    auto* inset = new QWidget;
    auto* insetLayout = new QVBoxLayout(inset);
    insetLayout->setContentsMargins(12, 8, 12, 12);
    insetLayout->addWidget(m_foot);
    for (QWidget* widget : std::initializer_list<QWidget*>{m_head, m_find})
        column->addWidget(widget);
    column->addWidget(m_view, 1);
    column->addWidget(m_readout);
    column->addWidget(inset);
    m_view->setRecorded(true);
    m_view->setSloMs(view->sloMs());
    m_readout->setSloMs(view->sloMs());
    connect(view, &ViewState::sloChanged, this, [this] {
        m_view->setSloMs(m_viewState->sloMs());
        m_readout->setSloMs(m_viewState->sloMs());
    });
    connect(m_view, &ChatView::tokenHovered, this, &RecordedChat::hover);
    connect(m_view, &ChatView::jumpWanted, this, [this](int turn) {
        const TurnFigures& f = m_chat.turns[turn].figures;
        const double margin = std::max(0.5, (f.to - f.from) * 0.05);
        m_viewState->setRange(f.from - margin, f.to + margin);
        m_viewState->seek(f.from);
    });
    connect(m_readout, &Readout::showWanted, this, [this](double t) {
        m_viewState->setRange(t - 5, t + 5);
        m_viewState->seek(t);
    });
    connect(m_foot->proceed, &QAbstractButton::clicked, this, &RecordedChat::continueWanted);
    connectFindBar();
}

void RecordedChat::connectFindBar() {
    connect(m_head->find, &QAbstractButton::clicked, m_find, &FindBar::open);
    m_find->searchIn(m_view);
}

void RecordedChat::setSource(RecordedSource* source) {
    m_source = source;
    m_built = false;
    m_shownTime = -1;
    m_readout->setContent({});
    m_chat = Conversation::create();
    m_requests.clear();
    m_view->reset();
    if (!source) return;
    const bool empty = source->facts().requests.empty();
    m_view->setEmptyText(
        empty ? QString("No turns") : QString("Reading the turns"),
        empty ? QString("No request ran while this session was recorded.") : QString());
    m_head->setTitle(source->name());
    m_view->show(m_chat, -1);
}

void RecordedChat::setWindowClass(WindowClass windowClass) {
    const bool small = windowClass == WindowClass::Small, large = windowClass == WindowClass::Large;
    m_readout->setVisible(!small);
    m_view->setCompact(small);
    m_view->setPadding(small ? 12 : large ? 24 : 16, small ? 8 : large ? 16 : 12);
}

// The newest request that was admitted until the playhead; the first one before that.
size_t RecordedChat::requestAtPlayhead() const {
    const int turns = m_source->facts().turnsAt(m_source->time());
    return size_t(std::max(0, turns - 1));
}

// Only turns near the playhead have widgets: a session of hours has hundreds of turns.
void RecordedChat::tick() {
    if (!m_source || m_source->facts().requests.empty()) return;
    const size_t at = requestAtPlayhead(), all = m_source->facts().requests.size();
    if (!m_built || at < m_first || at > m_last) {
        const size_t first = at > kTurnsBefore ? at - kTurnsBefore : 0;
        const size_t last = std::min(all - 1, at + kTurnsAfter);
        m_source->keepTurns(first, last);
        bool known = true;
        for (size_t i = first; i <= last; ++i) known = m_source->turn(i) && known;
        if (known) showTurns(first, last);
    }
    if (m_built && m_source->time() != m_shownTime) showPlayhead();
}

void RecordedChat::showTurns(size_t first, size_t last) {
    m_first = first;
    m_last = last;
    m_built = true;
    m_shownTime = -1;
    m_chat = Conversation::create();
    m_requests.clear();
    for (size_t i = first; i <= last; ++i) addTurn(i);
    if (m_source->turn(first)->userUnknown.empty()) m_chat.title = m_chat.suggestTitle();
    m_head->setTitle(m_chat.title.isEmpty() ? m_source->name() : m_chat.title);
    m_view->show(m_chat, -1);
    if (m_find->isVisible()) m_find->open();
}

void RecordedChat::addTurn(size_t index) {
    const RecordedRequest& request = m_source->facts().requests[index];
    const RecordedTurn& recorded = *m_source->turn(index);
    Turn user;
    user.role = Turn::Role::User;
    user.text = orReason(exactText(recorded.user).left(kMostUserText), recorded.userUnknown);
    user.sessionTime = std::isfinite(request.arrived) ? request.arrived : request.admitted;
    user.live = true;
    const QVector<int> path = m_chat.path();
    const int parent = m_chat.append(path.isEmpty() ? -1 : path.last(), user);
    m_requests.push_back(index);
    Turn reply;
    reply.role = Turn::Role::Model;
    reply.model = m_source->model()->name;
    reply.sessionTime = request.admitted;
    reply.live = true;
    reply.inReasoning = recorded.inReasoning;
    const QString text = textOf(recorded, &reply.tokens);
    reply.text = orReason(text, recorded.replyUnknown);
    if (!recorded.replyUnknown.empty()) reply.tokens.clear();
    reply.figures = figuresOf(request, recorded);
    m_chat.append(parent, reply);
    m_requests.push_back(index);
}

// Up to the last token that was generated until the playhead; -1: all of the text.
int RecordedChat::playedOffset(const Turn& turn) const {
    const double t = m_source->time();
    if (turn.tokens.isEmpty()) return t >= turn.figures.to ? -1 : 0;
    const auto it = std::upper_bound(turn.tokens.begin(), turn.tokens.end(), t,
                                     [](double at, const TokenMark& mark) { return at < mark.t; });
    if (it == turn.tokens.end()) return -1;
    return it == turn.tokens.begin() ? 0 : (it - 1)->end;
}

void RecordedChat::showPlayhead() {
    m_shownTime = m_source->time();
    for (TurnWidget* widget : m_view->turns()) {
        const Turn& turn = m_chat.turns[widget->turnIndex()];
        widget->setRecorded(m_shownTime >= turn.sessionTime);
        auto* model = qobject_cast<ModelTurn*>(widget);
        if (!model) continue;
        const RecordedRequest& request =
            m_source->facts().requests[m_requests[size_t(widget->turnIndex())]];
        const bool here = request.ranAt(m_shownTime);
        model->setPlayed(playedOffset(turn), here);
        if (here) m_view->reveal(model, model->playedRect());
    }
}

void RecordedChat::hover(int turn, int token) {
    if (token < 0 || turn >= m_chat.turns.size() || token >= m_chat.turns[turn].tokens.size()) {
        m_viewState->setCursor(std::numeric_limits<double>::quiet_NaN());
        return;
    }
    const Turn& source = m_chat.turns[turn];
    m_readout->setContent(tokenReadout(source, token, m_viewState->sloMs()));
    m_viewState->setCursor(source.tokens[token].t);
}

Conversation RecordedChat::continued() const {
    Conversation chat = Conversation::create();
    chat.title = m_chat.title;
    int parent = -1;
    for (const Turn& recorded : m_chat.turns) {
        if (recorded.sessionTime > m_source->time()) break;
        Turn turn = recorded;
        turn.live = false;
        turn.parent = -1;
        turn.children.clear();
        turn.wallMs = QDateTime::currentMSecsSinceEpoch();
        if (turn.role == Turn::Role::Model)
            if (const int played = playedOffset(recorded); played >= 0) {
                turn.text.truncate(played);
                while (!turn.tokens.isEmpty() && turn.tokens.last().end > played)
                    turn.tokens.removeLast();
                turn.figures.tokens = int(turn.tokens.size());
                turn.figures.stop = kInterrupted;
            }
        parent = chat.append(parent, turn);
    }
    return chat;
}

void RecordedChat::paintEvent(QPaintEvent*) {
    QPainter p(this);
    p.fillRect(rect(), tone(Tone::Bg1));
}

}  // namespace colibri::ui
