// SPDX-License-Identifier: GPL-3.0-or-later
// ChatPanel: its parts and the current conversation. See also chat_panel_replies.cpp,
// chat_panel_text.cpp and chat_panel_files.cpp.
#include "app/workbench/chat/chat_panel.h"

#include <QApplication>
#include <QDesktopServices>
#include <QKeyEvent>
#include <QMenu>
#include <QPainter>
#include <QScrollBar>
#include <QUrl>
#include <QUuid>
#include <QVBoxLayout>
#include <algorithm>
#include <limits>

#include "app/workbench/chat/chat_parts.h"
#include "app/workbench/chat/prompt_sheet.h"

namespace colibri::ui {
namespace {

constexpr int kCountDraftMs = 60;  // after the last key press, since counting takes time

// Only what a browser or mail program opens: a reply must not start anything else.
void openLink(const QString& address) {
    const QUrl url(address);
    if (url.isValid() && QStringList{"http", "https", "mailto"}.contains(url.scheme().toLower()))
        QDesktopServices::openUrl(url);
}

}  // namespace

ChatPanel::ChatPanel(ChatStore* store, ViewState* view, QWidget* window, QWidget* parent)
    : QWidget(parent),
      m_store(store),
      m_viewState(view),
      m_chat(Conversation::create()),
      m_settings(ChatSettings::load({})),
      m_head(new ChatHead),
      m_find(new FindBar),
      m_view(new ChatView),
      m_readout(new Readout),
      m_composer(new Composer),
      m_sampling(new SamplingPanel(window)),
      m_prompt(new PromptSheet(window)),
      m_templates(new ChatTemplates(
          window, m_sampling, [this](const auto& chosen) { return renderWith(chosen); }, this)),
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

    m_draftTimer.setSingleShot(true);
    m_draftTimer.setInterval(kCountDraftMs);
    connectHead();
    connectComposer();
    connectView();
    connectFind();
    refreshSlow();
    m_composer->setSummary(m_settings.summary());
    setSource(nullptr);
    setWindowClass(WindowClass::Normal);
    refreshHead();
}

ChatPanel::~ChatPanel() {
    // Child widgets lose the focus while they are destroyed.
    disconnect(qApp, nullptr, this, nullptr);
    if (m_reply) m_reply->run()->cancel();
    for (const Background& other : m_background) other.reply.run()->cancel();
}

void ChatPanel::connectHead() {
    connect(m_head, &ChatHead::titleClicked, this,
            [this] { emit listWanted(m_head->titleButton()); });
    connect(m_head, &ChatHead::listWanted, this, [this] { emit listWanted(m_head->listButton()); });
    connect(m_head, &ChatHead::findWanted, m_find, &FindBar::open);
    connect(m_head, &ChatHead::newWanted, this, &ChatPanel::newChat);
    connect(m_head, &ChatHead::moreWanted, this, [this] { showMenu(m_head->moreButton()); });
    // Esc stops the reply if the focus is in the chat; the Stop button shows the key.
    connect(qApp, &QApplication::focusChanged, this, [this](QWidget*, QWidget* now) {
        m_composer->setEscapeStops(now && isAncestorOf(now));
    });
}

void ChatPanel::connectComposer() {
    connect(m_composer, &Composer::sendWanted, this, &ChatPanel::send);
    connect(m_composer, &Composer::stopWanted, this, &ChatPanel::stop);
    connect(m_composer, &Composer::drafted, &m_draftTimer, qOverload<>(&QTimer::start));
    connect(&m_draftTimer, &QTimer::timeout, this, &ChatPanel::countDraft);
    connect(m_composer, &Composer::noticeAction, this, [this] {
        const QString draft = m_composer->text();
        newChat();
        m_composer->setText(draft);
    });
    connect(m_composer, &Composer::pageWanted, this, [this](int direction) {
        m_view->verticalScrollBar()->triggerAction(direction < 0
                                                       ? QAbstractSlider::SliderPageStepSub
                                                       : QAbstractSlider::SliderPageStepAdd);
    });
    connect(m_composer, &Composer::samplingWanted, this, &ChatPanel::openSampling);
    connect(m_sampling, &SamplingPanel::changed, this, [this] {
        m_settings = m_sampling->settings();
        m_settings.store(m_sampling->defaults());
        m_composer->setSummary(m_settings.summary());
        showContext();
    });
    connect(m_templates, &ChatTemplates::failed, this, &ChatPanel::failed);
    connect(m_templates, &ChatTemplates::changed, this, [this] {
        refreshAvailability();
        refreshMeter();
    });
}

