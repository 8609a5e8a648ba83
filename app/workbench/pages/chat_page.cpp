// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/workbench/pages/chat_page.h"

#include <QHBoxLayout>
#include <QKeyEvent>
#include <QMenu>
#include <QStackedWidget>
#include <QVBoxLayout>

#include "app/workbench/platform/settings.h"
#include "app/workbench/widgets/controls.h"

namespace colibri::ui {
namespace {

constexpr int kPaneWidth = 372;
constexpr int kFirstDock = 3;  // index of the first further dock in the pane

// Default widths, in px, of the widgets of the splitter.
QList<int> drawnSizes(WindowClass windowClass, int width) {
    switch (windowClass) {
        case WindowClass::Small:
            return {width - kPaneWidth, kPaneWidth - 1};
        case WindowClass::Compact:
            return {width * 46 / 100, width - width * 46 / 100 - 1};
        case WindowClass::Normal:
            return {520, width - 520 - 304 - 1, 303};
        case WindowClass::Large:
            return {264, 719, width - 264 - 720 - 376 - 1, 375};
    }
    return {};
}

const char* settingsName(WindowClass windowClass) {
    static const char* const kNames[] = {"small", "compact", "normal", "large"};
    return kNames[int(windowClass)];
}

// The drawer: a background with a line at its left edge.
class Drawer : public QWidget {
public:
    explicit Drawer(QWidget* parent) : QWidget(parent) {
        auto* column = new QVBoxLayout(this);
        column->setContentsMargins(1, 0, 0, 0);
        hide();
    }

protected:
    void paintEvent(QPaintEvent*) override {
        QPainter p(this);
        p.fillRect(rect(), tone(Tone::Bg1));
        p.fillRect(QRectF(0, 0, 1, height()), tone(Tone::Line2));
    }
};

class ListBox : public Popover {
public:
    using Popover::Popover;
    QSize sizeHint() const override { return {300, 420}; }
};

}  // namespace

// A stack with tabs: Plots, Knobs, Experts and the further docks.
class ChatPage::Pane : public QWidget {
public:
    Pane() : stack(new QStackedWidget) {
        auto* column = new QVBoxLayout(this);
        column->setContentsMargins(0, 0, 0, 0);
        column->setSpacing(0);
        auto* head = new QWidget;
        head->setFixedHeight(32);
        line = new QHBoxLayout(head);
        line->setContentsMargins(6, 0, 6, 1);
        line->setSpacing(0);
        line->addStretch();
        more = new IconButton("more", "Choose plots");
        line->addWidget(more);
        column->addWidget(head);
        column->addWidget(stack, 1);
        for (const char* name : {"Plots", "Knobs", "Experts"}) addTab(name);
    }
    void addTab(const QString& name) {
        auto* holder = new QWidget;
        auto* inner = new QVBoxLayout(holder);
        inner->setContentsMargins(0, 0, 0, 0);
        const int index = stack->addWidget(holder);
        auto* tab = new TabButton("", name, true);
        tab->setChecked(index == 0);
        connect(tab, &QAbstractButton::clicked, this,
                [this, index] { stack->setCurrentIndex(index); });
        connect(stack, &QStackedWidget::currentChanged, tab, [tab, index](int at) {
            if (at == index) tab->setChecked(true);
        });
        line->insertWidget(index, tab);
    }
    void put(int index, QWidget* widget) {
        stack->widget(index)->layout()->addWidget(widget);
        widget->show();
    }
    QStackedWidget* stack;
    QHBoxLayout* line = nullptr;
    IconButton* more = nullptr;

protected:
    void paintEvent(QPaintEvent*) override {
        QPainter p(this);
        p.fillRect(rect(), tone(Tone::Bg1));
        p.fillRect(QRectF(0, 31, width(), 1), tone(Tone::Line1));
    }
};

ChatPage::ChatPage(ChatStore* store, ViewState* view, QWidget* window)
    : m_window(window),
      m_split(new QSplitter(Qt::Horizontal)),
      m_list(new ChatList(store)),
      m_chat(new ChatPanel(store, view, window)),
      m_plots(new PlotsPanel(view)),
      m_knobs(new KnobsPanel),
      m_side(new SideDocks),
      m_recordedChat(new RecordedChat(view)),
      m_recordedKnobs(new RecordedKnobs),
      m_pane(new Pane),
      m_listPopover(new ListBox(window)),
      m_drawer(new Drawer(this)) {
    auto* column = new QVBoxLayout(this);
    column->setContentsMargins(0, 0, 0, 0);
    column->addWidget(m_split);
    m_split->setHandleWidth(1);
    m_split->setChildrenCollapsible(false);
    auto* listColumn = new QVBoxLayout(m_listPopover);
    listColumn->setContentsMargins(1, 1, 1, 1);
    m_list->setMinimumWidth(200);
    m_chat->setMinimumWidth(320);
    m_plots->setMinimumWidth(300);
    m_side->setMinimumWidth(264);
    m_recordedChat->setMinimumWidth(320);
    for (QWidget* widget : std::initializer_list<QWidget*>{m_recordedChat, m_recordedKnobs}) {
        widget->setParent(this);
        widget->hide();
    }
    m_chat->installEventFilter(this);
    auto* close = new IconButton("close", "Close", 24, m_drawer);
    close->describe("Close", "Esc");
    close->setObjectName("closeDrawer");
    connect(close, &QAbstractButton::clicked, this, &ChatPage::closeDrawer);
    connect(m_split, &QSplitter::splitterMoved, this, &ChatPage::saveSizes);
    connect(m_pane->more, &QAbstractButton::clicked, this, &ChatPage::showPaneMenu);
    connect(m_plots, &PlotsPanel::turnClicked, this, [view](double from, double to) {
        const double margin = std::max(0.5, (to - from) * 0.05);
        view->setRange(from - margin, to + margin);
    });
    connectList();
}

void ChatPage::connectList() {
    // Closing the popover returns the focus, so it must happen before the chat takes it.
    for (const auto chosen :
         {&ChatList::openWanted, &ChatList::exportChatWanted, &ChatList::duplicateWanted})
        connect(m_list, chosen, m_listPopover, &Popover::closePopover);
    connect(m_list, &ChatList::newWanted, m_listPopover, &Popover::closePopover);
    m_chat->setList(m_list);
    connect(m_chat, &ChatPanel::listWanted, this, &ChatPage::toggleList);
}

void ChatPage::showPaneMenu() {
    QMenu menu;
    for (const char* format : {"csv", "png", "svg"}) {
        menu.addAction(QString("Export plot as %1...").arg(QString(format).toUpper()), this,
                       [this, format] { m_plots->exportPlot(m_plots->focusedPlot(), format); });
    }
    m_plots->fillPlotsMenu(menu.addMenu("Plots"));
    menu.exec(m_pane->more->mapToGlobal(QPoint(0, 24)));
}

void ChatPage::setSource(SessionSource* source) {
    m_source = source;
    m_chat->setSource(source);
    if (!m_recorded) m_plots->setSource(source);
    m_knobs->setSource(source);
}

void ChatPage::setRecorded(RecordedSource* recorded) {
    m_recorded = recorded;
    m_recordedChat->setSource(recorded);
    m_recordedKnobs->setSource(recorded);
    m_plots->setSource(recorded ? static_cast<SessionSource*>(recorded) : m_source);
    if (m_arranged) arrangeFor(m_windowClass);
    if (m_arranged && m_windowClass == WindowClass::Small) m_pane->put(2, m_plots->experts());
}

QWidget* ChatPage::chatShown() const {
    return m_recorded ? static_cast<QWidget*>(m_recordedChat) : m_chat;
}

QWidget* ChatPage::sideShown() const {
    return m_recorded ? static_cast<QWidget*>(m_recordedKnobs) : m_side;
}

void ChatPage::arrangeFor(WindowClass windowClass) {
    m_windowClass = windowClass;
    m_drawer->hide();
    m_listPopover->closePopover();
    for (QWidget* widget : std::initializer_list<QWidget*>{m_list, m_chat, m_recordedChat, m_plots,
                                                           m_side, m_recordedKnobs, m_pane}) {
        widget->setParent(this);
        widget->hide();
    }
    const bool small = windowClass == WindowClass::Small;
    m_knobs->setHeadVisible(!small);
    for (const Dock& dock : m_docks) dock.widget->setHeadVisible(!small);
    m_chat->setWindowClass(windowClass);
    m_recordedChat->setWindowClass(windowClass);
    if (windowClass == WindowClass::Large) m_split->addWidget(m_list);
    m_split->addWidget(chatShown());
    if (small) {
        if (m_recorded) {  // it is in the pane otherwise
            m_knobs->setParent(this);
            m_knobs->hide();
        }
        m_pane->put(0, m_plots);
        m_pane->put(1, m_recorded ? static_cast<QWidget*>(m_recordedKnobs) : m_knobs);
        for (size_t i = 0; i < m_docks.size(); ++i)
            m_pane->put(kFirstDock + int(i), m_docks[i].widget);
        m_split->addWidget(m_pane);
    } else {
        m_split->addWidget(m_plots);
        m_side->put("knobs", "Knobs", m_knobs);
        for (const Dock& dock : m_docks) m_side->put(dock.key, dock.title, dock.widget);
        if (windowClass == WindowClass::Compact)
            m_drawer->layout()->addWidget(sideShown());
        else
            m_split->addWidget(sideShown());
        sideShown()->show();
    }
    if (windowClass != WindowClass::Large) {
        m_listPopover->layout()->addWidget(m_list);
        m_list->show();
    }
    for (int i = 0; i < m_split->count(); ++i) m_split->widget(i)->show();
    m_plots->show();
    restoreSizes();
}

void ChatPage::resizeEvent(QResizeEvent*) {
    const WindowClass windowClass = windowClassOf(width());
    if (windowClass != m_windowClass || !m_arranged) {
        m_arranged = true;
        arrangeFor(windowClass);
    } else {
        restoreSizes();
    }
    m_plots->setWindowClass(m_windowClass);
    if (m_windowClass == WindowClass::Small) m_pane->put(2, m_plots->experts());
    layOutDrawer();
}

// The close button is at the right of the tabs below the docks.
void ChatPage::layOutDrawer() {
    m_drawer->setGeometry(width() - 305, 0, 305, height());
    auto* close = m_drawer->findChild<IconButton*>("closeDrawer", Qt::FindDirectChildrenOnly);
    close->move(m_drawer->width() - 30, m_drawer->height() - 28);
    close->raise();
}

void ChatPage::closeDrawer() {
    m_drawer->hide();
    m_chat->composer()->focusEditor();
}

// Esc closes the drawer before it stops a reply.
bool ChatPage::eventFilter(QObject* object, QEvent* event) {
    if (object == m_chat && event->type() == QEvent::KeyPress && m_drawer->isVisible() &&
        static_cast<QKeyEvent*>(event)->key() == Qt::Key_Escape) {
        closeDrawer();
        return true;
    }
    return QWidget::eventFilter(object, event);
}

void ChatPage::keyPressEvent(QKeyEvent* event) {
    if (event->key() == Qt::Key_Escape && m_drawer->isVisible()) return closeDrawer();
    QWidget::keyPressEvent(event);
}

void ChatPage::restoreSizes() {
    m_restoring = true;
    const QString key = QString("layout/chat_") + settingsName(m_windowClass);
    QList<int> sizes = drawnSizes(m_windowClass, width());
    const QVariantList stored = settings().value(key).toList();
    if (stored.size() == sizes.size()) {
        // Side panels keep their width; the plots, or the chat in a small window, take the rest.
        const int flexible =
            m_windowClass == WindowClass::Small
                ? 0
                : int(sizes.size()) - (m_windowClass == WindowClass::Compact ? 1 : 2);
        int rest = width() - int(sizes.size()) + 1;
        for (int i = 0; i < sizes.size(); ++i) {
            if (i == flexible) continue;
            sizes[i] = stored[i].toInt();
            rest -= sizes[i];
        }
        if (rest >= 300)
            sizes[flexible] = rest;
        else
            sizes = drawnSizes(m_windowClass, width());
    }
    m_split->setSizes(sizes);
    m_restoring = false;
}

void ChatPage::saveSizes() {
    if (m_restoring) return;
    QVariantList stored;
    for (const int size : m_split->sizes()) stored << size;
    settings().setValue(QString("layout/chat_") + settingsName(m_windowClass), stored);
}

QVector<QWidget*> ChatPage::panes() const {
    QVector<QWidget*> panes;
    for (QWidget* pane : std::initializer_list<QWidget*>{
             m_windowClass == WindowClass::Large ? m_list : nullptr, chatShown(),
             m_windowClass == WindowClass::Small ? static_cast<QWidget*>(m_pane) : m_plots,
             sideShown()})
        if (pane && pane->isVisibleTo(this)) panes << pane;
    return panes;
}

void ChatPage::resetLayout() {
    for (const WindowClass windowClass :
         {WindowClass::Small, WindowClass::Compact, WindowClass::Normal, WindowClass::Large})
        settings().remove(QString("layout/chat_") + settingsName(windowClass));
    m_plots->resetShown();
    m_side->showDock("knobs");
    m_pane->stack->setCurrentIndex(0);
    m_drawer->hide();
    restoreSizes();
}

void ChatPage::addDock(const QString& key, const QString& title, DockPanel* dock) {
    dock->setParent(this);
    dock->hide();
    m_docks.push_back({key, title, dock});
    m_pane->addTab(title);
}

bool ChatPage::openSide(const QString& key) {
    if (m_windowClass == WindowClass::Compact) {
        if (m_drawer->isVisible() && m_side->current() == key) {
            closeDrawer();
            return false;
        }
        layOutDrawer();
        m_drawer->show();
        m_drawer->raise();
    }
    m_side->showDock(key);
    return true;
}

void ChatPage::showDock(const QString& key) {
    if (m_windowClass != WindowClass::Small) openSide(key);
    for (size_t i = 0; i < m_docks.size(); ++i) {
        if (m_docks[i].key != key) continue;
        if (m_windowClass == WindowClass::Small)
            m_pane->stack->setCurrentIndex(kFirstDock + int(i));
        if (m_docks[i].widget->isVisible()) m_docks[i].widget->setFocus();
    }
}

void ChatPage::showKnobs() {
    if (m_windowClass == WindowClass::Small)
        m_pane->stack->setCurrentIndex(1);
    else if (!openSide("knobs"))
        return;
    if (m_recorded) return;
    if (m_source) m_knobs->tick(m_source->snapshot());
    if (KnobControl* control = m_knobs->control(KnobId::ExpertCacheSize)) control->focusControl();
}

void ChatPage::showPane(const QString& name) {
    if (m_windowClass == WindowClass::Small)
        m_pane->stack->setCurrentIndex(name == "knobs" ? 1 : name == "experts" ? 2 : 0);
}

void ChatPage::toggleList(QWidget* anchor) {
    if (m_windowClass == WindowClass::Large) {
        m_list->beginSearch();
        return;
    }
    if (m_listPopover->isOpen()) {
        m_listPopover->closePopover();
        return;
    }
    m_listPopover->openAt(anchor ? anchor : m_chat->listButton(), false, false);
    m_list->beginSearch();
}

void ChatPage::paintEvent(QPaintEvent*) {
    QPainter p(this);
    p.fillRect(rect(), tone(Tone::Bg1));
}

}  // namespace colibri::ui
