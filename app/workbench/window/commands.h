// SPDX-License-Identifier: GPL-3.0-or-later
// The list of all actions of the window. Menus, command palette, shortcuts and the keyboard sheet
// are made from it. GUI thread only.
#pragma once

#include <QAction>
#include <QKeySequence>
#include <QObject>
#include <functional>
#include <vector>

class QMenu;

namespace colibri::ui {

struct Command {
    QString id;     // "chat.new"
    QString group;  // "Chat", heading in palette and sheet
    QString title;  // "New chat"
    QString icon;
    QKeySequence key;
    std::function<void()> run;
    std::function<QString()> detail = {};  // muted text at the right in the palette; may be empty
    std::function<bool()> enabled = {};    // empty: always enabled
    QString also = {};                     // further words that find it in the palette
    QString needs = {};                    // why it is disabled: "no model loaded"
};

class Commands : public QObject {
    Q_OBJECT

public:
    explicit Commands(QWidget* window);
    void add(Command command);
    const std::vector<Command>& all() const { return m_commands; }
    const Command* find(const QString& id) const;
    bool run(const QString& id);  // false: unknown or not enabled
    QAction* action(const QString& id) const;
    // Entries that depend on the loaded model, such as one per knob. Called when the palette opens.
    std::function<std::vector<Command>()> dynamic;
    // While this returns true, shortcuts and menus do nothing: a sheet covers what they act on.
    std::function<bool()> blocked;
    void fillMenu(QMenu* menu, const QString& group);
    QStringList groups() const;  // in the order of the menus: Model first, Help last

private:
    QWidget* m_window;
    std::vector<Command> m_commands;
    std::vector<QAction*> m_actions;
};

// Adds commands to one group. The last argument of add() has the optional fields of Command.
class CommandGroup {
public:
    struct Options {
        std::function<bool()> enabled = {};
        QString needs = {};
        std::function<QString()> detail = {};
        QString also = {};
    };

    CommandGroup(Commands* commands, const QString& name) : m_commands(commands), m_name(name) {}
    void add(const QString& id, const QString& title, const QString& icon, const QString& key,
             std::function<void()> run, Options options) const {
        m_commands->add({id, m_name, title, icon, QKeySequence(key), std::move(run),
                         std::move(options.detail), std::move(options.enabled), options.also,
                         options.needs});
    }
    void add(const QString& id, const QString& title, const QString& icon, const QString& key,
             std::function<void()> run) const {
        add(id, title, icon, key, std::move(run), Options());
    }

private:
    Commands* m_commands;
    QString m_name;
};

}  // namespace colibri::ui