void ChatPanel::connectView() {
    connect(m_view, &ChatView::editWanted, this, [this](int turn, const QString& text) {
        if (m_reply) return;
        Turn edited = newTurn(Turn::Role::User);
        edited.text = text;
        reply(m_chat.append(m_chat.turns[turn].parent, edited));
        m_composer->focusEditor();
    });
    connect(m_view, &ChatView::regenerateWanted, this, &ChatPanel::regenerate);
    connect(m_view, &ChatView::continueWanted, this, &ChatPanel::continueReply);
    connect(m_view, &ChatView::branchWanted, this, &ChatPanel::switchBranch);
    connect(m_view, &ChatView::jumpWanted, this, &ChatPanel::jump);
    connect(m_view, &ChatView::tokenHovered, this, &ChatPanel::hover);
    connect(m_view, &ChatView::copied, this, &ChatPanel::copied);
    connect(m_view, &ChatView::linkWanted, this, [](const QString& address) { openLink(address); });
    connect(m_view, &ChatView::scrolled, this, &ChatPanel::refreshPill);
    connect(m_view, &ChatView::newChatWanted, this, &ChatPanel::newChat);
    connect(m_view, &ChatView::systemChanged, this, [this](const QString& text) {
        m_chat.system = text;
        if (m_source) m_view->systemFold()->setTokens(m_source->countTokens(text));
        m_draftTimer.start();
        save();
    });
    connect(m_readout, &Readout::showWanted, this, [this](double t) {
        m_viewState->setRange(t - 5, t + 5);
        m_viewState->setCursor(t);
    });
    connect(m_pill, &QAbstractButton::clicked, this, [this] { m_view->scrollToBottom(); });
    connect(m_viewState, &ViewState::sloChanged, this, &ChatPanel::refreshSlow);
}

void ChatPanel::connectFind() {
    m_find->searchIn(m_view);
    connect(m_find, &FindBar::closed, m_composer, &Composer::focusEditor);
}

QWidget* ChatPanel::listButton() const {
    return m_head->listButton();
}

void ChatPanel::setSource(SessionSource* source) {
    m_source = source && source->model() ? source : nullptr;
    const ModelFacts* model = m_source ? m_source->model() : nullptr;
    if (model) beginSession(model->name);
    m_composer->setModelName(model ? model->name : QString());
    ChatSettings defaults;
    if (model) defaults.sampling = model->sampling;
    m_settings = ChatSettings::load(defaults);
    m_composer->setSummary(m_settings.summary());
    m_sampling->setRecommended(model && model->recommendsSampling ? std::optional(model->sampling)
                                                                  : std::nullopt);
    m_sampling->setSettings(m_settings, defaults);
    m_sampling->setContextLength(model ? model->contextLength : 0);
    m_templates->setModel(model);
    refreshAvailability();
    refreshMeter();
}

// The times of earlier turns belong to another session's clock. If another model is loaded, a new
// chat begins.
void ChatPanel::beginSession(const QString& model) {
    m_session = QUuid::createUuid().toString(QUuid::WithoutBraces);
    m_chat.setLive(m_session);
    for (Background& other : m_background) other.chat.setLive(m_session);
    m_view->reset();
    m_view->show(m_chat, m_reply ? m_reply->turn() : -1);
    if (!m_modelName.isEmpty() && m_modelName != model && !m_chat.isEmpty()) newChat();
    m_modelName = model;
}

void ChatPanel::refreshAvailability() {
    const ModelFacts* model = m_source ? m_source->model() : nullptr;
    const bool continues = continuesText();
    const QString reason = !model ? QString("Load a model to chat")
                           : continues
                               ? QString("Write the beginning of a text; the model continues it")
                           : m_templates->current() && model->continues ? QString()
                                                                        : model->chatProblem;
    m_composer->setAvailable(model && (continues || reason.isEmpty()), reason);
    m_view->setEmptyText(!model      ? QString("No model loaded")
                         : continues ? model->name + " continues a text"
                                     : "Ask " + model->name,
                         !model ? QString("Open a model to chat and to see where the time goes.")
                         : continues ? QString("It has no chat template: what you write is not a "
                                               "question but the beginning of a text. "
                                               "Sampling offers templates of other models.")
                         : reason.isEmpty() ? QString("The plots fill in while the model replies.")
                                            : reason,
                         model ? QString() : QString("Open a model"));
}

void ChatPanel::setWindowClass(WindowClass windowClass) {
    m_windowClass = windowClass;
    const bool small = windowClass == WindowClass::Small, large = windowClass == WindowClass::Large;
    m_head->setCompact(small);
    m_readout->setVisible(!small);
    m_composer->setCompact(small);
    m_view->setCompact(small);
    m_view->setPadding(small ? 12 : large ? 24 : 16, small ? 8 : large ? 16 : 12);
    QLayout* inset = m_composer->parentWidget()->layout();
    if (small)
        inset->setContentsMargins(8, 0, 8, 8);
    else if (large)
        inset->setContentsMargins(16, 8, 16, 16);
    else
        inset->setContentsMargins(12, 8, 12, 12);
}

bool ChatPanel::isReusable() const {
    return m_chat.isEmpty() && m_chat.system.isEmpty();
}

