// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/workbench/window/commands.h"

#include <QMenu>
#include <QWidget>
#include <algorithm>

namespace colibri::ui {

Commands::Commands(QWidget* window) : QObject(window), m_window(window) {}

void Commands::add(Command command) {
    auto* action = new QAction(command.title, m_window);
    action->setShortcut(command.key);
    action->setShortcutContext(Qt::WindowShortcut);
    const QString id = command.id;
    connect(action, &QAction::triggered, this, [this, id] {
        if (!blocked || !blocked()) run(id);
    });
    m_window->addAction(action);
    m_commands.push_back(std::move(command));
    m_actions.push_back(action);
}

const Command* Commands::find(const QString& id) const {
    for (const Command& command : m_commands)
        if (command.id == id) return &command;
    return nullptr;
}

QAction* Commands::action(const QString& id) const {
    for (size_t i = 0; i < m_commands.size(); ++i)
        if (m_commands[i].id == id) return m_actions[i];
    return nullptr;
}

bool Commands::run(const QString& id) {
    const Command* command = find(id);
    if (!command || (command->enabled && !command->enabled())) return false;
    const auto action = command->run;  // the list may change while it runs
    action();
    return true;
}

QStringList Commands::groups() const {
    static const QStringList kOrder{"Model",  "Chat",    "Plots", "Knobs",
                                    "Engine", "Session", "View",  "Help"};
    QStringList out;
    for (const Command& command : m_commands)
        if (!out.contains(command.group)) out << command.group;
    std::stable_sort(out.begin(), out.end(), [](const QString& a, const QString& b) {
        return kOrder.indexOf(a) < kOrder.indexOf(b);
    });
    return out;
}

void Commands::fillMenu(QMenu* menu, const QString& group) {
    for (size_t i = 0; i < m_commands.size(); ++i)
        if (m_commands[i].group == group) menu->addAction(m_actions[i]);
    connect(menu, &QMenu::aboutToShow, this, [this, group] {
        for (size_t i = 0; i < m_commands.size(); ++i) {
            const Command& command = m_commands[i];
            if (command.group == group)
                m_actions[i]->setEnabled(!command.enabled || command.enabled());
        }
    });
    // A disabled action would block its shortcut. run() checks again whether it is enabled.
    connect(menu, &QMenu::aboutToHide, this, [this] {
        for (QAction* action : m_actions) action->setEnabled(true);
    });
}

}  // namespace colibri::ui
