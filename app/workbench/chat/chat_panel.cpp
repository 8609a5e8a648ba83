// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/workbench/chat/chat_panel.h"

#include <QKeyEvent>
#include <QMenu>
#include <QPainter>
#include <QPlainTextEdit>
#include <QScrollBar>
#include <QVBoxLayout>
#include <algorithm>
#include <cmath>
#include <limits>

#include "app/workbench/chat/chat_parts.h"
#include "engine/base/format.h"

namespace colibri::ui {
namespace {

constexpr qint64 kSaveEveryMs = 800;     // while a reply streams: a killed program loses 1 s

QString fixed(double v, int decimals) { return QString::fromStdString(formatFixed(v, decimals)); }

}  // namespace

ChatPanel::ChatPanel(ChatStore* store, ViewState* view, QWidget* window, QWidget* parent)
    : QWidget(parent), m_store(store), m_viewState(view), m_chat(Conversation::create()),
      m_settings(ChatSettings::load()), m_head(new ChatHead), m_find(new FindBar),
      m_view(new ChatView), m_readout(new Readout), m_composer(new Composer),
      m_sampling(new SamplingPanel(window)),
      m_pill(new Button("", Button::Kind::Default, Button::Size::Dense, this)) {
    auto* column = new QVBoxLayout(this);
    column->setContentsMargins(0, 0, 0, 0);
    column->setSpacing(0);
    column->addWidget(m_head);
    column->addWidget(m_find);
    column->addWidget(m_view, 1);
    column->addWidget(m_readout);
    auto* inset = new QWidget;
    auto* insetLayout = new QVBoxLayout(inset);
    insetLayout->setContentsMargins(12, 8, 12, 12);
    insetLayout->addWidget(m_composer);
    column->addWidget(inset);
    m_pill->setIconName("down");
    m_pill->setRound(true);
    m_pill->hide();

    connect(m_head, &ChatHead::titleClicked, this,
            [this] { emit listWanted(m_head->titleButton()); });
    connect(m_head, &ChatHead::listWanted, this, [this] { emit listWanted(m_head->listButton()); });
    connect(m_head, &ChatHead::findWanted, this, &ChatPanel::openFind);
    connect(m_head, &ChatHead::newWanted, this, &ChatPanel::newChat);
    connect(m_head, &ChatHead::moreWanted, this, [this] { showMenu(m_head->moreButton()); });
    connect(m_composer, &Composer::sendWanted, this, [this](const QString& text) {
        m_composer->clear();
        send(text);
    });
    connect(m_composer, &Composer::stopWanted, this, &ChatPanel::stop);
    connect(m_composer, &Composer::pageWanted, this, [this](int direction) {
        m_view->verticalScrollBar()->triggerAction(direction < 0 ? QAbstractSlider::SliderPageStepSub
                                                                 : QAbstractSlider::SliderPageStepAdd);
    });
    connect(m_composer, &Composer::samplingWanted, this, &ChatPanel::openSampling);
    connect(m_sampling, &SamplingPanel::changed, this, [this] {
        m_settings = m_sampling->settings();
        m_settings.store();
        m_composer->setSummary(m_settings.summary());
    });
    connect(m_view, &ChatView::editWanted, this, [this](int turn, const QString& text) {
        if (m_run) return;
        Turn edited;
        edited.text = text;
        edited.sessionTime = m_source ? m_source->sessionTime(monotonicNs()) : 0;
        edited.wallMs = QDateTime::currentMSecsSinceEpoch();
        edited.live = true;
        reply(m_chat.append(m_chat.turns[turn].parent, edited));
    });
    connect(m_view, &ChatView::regenerateWanted, this, &ChatPanel::regenerate);
    connect(m_view, &ChatView::branchWanted, this, [this](int turn, int step) {
        const QVector<int> siblings = m_chat.siblings(turn);
        const qsizetype at = siblings.indexOf(turn) + step;
        if (m_run || at < 0 || at >= siblings.size()) return;
        m_chat.activate(siblings[at]);
        m_view->show(m_chat, -1);
        refreshSlow();
        refreshMeter();
        save();
    });
    connect(m_view, &ChatView::jumpWanted, this, &ChatPanel::jump);
    connect(m_view, &ChatView::tokenHovered, this, &ChatPanel::hover);
    connect(m_view, &ChatView::copied, this, &ChatPanel::copied);
    connect(m_view, &ChatView::scrolled, this, &ChatPanel::refreshPill);
    connect(m_view, &ChatView::systemChanged, this, [this](const QString& text) {
        m_chat.system = text;
        if (m_source) m_view->systemFold()->setTokens(m_source->countTokens(text));
        save();
    });
    connect(m_readout, &Readout::showWanted, this, [this](double t) {
        m_viewState->setRange(t - 5, t + 5);
        m_viewState->setCursor(t);
    });
    connect(m_pill, &QAbstractButton::clicked, this, [this] { m_view->scrollToBottom(); });
    connect(m_view, &ChatView::newChatWanted, this, &ChatPanel::newChat);
    connect(m_viewState, &ViewState::sloChanged, this, &ChatPanel::refreshSlow);
    const auto search = [this, at = std::make_shared<int>(0), count = std::make_shared<int>(0)](
                            const QString* text, int step) {
        if (text) {
            *count = m_view->find(*text);
            *at = std::max(0, *count - 1);        // the newest match first
        } else if (*count > 0) {
            *at = (*at + step + *count) % *count;
        }
        if (*count > 0) m_view->showMatch(*at);
        m_find->setCount(*at, *count);
    };
    connect(m_find, &FindBar::changed, this, [search](const QString& text) { search(&text, 0); });
    connect(m_find, &FindBar::stepped, this, [search](int by) { search(nullptr, by); });
    connect(m_find, &FindBar::closed, this, [this] {
        m_view->find({});
        m_composer->focusEditor();
    });
    refreshSlow();
    m_composer->setSummary(m_settings.summary());
    setSource(nullptr);
    setDensity(Density::Normal);
    refreshHead();
}

ChatPanel::~ChatPanel() {
    if (m_run) m_run->cancel();
}

QWidget* ChatPanel::listButton() const { return m_head->listButton(); }

void ChatPanel::setSource(SessionSource* source) {
    m_source = source && source->model() ? source : nullptr;
    const ModelFacts* model = m_source ? m_source->model() : nullptr;
    if (model) beginSession(model->name);
    m_composer->setModelName(model ? model->name : QString());
    ChatSettings defaults;
    if (model && model->sampling.temperature > 0) {
        defaults.sampling.temperature = model->sampling.temperature;
        defaults.sampling.topK = model->sampling.topK;
        defaults.sampling.topP = model->sampling.topP;
    }
    m_sampling->setSettings(m_settings, defaults);
    refreshAvailability();
    refreshMeter();
}

// Turns of an earlier session stand on another clock; a chat with another model is another chat.
void ChatPanel::beginSession(const QString& model) {
    for (Turn& turn : m_chat.turns) turn.live = false;
    m_view->reset();
    m_view->show(m_chat, m_running);
    if (!m_modelName.isEmpty() && m_modelName != model && !m_chat.isEmpty()) newChat();
    m_modelName = model;
}

void ChatPanel::refreshAvailability() {
    const ModelFacts* model = m_source ? m_source->model() : nullptr;
    const bool continues = model && model->continues;
    const QString reason = !model      ? QString("Load a model to chat")
                           : continues ? QString("The beginning of a text, which the model continues")
                                       : model->chatProblem;
    m_composer->setAvailable(model && (continues || reason.isEmpty()), reason);
    m_view->setEmptyText(!model      ? QString("No model is loaded")
                         : continues ? model->name + " continues a text"
                                     : "Ask " + model->name,
                         !model      ? QString("Open one to chat and to see where its time goes.")
                         : continues ? QString("It has no chat template: what you write is not a question, but how the text begins.")
                         : reason.isEmpty() ? QString("The plots fill as it answers.") : reason,
                         model ? QString() : QString("Open a model"));
}

void ChatPanel::setDensity(Density density) {
    m_density = density;
    const bool small = density == Density::Small, large = density == Density::Large;
    m_head->setCompact(small);
    m_readout->setVisible(!small);
    m_composer->setCompact(small);
    m_view->setCompact(small);
    m_view->setPadding(small ? 12 : large ? 24 : 16, small ? 8 : large ? 16 : 12);
    QLayout* inset = m_composer->parentWidget()->layout();
    if (small) inset->setContentsMargins(8, 0, 8, 8);
    else if (large) inset->setContentsMargins(16, 8, 16, 16);
    else inset->setContentsMargins(12, 8, 12, 12);
}

bool ChatPanel::reusable() const { return m_chat.isEmpty() && m_chat.system.isEmpty(); }

void ChatPanel::openConversation(Conversation conversation) {
    if (m_run) stop();
    m_run.reset();
    m_running = -1;
    m_composer->setGenerating(false);
    m_chat = std::move(conversation);
    m_readout->setContent({});
    m_viewState->setCursor(std::numeric_limits<double>::quiet_NaN());
    m_view->systemFold()->setOpen(false);
    m_view->show(m_chat, -1);
    refreshSlow();
    m_view->scrollToBottom();
    refreshHead();
    refreshMeter();
    emit currentChanged(m_chat.id);
}

void ChatPanel::openById(const QString& id) {
    if (id == m_chat.id) return;
    m_store->load(id, [this, id](std::optional<Conversation> conversation) {
        if (conversation) openConversation(std::move(*conversation));
        else emit failed("The chat could not be opened", id + ".json is missing or not readable");
    });
}

void ChatPanel::newChat() {
    if (!reusable()) openConversation(Conversation::create());
    m_composer->focusEditor();
}

void ChatPanel::send(const QString& text) {
    if (!m_source || m_run || text.trimmed().isEmpty()) return;
    Turn turn;
    turn.text = text;
    turn.sessionTime = m_source->sessionTime(monotonicNs());
    turn.wallMs = QDateTime::currentMSecsSinceEpoch();
    turn.live = true;
    const QVector<int> path = m_chat.path();
    reply(m_chat.append(path.isEmpty() ? -1 : path.last(), turn));
}

nlohmann::ordered_json ChatPanel::messagesUpTo(int userTurn) const {
    nlohmann::ordered_json messages = nlohmann::ordered_json::array();
    if (!m_chat.system.trimmed().isEmpty())
        messages.push_back({{"role", "system"}, {"content", m_chat.system.toStdString()}});
    for (const int index : m_chat.path()) {
        const Turn& turn = m_chat.turns[index];
        const bool user = turn.role == Turn::Role::User;
        QString text = turn.text;
        if (!user) text = text.mid(splitReply(turn).answerFrom);  // reasoning is not repeated
        messages.push_back({{"role", user ? "user" : "assistant"}, {"content", text.toStdString()}});
        if (index == userTurn) break;
    }
    return messages;
}

void ChatPanel::reply(int userTurn) {
    if (!m_source || !m_source->model()) return;
    if (m_chat.title.isEmpty()) m_chat.title = m_chat.suggestTitle();
    m_startNs = monotonicNs();
    Turn turn;
    turn.role = Turn::Role::Model;
    turn.model = m_source->model()->name;
    turn.sessionTime = m_source->sessionTime(m_startNs);
    turn.wallMs = QDateTime::currentMSecsSinceEpoch();
    turn.figures.from = turn.sessionTime;
    turn.live = true;
    const int branch = int(m_chat.turns[userTurn].children.size());
    Sampling sampling = m_settings.sampling;
    sampling.seed += uint64_t(branch);            // another branch is another draw
    turn.figures.drawn = sampling.temperature > 0 ? QString("seed %1").arg(sampling.seed)
                                                  : QString("greedy sampling, no seed");
    m_running = m_chat.append(userTurn, turn);
    m_lookups = m_hits = 0;
    m_gapSumMs = 0;
    m_promptTotal = m_seenTokens = 0;
    const auto snapshot = m_source->snapshot();
    m_bytesAtStart = snapshot ? snapshot->store.bytesLoaded : 0;

    ChatRequest request;
    request.messages = messagesUpTo(userTurn);
    request.sampling = sampling;
    request.maxTokens = m_settings.maxTokens;
    for (const QString& stop : m_settings.stops) request.stops.push_back(stop.toStdString());
    m_run = m_source->startChat(std::move(request));
    m_composer->setGenerating(true);
    m_view->show(m_chat, m_running);
    m_view->scrollToBottom();
    refreshHead();
    save();
    emit currentChanged(m_chat.id);
    emit generatingChanged(true);
}

void ChatPanel::stop() {
    if (m_run && m_source) m_source->cancelChat(m_run);
}

void ChatPanel::regenerate(int turn) {
    if (m_run) return;
    const QVector<int> path = m_chat.path();
    if (turn < 0)
        for (const int index : path)
            if (m_chat.turns[index].role == Turn::Role::Model) turn = index;
    if (turn < 0) return;
    reply(m_chat.turns[turn].parent);
}

void ChatPanel::editLast() {
    for (size_t i = m_view->turns().size(); i-- > 0;) {
        if (auto* user = qobject_cast<UserTurn*>(m_view->turns()[i])) {
            user->startEdit();
            return;
        }
    }
}

void ChatPanel::tick(const std::shared_ptr<const Snapshot>& snapshot) {
    if (!m_run) return;
    const std::shared_ptr<ChatRun> run = m_run;
    const ChatRun::Update update = run->take();
    apply(update, snapshot.get());
    if (update.result) {
        finish(*update.result);
        return;
    }
    saveWhileStreaming();
    const Turn& turn = m_chat.turns[m_running];
    const bool prompt = turn.tokens.isEmpty();
    if (!prompt && update.tokens.empty()) return;
    const QString progress =
        update.promptTotal > 0 ? QString("Reading the prompt, %1 of %2 tokens").arg(
            QString::fromStdString(formatCount(update.promptDone)),
            QString::fromStdString(formatCount(update.promptTotal))) : QString();
    m_view->update(m_chat, m_running, prompt ? ModelTurn::State::Prompt : ModelTurn::State::Generating,
                   progress);
    refreshSlow();
    refreshMeter();
    refreshPill();
}

void ChatPanel::apply(const ChatRun::Update& update, const Snapshot* snapshot) {
    Turn& turn = m_chat.turns[m_running];
    if (update.promptTotal > 0) m_promptTotal = int(update.promptTotal);
    turn.figures.promptTokens = m_promptTotal;
    turn.inReasoning = update.inReasoning;
    for (const GeneratedToken& token : update.tokens) {
        turn.text += QString::fromStdString(token.text);
        TokenMark mark;
        mark.end = int(turn.text.size());
        mark.gapMs = float(double(token.gapNs) / 1e6);
        mark.stallMs = float(double(token.stallNs) / 1e6);
        mark.waitMs = float(double(token.worstWaitNs) / 1e6);
        mark.t = m_source ? m_source->sessionTime(token.timeNs) : 0;
        if (token.worstWaitNs > 0) {
            mark.layer = token.worstLayer;
            mark.expert = token.worstExpert;
        }
        if (turn.tokens.isEmpty() && token.timeNs > m_startNs)
            turn.figures.ttftMs = double(token.timeNs - m_startNs) / 1e6;
        turn.tokens << mark;
        m_gapSumMs += mark.gapMs;
        m_lookups += token.lookups;
        m_hits += token.hits;
    }
    if (update.tokens.empty()) return;
    TurnFigures& f = turn.figures;
    f.tokens = int(turn.tokens.size());
    if (f.tokens > 1 && m_gapSumMs > 0) f.tokS = (f.tokens - 1) / m_gapSumMs * 1000;
    if (m_lookups > 0) f.hitRate = double(m_hits) / double(m_lookups) * 100;
    if (snapshot && snapshot->store.bytesLoaded >= m_bytesAtStart)
        f.bytesRead = double(snapshot->store.bytesLoaded - m_bytesAtStart);
    f.to = turn.tokens.last().t;
    m_unsaved = true;
}

// By the clock, not by the tokens: the last ones before a long wait are saved too.
void ChatPanel::saveWhileStreaming() {
    if (!m_unsaved || (m_saved.isValid() && m_saved.elapsed() < kSaveEveryMs)) return;
    save();
}

void ChatPanel::finish(const RequestResult& result) {
    Turn& turn = m_chat.turns[m_running];
    TurnFigures& f = turn.figures;
    const bool failed = !result.status.ok();
    if (!failed) {
        // A stop string is cut from the text; tokens that lie behind its end go with it.
        const QString text = QString::fromStdString(result.text);
        if (!text.isEmpty() && text.size() <= turn.text.size()) turn.text = text;
        for (TokenMark& mark : turn.tokens) mark.end = std::min(mark.end, int(turn.text.size()));
        f.tokens = int(result.tokens.size());
        f.promptTokens = int(result.promptTokens);
        f.ttftMs = result.ttftMs;
        f.promptTokS = result.promptTokS > 0 ? result.promptTokS : TurnFigures::kUnknown;
        if (result.decodeTokS > 0) f.tokS = result.decodeTokS;
        if (result.experts.lookups > 0)
            f.hitRate = double(result.experts.hits) / double(result.experts.lookups) * 100;
        f.bytesRead = double(result.experts.bytesLoaded);
    } else if (result.stop != StopReason::Cancelled) {
        turn.error = QString::fromStdString(result.status.text());
    }
    const bool full = result.stop == StopReason::ContextFull;
    if (full) turn.error = contextFullText();
    f.stop = failed && result.stop != StopReason::Cancelled && !full
                 ? QString("error") : QString(stopReasonName(result.stop));
    if (m_source) f.to = m_source->sessionTime(monotonicNs());
    const int index = m_running;
    m_run.reset();
    m_running = -1;
    m_composer->setGenerating(false);
    m_view->update(m_chat, index, ModelTurn::State::Done, {});
    refreshSlow();
    refreshMeter();
    refreshPill();
    save();
    emit generatingChanged(false);
    if (failed && !m_chat.turns[index].error.isEmpty())
        emit replyFailed(m_chat.turns[index].error);
}

QString ChatPanel::contextFullText() const {
    if (!m_source) return "The context is full.";
    const auto tokens = [](int64_t n) { return QString::fromStdString(formatCount(n)) + " tokens"; };
    const int64_t length = m_source->model()->contextLength;
    const int64_t most = m_source->knobLimits(KnobId::ContextLength).max;
    const QString text = "This chat fills the context of " + tokens(length);
    return most > length ? text + "; the model can hold " + tokens(most) +
                               ". Load it with a larger context length, or begin a new chat."
                         : text + ", the model's maximum. Begin a new chat.";
}

void ChatPanel::save() {
    m_unsaved = false;
    m_saved.start();
    m_chat.changed = QDateTime::currentDateTime();
    m_store->save(m_chat);
}

void ChatPanel::rename(const QString& title) {
    m_chat.title = title;
    refreshHead();
    save();
    emit currentChanged(m_chat.id);
}

void ChatPanel::deleteCurrent() {
    if (m_chat.isEmpty()) return;
    const QString id = m_chat.id, title = m_chat.title;
    if (m_run) stop();
    openConversation(Conversation::create());
    m_store->remove(id);
    emit deleted(title);
}

void ChatPanel::refreshHead() { m_head->setTitle(m_chat.title.isEmpty() ? "New chat" : m_chat.title); }

// What the last reply of this model held, and what was written since; another model counts
// otherwise, so then the text is counted.
void ChatPanel::refreshMeter() {
    int used = 0;
    QString since;
    for (const int index : m_chat.path()) {
        const Turn& turn = m_chat.turns[index];
        const bool counted = turn.role == Turn::Role::Model && turn.figures.promptTokens > 0 &&
                             m_source && turn.model == m_source->model()->name;
        if (counted) {
            used = turn.figures.promptTokens + turn.figures.tokens;
            since.clear();
        } else if (index != m_running) {
            since += turn.text + "\n";
        }
    }
    if (m_source && m_running < 0 && !since.isEmpty())
        used += std::max(0, m_source->countTokens(since));
    m_composer->setContext(used, m_source ? int(m_source->model()->contextLength) : 0);
}

void ChatPanel::refreshPill() {
    const bool bottom = m_view->atBottom();
    const int tokens = m_running >= 0 ? int(m_chat.turns[m_running].tokens.size()) : 0;
    if (bottom || m_chat.isEmpty()) {
        m_seenTokens = tokens;
        m_pill->hide();
        return;
    }
    const int below = m_running >= 0 ? tokens - m_seenTokens : 0;
    m_pill->setText(below > 0 ? QString("Newest, %1 tokens below").arg(
                                    QString::fromStdString(formatCount(below))) : QString("Newest"));
    const QSize size = m_pill->sizeHint();
    m_pill->setGeometry((width() - size.width()) / 2,
                        m_view->geometry().bottom() - size.height() - 8, size.width(), size.height());
    m_pill->show();
    m_pill->raise();
}

void ChatPanel::hover(int turn, int token) {
    if (token < 0) {                     // its line stays readable, its place in the plots goes
        m_viewState->setCursor(std::numeric_limits<double>::quiet_NaN());
        return;
    }
    if (turn >= m_chat.turns.size()) return;
    const Turn& source = m_chat.turns[turn];
    if (token >= source.tokens.size()) return;
    const TokenMark& mark = source.tokens[token];
    const int from = token > 0 ? source.tokens[token - 1].end : 0;
    Readout::Content content;
    content.token = source.text.mid(from, mark.end - from).replace('\n', "⏎");
    if (content.token.startsWith(' ')) content.token[0] = QChar(0x2423);
    content.gap = mark.gapMs > 0 ? fixed(mark.gapMs, 1) + " ms" : QString("first token");
    content.slo = "SLO " + fixed(m_viewState->sloMs(), 0);
    content.slow = mark.gapMs > m_viewState->sloMs();
    content.t = mark.t;
    if (mark.layer >= 0) {
        content.reason = {{QString("layer %1 waited ").arg(mark.layer), Tone::Text2, type::dense()},
                          {fixed(mark.waitMs, 1) + " ms", Tone::Text2, type::monoSmall()},
                          {QString(" for expert %1").arg(mark.expert), Tone::Text2, type::dense()}};
        // Other layers waited too: all of it together.
        if (mark.stallMs > mark.waitMs)
            content.reason << Span{", all layers ", Tone::Text2, type::dense()}
                           << Span{fixed(mark.stallMs, 1) + " ms", Tone::Text2, type::monoSmall()};
    } else {
        content.reason = {{"no wait for an expert", Tone::Text2, type::dense()}};
    }
    content.inPlots = source.live;
    m_readout->setContent(content);
    m_viewState->setCursor(source.live ? mark.t : std::numeric_limits<double>::quiet_NaN());
}

// A token is slow when its gap is over the limit; where most of the chat is, only those that stand
// out from its median: a mark on everything says nothing.
void ChatPanel::refreshSlow() {
    std::vector<float> gaps;
    for (const int index : m_chat.path())
        for (const TokenMark& token : m_chat.turns[index].tokens)
            if (token.gapMs > 0) gaps.push_back(token.gapMs);
    double limit = m_viewState->sloMs();
    if (!gaps.empty()) {
        const auto middle = gaps.begin() + std::ptrdiff_t(gaps.size() / 2);
        std::nth_element(gaps.begin(), middle, gaps.end());
        limit = std::max(limit, 1.5 * double(*middle));
    }
    // While a reply streams the limit follows its median; a hair's breadth is not worth a redraw.
    const double slo = m_viewState->sloMs();
    if (std::abs(limit - m_slowMs) < 0.02 * m_slowMs && slo == m_slowSlo) return;
    m_slowMs = limit;
    m_slowSlo = slo;
    m_view->setSlowMs(limit);
    m_readout->setSlowMs(limit, m_viewState->sloMs());
}

void ChatPanel::jump(int turn) {
    const TurnFigures& f = m_chat.turns[turn].figures;
    if (!std::isfinite(f.from)) return;
    const double to = std::isfinite(f.to) ? f.to : m_viewState->now();
    const double margin = std::max(0.5, (to - f.from) * 0.05);
    m_viewState->setRange(f.from - margin, to + margin);
}

void ChatPanel::openFind() { m_find->open(); }

void ChatPanel::editSystemPrompt() {
    m_view->systemFold()->setOpen(true);
    m_view->verticalScrollBar()->setValue(0);
}

void ChatPanel::openSampling() {
    if (m_sampling->isOpen()) m_sampling->closePopover();
    else m_sampling->openAt(m_density == Density::Small ? static_cast<QWidget*>(m_composer)
                                                        : m_composer->samplingButton(), true, false);
}

void ChatPanel::showMenu(QWidget* anchor) {
    QMenu menu;
    menu.addAction("Rename...", this, &ChatPanel::renameWanted);
    menu.addAction("System prompt", this, &ChatPanel::editSystemPrompt);
    menu.addAction("Sampling", this, &ChatPanel::openSampling);
    menu.addSeparator();
    menu.addAction("Export...", this, &ChatPanel::exportWanted);
    menu.addAction("Import...", this, &ChatPanel::importWanted);
    menu.addSeparator();
    menu.addAction("Delete chat", this, &ChatPanel::deleteCurrent)->setEnabled(!m_chat.isEmpty());
    menu.exec(anchor->mapToGlobal(QPoint(0, anchor->height())));
}

void ChatPanel::resizeEvent(QResizeEvent*) { refreshPill(); }

void ChatPanel::keyPressEvent(QKeyEvent* event) {
    if (event->key() == Qt::Key_Escape && m_run) {
        stop();
        return;
    }
    QWidget::keyPressEvent(event);
}

void ChatPanel::paintEvent(QPaintEvent*) {
    QPainter p(this);
    p.fillRect(rect(), tone(Tone::Bg1));
}

}  // namespace colibri::ui