void ChatPanel::openConversation(Conversation conversation) {
    moveToBackground();
    m_chat = std::move(conversation);
    const bool own =
        std::any_of(m_chat.turns.begin(), m_chat.turns.end(), [](const Turn& t) { return t.live; });
    if (!own) m_chat.setLive(m_session);
    const auto running = std::find_if(m_background.begin(), m_background.end(),
                                      [&](const Background& b) { return b.chat.id == m_chat.id; });
    if (running != m_background.end()) {  // its running reply is shown again
        m_chat = std::move(running->chat);
        m_reply = std::move(running->reply);
        m_background.erase(running);
    }
    m_composer->setGenerating(m_reply.has_value());
    m_readout->setContent({});
    m_viewState->setCursor(std::numeric_limits<double>::quiet_NaN());
    m_view->systemFold()->setOpen(false);
    m_view->show(m_chat, m_reply ? m_reply->turn() : -1);
    refreshSlow();
    m_view->scrollToBottom();
    refreshHead();
    refreshMeter();
    if (m_find->isVisible()) m_find->open();  // searches this chat
    emit currentChanged(m_chat.id);
    emit generatingChanged(m_reply.has_value());
    emit repliesChanged(replying());
}

void ChatPanel::openById(const QString& id) {
    if (id == m_chat.id) return;
    for (const Background& other : m_background)
        if (other.chat.id == id) return openConversation(Conversation(other.chat));
    m_store->load(id, [this, id](std::optional<Conversation> conversation) {
        if (conversation)
            openConversation(std::move(*conversation));
        else
            emit failed("The chat could not be opened", id + ".json is missing or cannot be read");
    });
}

void ChatPanel::newChat() {
    if (!isReusable()) openConversation(Conversation::create());
    m_composer->focusEditor();
}

// The turn stays at its position on the screen, so that branches can be compared.
void ChatPanel::switchBranch(int turn, int step) {
    const QVector<int> siblings = m_chat.siblings(turn);
    const qsizetype at = siblings.indexOf(turn) + step;
    if (m_reply || at < 0 || at >= siblings.size()) return;
    const int offset = m_view->offsetOf(turn);
    m_chat.activate(siblings[at]);
    m_view->show(m_chat, -1);
    m_view->scrollTurnTo(siblings[at], offset);
    refreshSlow();
    refreshMeter();
    save();
}

void ChatPanel::rename(const QString& id, const QString& title) {
    for (Background& other : m_background) {
        if (other.chat.id != id) continue;
        other.chat.title = title;
        return m_store->save(other.chat);
    }
    if (id != m_chat.id) return m_store->rename(id, title);
    m_chat.title = title;
    refreshHead();
    save();
    emit currentChanged(m_chat.id);
}

void ChatPanel::deleteChat(const QString& chatId) {
    const QString id = chatId;  // may refer to m_chat, which is replaced
    QString title;
    for (const ChatSummary& summary : m_store->summaries())
        if (summary.id == id) title = summary.title;
    const bool shown = id == m_chat.id;
    dropReply(id);
    if (shown) openConversation(Conversation::create());
    m_store->remove(id);
    emit deleted(title);
}

void ChatPanel::refreshHead() {
    m_head->setTitle(m_chat.title.isEmpty() ? "New chat" : m_chat.title);
}

void ChatPanel::openSampling() {
    if (m_sampling->isOpen())
        m_sampling->closePopover();
    else
        m_sampling->openAt(m_windowClass == WindowClass::Small ? static_cast<QWidget*>(m_composer)
                                                               : m_composer->samplingButton(),
                           true, false);
}

void ChatPanel::showMenu(QWidget* anchor) {
    QMenu menu;
    menu.addAction("Rename...", this, &ChatPanel::renameWanted);
    menu.addAction("Duplicate", this, [this] { duplicate(m_chat.id); })
        ->setEnabled(!m_chat.isEmpty());
    menu.addAction("System prompt", m_view, &ChatView::openSystemPrompt);
    menu.addAction("Sampling", this, &ChatPanel::openSampling);
    menu.addAction("Chat template...", m_templates, &ChatTemplates::edit)
        ->setEnabled(m_source != nullptr);
    menu.addAction("Show the prompt", this, &ChatPanel::showPrompt)
        ->setEnabled(m_source != nullptr);
    menu.addSeparator();
    menu.addAction("Export...", this, &ChatPanel::exportWanted);
    menu.addAction("Import...", this, &ChatPanel::importWanted);
    menu.addSeparator();
    menu.addAction("Delete chat", this, [this] { deleteChat(m_chat.id); })
        ->setEnabled(!m_chat.isEmpty());
    menu.exec(anchor->mapToGlobal(QPoint(0, anchor->height())));
}

void ChatPanel::resizeEvent(QResizeEvent*) {
    refreshPill();
}

// Esc closes the sampling panel or the find bar first, else it stops the reply.
void ChatPanel::keyPressEvent(QKeyEvent* event) {
    if (event->key() != Qt::Key_Escape) return QWidget::keyPressEvent(event);
    if (m_sampling->isOpen())
        m_sampling->closePopover();
    else if (m_find->isVisible())
        m_find->close();
    else if (m_reply)
        stop();
    else
        QWidget::keyPressEvent(event);
}

void ChatPanel::paintEvent(QPaintEvent*) {
    QPainter p(this);
    p.fillRect(rect(), tone(Tone::Bg1));
}

}  // namespace colibri::ui
