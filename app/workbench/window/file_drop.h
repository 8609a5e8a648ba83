// SPDX-License-Identifier: GPL-3.0-or-later
// What a file that is dragged over the window would do there, and the sign that says so.
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

// From the name and the first 64 KiB.
DropKind dropKindOf(const QString& path);

// The whole text of a file for the message field; "" and the reason in `error` where there is none.
QString droppedText(const QString& path, QString* error);

// Over the window while something is dragged: a frame, and what letting go will do.
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
