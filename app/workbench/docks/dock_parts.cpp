// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/workbench/docks/dock_parts.h"

#include <QHBoxLayout>
#include <QLabel>
#include <QStackedWidget>

#include "app/workbench/widgets/controls.h"
#include "app/workbench/widgets/page_parts.h"

namespace colibri::ui {
namespace {

constexpr int kDockPad = 12, kDockHead = 32, kDockRow = 28, kLabel = 72;

}  // namespace

// ---- DockSection

DockSection::DockSection(const QString& title, bool first, QWidget* parent)
    : QWidget(parent),
      m_first(first),
      m_title(new TextLine(title, type::denseMedium(), Tone::Text2, 20)),
      m_body(new QVBoxLayout) {
    auto* column = new QVBoxLayout(this);
    column->setContentsMargins(kDockPad, 8, kDockPad, kDockPad);
    column->setSpacing(4);
    column->addWidget(m_title);
    m_body->setSpacing(8);
    column->addLayout(m_body);
    m_title->setVisible(!title.isEmpty());
}

void DockSection::setTitle(const QString& title) {
    m_title->setText(title);
    m_title->setVisible(!title.isEmpty());
}

QWidget* DockSection::addRow(const QString& label, QWidget* control, bool stretch) {
    auto* row = new QWidget;
    auto* line = new QHBoxLayout(row);
    line->setContentsMargins(0, 0, 0, 0);
    line->setSpacing(8);
    auto* name = new TextLine(label, type::body(), Tone::Text1, kDockRow);
    if (stretch) name->setFixedWidth(kLabel);
    line->addWidget(name, stretch ? 0 : 1);
    line->addWidget(control, stretch ? 1 : 0);
    if (control->accessibleName().isEmpty()) control->setAccessibleName(label);
    m_body->addWidget(row);
    return row;
}

void DockSection::paintEvent(QPaintEvent*) {
    if (m_first) return;
    QPainter p(this);
    p.fillRect(QRectF(0, 0, width(), 1), tone(Tone::Line1));
}

// ---- DockPanel

class DockPanel::Head : public PanelHead {
public:
    Head(const QString& icon, const QString& title) : PanelHead(title) { setIcon(icon); }
    TagLook tag;

protected:
    void paintEvent(QPaintEvent* event) override {
        PanelHead::paintEvent(event);
        QPainter p(this);
        if (!tag.text.isEmpty()) drawTag(p, width() - kDockPad - tagWidth(tag), 15, tag);
    }
};

DockPanel::DockPanel(const QString& icon, const QString& title, QWidget* parent)
    : QWidget(parent), m_head(new Head(icon, title)), m_scroll(new QScrollArea) {
    auto* column = plainColumn(this);
    column->addWidget(m_head);
    auto* content = new QWidget;
    m_sections = plainColumn(content);
    m_sections->addStretch(1);
    m_scroll->setWidget(content);
    m_scroll->setWidgetResizable(true);
    m_scroll->setFrameShape(QFrame::NoFrame);
    m_scroll->setHorizontalScrollBarPolicy(Qt::ScrollBarAlwaysOff);
    m_scroll->setFocusPolicy(Qt::NoFocus);
    column->addWidget(m_scroll, 1);
    m_foot = new QVBoxLayout;
    m_foot->setContentsMargins(kDockPad, 9, kDockPad, 8);
    m_foot->setSpacing(8);
    column->addLayout(m_foot);
}

void DockPanel::setHeadVisible(bool on) {
    m_head->setVisible(on);
}

void DockPanel::setTag(const TagLook& tag) {
    if (m_head->tag.text == tag.text && m_head->tag.ground == tag.ground) return;
    m_head->tag = tag;
    m_head->update();
}

DockSection* DockPanel::addSection(const QString& title) {
    auto* section = new DockSection(title, m_sections->count() == 1);
    m_sections->insertWidget(m_sections->count() - 1, section);
    return section;
}

void DockPanel::paintEvent(QPaintEvent*) {
    QPainter p(this);
    p.fillRect(rect(), tone(Tone::Bg1));
    p.fillRect(QRectF(0, m_scroll->geometry().bottom() + 1, width(), 1), tone(Tone::Line1));
}

// ---- SideDocks

SideDocks::SideDocks(QWidget* parent) : QWidget(parent), m_stack(new QStackedWidget) {
    auto* column = plainColumn(this);
    column->addWidget(m_stack, 1);
    auto* strip = new QWidget;
    strip->setFixedHeight(kDockHead);
    m_tabs = new QHBoxLayout(strip);
    m_tabs->setContentsMargins(6, 1, 6, 0);
    m_tabs->setSpacing(0);
    m_tabs->addStretch(1);
    column->addWidget(strip);
}

void SideDocks::put(const QString& key, const QString& title, QWidget* dock) {
    for (const Entry& entry : m_entries) {
        if (entry.key != key) continue;
        entry.holder->layout()->addWidget(dock);
        dock->show();
        return;
    }
    auto* holder = new QWidget;
    plainColumn(holder)->addWidget(dock);
    dock->show();
    const int index = m_stack->addWidget(holder);
    auto* tab = new TabButton("", title, true);
    tab->setChecked(index == 0);
    connect(tab, &QAbstractButton::clicked, this,
            [this, index] { m_stack->setCurrentIndex(index); });
    connect(m_stack, &QStackedWidget::currentChanged, tab, [tab, index](int at) {
        if (at == index) tab->setChecked(true);
    });
    m_tabs->insertWidget(m_tabs->count() - 1, tab);
    m_entries.push_back({key, holder, tab});
}

void SideDocks::showDock(const QString& key) {
    for (const Entry& entry : m_entries)
        if (entry.key == key) m_stack->setCurrentWidget(entry.holder);
}

QString SideDocks::current() const {
    for (const Entry& entry : m_entries)
        if (entry.holder == m_stack->currentWidget()) return entry.key;
    return {};
}

void SideDocks::paintEvent(QPaintEvent*) {
    QPainter p(this);
    p.fillRect(rect(), tone(Tone::Bg1));
    p.fillRect(QRectF(0, height() - kDockHead, width(), 1), tone(Tone::Line1));
}

}  // namespace colibri::ui
