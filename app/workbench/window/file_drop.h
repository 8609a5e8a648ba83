// SPDX-License-Identifier: GPL-3.0-or-later
// Files that are dropped on the window: what dropping would do, and the hint that shows it.
#pragma once

#include <QString>
#include <QWidget>

namespace colibri::ui {

enum class DropKind {
    Open,    // a model, a checkpoint or a session
    Config,  // knobs, as the window exports them
    Chat,    // a conversation, as the window exports it
    Text,    // any other text: for the message field
    Unknown,
};

// Decided by the name and the first 64 KiB.
DropKind dropKindOf(const QString& path);

// The text of a file for the message field; "" with the reason in `error` if it cannot be used.
QString droppedText(const QString& path, QString* error);

// A frame over the window during a drag, and what dropping will do.
class DropHint : public QWidget {
    Q_OBJECT

public:
    explicit DropHint(QWidget* window);
    void showFor(const QString& path, bool chatShown);
    QString text() const { return m_text; }

protected:
    void paintEvent(QPaintEvent*) override;

private:
    QString m_text;
    bool m_possible = false;
};

}  // namespace colibri::ui
