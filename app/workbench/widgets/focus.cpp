// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/workbench/widgets/focus.h"

#include <QApplication>
#include <QScrollArea>
#include <QVariant>
#include <algorithm>

namespace colibri::ui {
namespace {

constexpr const char* kHome = "focusHome";

bool usable(const QWidget* widget) {
    return widget->isVisible() && widget->isEnabled();
}

// The children of `parent` in rows from the top, each from left to right.
QVector<QWidget*> childrenAsRead(const QWidget* parent) {
    QVector<QWidget*> rest;
    for (QObject* child : parent->children()) {
        auto* widget = qobject_cast<QWidget*>(child);
        if (widget && !widget->isWindow() && widget->isVisible()) rest << widget;
    }
    std::stable_sort(rest.begin(), rest.end(), [](const QWidget* a, const QWidget* b) {
        return a->y() != b->y() ? a->y() < b->y() : a->x() < b->x();
    });
    QVector<QWidget*> out;
    while (!rest.isEmpty()) {
        // A row has the widgets whose middle is beside the first one.
        const int bottom = rest.first()->geometry().bottom();
        const auto end = std::stable_partition(
            rest.begin(), rest.end(),
            [bottom](const QWidget* w) { return w->geometry().center().y() <= bottom; });
        std::stable_sort(rest.begin(), end,
                         [](const QWidget* a, const QWidget* b) { return a->x() < b->x(); });
        for (auto it = rest.begin(); it != end; ++it) out << *it;
        rest.erase(rest.begin(), end);
    }
    return out;
}

void collect(QWidget* widget, QVector<QWidget*>* out) {
    if (isTabStop(widget)) *out << widget;
    for (QWidget* child : childrenAsRead(widget)) collect(child, out);
}

}  // namespace

bool isTabStop(const QWidget* widget) {
    return usable(widget) && (widget->focusPolicy() & Qt::TabFocus) && !widget->focusProxy();
}

QVector<QWidget*> readingOrder(QWidget* root) {
    QVector<QWidget*> out;
    for (QWidget* child : childrenAsRead(root)) collect(child, &out);
    return out;
}

bool stepFocus(QWidget* root, bool next) {
    const QVector<QWidget*> order = readingOrder(root);
    if (order.isEmpty()) return false;
    // The focused widget may be inside a stop, or not belong to any.
    qsizetype at = -1;
    for (QWidget* w = QApplication::focusWidget(); w && w != root && at < 0; w = w->parentWidget())
        at = order.indexOf(w);
    const qsizetype count = order.size();
    const qsizetype to = at < 0 ? (next ? 0 : count - 1) : (at + (next ? 1 : count - 1)) % count;
    focusShown(order[to], next ? Qt::TabFocusReason : Qt::BacktabFocusReason);
    return true;
}

void focusShown(QWidget* widget, Qt::FocusReason reason) {
    widget->setFocus(reason);
    for (QWidget* up = widget->parentWidget(); up; up = up->parentWidget())
        if (auto* area = qobject_cast<QScrollArea*>(up)) area->ensureWidgetVisible(widget, 8, 8);
}

void setFocusHome(QWidget* area, QWidget* home) {
    area->setProperty(kHome, QVariant::fromValue(QPointer<QWidget>(home)));
}

FocusKeeper::FocusKeeper(QWidget* window) : QObject(window), m_window(window) {
    m_settle.setSingleShot(true);
    m_settle.setInterval(0);
    connect(&m_settle, &QTimer::timeout, this, &FocusKeeper::settle);
    connect(qApp, &QApplication::focusChanged, this, &FocusKeeper::changed);
}

// A deleted widget loses the focus to none while it is still visible. So does every widget when the
// window becomes inactive; settle() distinguishes the two.
void FocusKeeper::changed(QWidget* old, QWidget* now) {
    const bool lost = old && old->window() == m_window && (!now || !usable(old));
    if (!lost) {
        if (now != m_given) m_settle.stop();  // the focus was set on purpose
        return;
    }
    m_given = now;
    if (m_settle.isActive()) return;  // the widget that Qt chose was hidden as well
    m_candidates = {old};
    for (QWidget* up = old->parentWidget(); up; up = up->parentWidget())
        if (const auto home = up->property(kHome).value<QPointer<QWidget>>()) m_candidates << home;
    m_settle.start();
}

void FocusKeeper::settle() {
    QWidget* now = QApplication::focusWidget();
    if (now != m_given || (!now && !m_window->isActiveWindow())) return;
    for (const QPointer<QWidget>& candidate : m_candidates)
        if (candidate && usable(candidate)) return candidate->setFocus(Qt::OtherFocusReason);
}

}  // namespace colibri::ui
