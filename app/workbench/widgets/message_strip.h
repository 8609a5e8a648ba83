// SPDX-License-Identifier: GPL-3.0-or-later
// A message above the page: background by kind, icon, a sentence, its detail, actions at the right.
// Never modal; it stays until an action or its close button removes it.
#pragma once

#include <QWidget>

#include "app/workbench/widgets/controls.h"
#include "app/workbench/widgets/paint.h"
#include "engine/base/status.h"

namespace colibri::ui {

enum class MessageKind { Info, Ok, Warning, Error };

// Paints a message, in a strip or in a list. Background and icon show the kind; `icon` is the
// corner of the icon. `framed`: with a box around it, else a band with a line below.
void paintMessageGround(QPainter& p, const QRectF& rect, MessageKind kind, const QPointF& icon,
                        bool framed);
struct MessageLine {
    QString text;
    QFont font;
    double height;
    Tone tone;
};
// Paints the lines below each other, each wrapped; a line without text takes no height. Returns the
// height. With a null painter it only measures.
double drawMessageLines(QPainter* p, const QPointF& at, double room,
                        const QVector<MessageLine>& lines);

class MessageStrip : public QWidget {
    Q_OBJECT

public:
    using Kind = MessageKind;

    explicit MessageStrip(QWidget* parent = nullptr);
    void showMessage(Kind kind, const QString& text, const QString& detail);
    // An error of the engine: message and hint, with the buttons Copy and Close.
    void showError(const QString& what, const Status& status);
    Button* addAction(const QString& text, bool quiet = false);
    void clearActions();
    void addCopy(const QString& text);  // a button that copies it
    IconButton* addClose();
    QString text() const { return m_text; }
    QString detail() const { return m_detail; }
    bool hasHeightForWidth() const override { return true; }
    int heightForWidth(int width) const override;
    QSize sizeHint() const override { return {200, heightForWidth(width() > 100 ? width() : 800)}; }
    QSize minimumSizeHint() const override { return {100, 40}; }

protected:
    void paintEvent(QPaintEvent*) override;
    void resizeEvent(QResizeEvent*) override;

private:
    bool oneLine(int room) const;
    double drawLines(QPainter* p, int room) const;
    int textRoom(int width) const;
    void put(QAbstractButton* action);
    void placeActions();

    Kind m_kind = Kind::Info;
    QString m_text, m_detail;
    IconButton* m_close = nullptr;
    QVector<QAbstractButton*> m_actions;  // left to right, at the right edge. No layout: the height
                                          // of the strip follows from its text
};

}  // namespace colibri::ui
