// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/workbench/widgets/overlay.h"

#include <QApplication>
#include <QKeyEvent>
#include <QMouseEvent>

#include "app/workbench/widgets/focus.h"
#include "app/workbench/widgets/paint.h"

namespace colibri::ui {
namespace {

class PanelBox : public QWidget {
public:
    using QWidget::QWidget;

protected:
    void paintEvent(QPaintEvent*) override {
        QPainter p(this);
        fillBox(p, rect(), tone(Tone::Bg1), tone(Tone::Line2), 6);
    }
    void mousePressEvent(QMouseEvent* event) override { event->accept(); }
};

// Returns the focus. If that widget is gone, the window's FocusKeeper chooses another one.
void giveBack(QWidget* before) {
    if (before && before->isVisible() && before->isEnabled()) before->setFocus();
}

}  // namespace

Overlay::Overlay(QWidget* window) : QWidget(window), m_panel(new PanelBox(this)) {
    hide();
    setFocusHome(this, this);  // while it is open, nothing below it gets keys
    window->installEventFilter(this);
}

void Overlay::setInsets(int top, int bottom) {
    m_top = top;
    m_bottom = bottom;
    relayout();
}

QRect Overlay::panelRect() const {
    const QWidget* window = parentWidget();
    const int w = std::min(640, window->width() - 32);
    return {(window->width() - w) / 2, 96, w, std::min(452, window->height() - 96 - 40)};
}

void Overlay::relayout() {
    const QWidget* window = parentWidget();
    setGeometry(0, m_top, window->width(), std::max(0, window->height() - m_top - m_bottom));
    m_panel->setGeometry(panelRect().translated(0, -m_top));
}

void Overlay::openPanel() {
    m_focusBefore = QApplication::focusWidget();
    relayout();
    raise();
    show();
    qApp->installEventFilter(this);
    opened();
}

void Overlay::closePanel() {
    if (!isVisible()) return;
    qApp->removeEventFilter(this);
    hide();
    giveBack(m_focusBefore);
    emit closed();
}

void Overlay::paintEvent(QPaintEvent*) {
    QPainter p(this);
    p.fillRect(rect(), tone(Tone::Scrim));
}

void Overlay::mousePressEvent(QMouseEvent*) {
    closePanel();
}

void Overlay::keyPressEvent(QKeyEvent* event) {
    if (event->key() == Qt::Key_Escape) closePanel();
}

bool Overlay::eventFilter(QObject* object, QEvent* event) {
    if (object == parentWidget() && event->type() == QEvent::Resize && isVisible()) relayout();
    // A page that took the focus meanwhile is covered, so the overlay takes it back.
    if (event->type() == QEvent::KeyPress && isVisible() && object->isWidgetType()) {
        auto* widget = static_cast<QWidget*>(object);
        if (widget != this && widget->window() == window() && !isAncestorOf(widget)) {
            if (static_cast<QKeyEvent*>(event)->key() == Qt::Key_Escape)
                closePanel();
            else
                opened();
            return true;
        }
    }
    return QWidget::eventFilter(object, event);
}

bool Overlay::focusNextPrevChild(bool next) {
    return stepFocus(this, next);
}

// ---- Popover

Popover::Popover(QWidget* window) : QWidget(window) {
    hide();
    setFocusPolicy(Qt::StrongFocus);
    setFocusHome(this, this);
}

void Popover::openAt(QWidget* anchor, bool above, bool alignRight) {
    m_anchor = anchor;
    m_above = above;
    m_alignRight = alignRight;
    m_focusBefore = QApplication::focusWidget();
    adjustSize();
    reposition();
    raise();
    show();
    setFocus(Qt::PopupFocusReason);
    qApp->installEventFilter(this);
}

void Popover::reposition() {
    if (!m_anchor) return;
    const QWidget* window = parentWidget();
    const QPoint corner = m_anchor->mapTo(window, QPoint(0, 0));
    const QSize size = sizeHint().expandedTo(minimumSize()).boundedTo(maximumSize());
    int x = m_alignRight ? corner.x() + m_anchor->width() - size.width() : corner.x();
    int y = m_above ? corner.y() - size.height() - 4 : corner.y() + m_anchor->height() + 4;
    const int height = std::min(size.height(), window->height() - 16);
    x = std::clamp(x, 8, std::max(8, window->width() - size.width() - 8));
    y = std::clamp(y, 8, std::max(8, window->height() - height - 8));
    setGeometry(x, y, size.width(), height);
}

void Popover::closePopover() {
    if (!isVisible()) return;
    qApp->removeEventFilter(this);
    const bool had = isAncestorOf(QApplication::focusWidget()) || hasFocus();
    hide();
    if (had) giveBack(m_focusBefore);
    emit closed();
}

void Popover::paintEvent(QPaintEvent*) {
    QPainter p(this);
    fillBox(p, rect(), tone(Tone::Bg1), tone(Tone::Line2), 6);
}

void Popover::keyPressEvent(QKeyEvent* event) {
    if (event->key() == Qt::Key_Escape)
        closePopover();
    else
        QWidget::keyPressEvent(event);
}

bool Popover::eventFilter(QObject* object, QEvent* event) {
    if (event->type() == QEvent::MouseButtonPress && object->isWidgetType()) {
        auto* widget = static_cast<QWidget*>(object);
        // A drop-down list inside the popover is a window of its own and does not count as outside.
        const bool sameWindow = widget->window() == window();
        if (sameWindow && widget != this && !isAncestorOf(widget) && widget != m_anchor)
            closePopover();
    } else if (event->type() == QEvent::Resize && object == parentWidget()) {
        reposition();
    }
    return QWidget::eventFilter(object, event);
}

bool Popover::focusNextPrevChild(bool next) {
    return stepFocus(this, next);
}

}  // namespace colibri::ui
