// SPDX-License-Identifier: GPL-3.0-or-later
// Every action of the window, once: menu, palette, shortcuts and the keyboard sheet are made from
// this list.
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
    std::function<QString()> detail;  // muted text at the right in the palette; may be empty
    std::function<bool()> enabled;    // may be empty: always
    QString also = {};                // further words that find it in the palette
    QString needs = {};               // why it may be greyed: "needs a reply"
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
    // Entries that exist only now, such as one per knob; asked for when the palette opens.
    std::function<std::vector<Command>()> dynamic;
    // Keys and menus do nothing while this holds: something covers what they would act on.
    std::function<bool()> blocked;
    void fillMenu(QMenu* menu, const QString& group);
    QStringList groups() const;  // as menus stand: Model first, Help last

private:
    QWidget* m_window;
    std::vector<Command> m_commands;
    std::vector<QAction*> m_actions;
};

}  // namespace colibri::ui
