// SPDX-License-Identifier: GPL-3.0-or-later
// The input field for messages, growing from 36 to 160 px, with sampling summary, context meter,
// and Send or Stop. Typing is always possible, also while a reply is generated. GUI thread only.
#pragma once

#include <QWidget>

#include "app/workbench/chat/message_edit.h"
#include "app/workbench/widgets/controls.h"
#include "app/workbench/widgets/slider_row.h"

namespace colibri::ui {

class ContextMeter : public QWidget {
    Q_OBJECT

public:
    explicit ContextMeter(QWidget* parent = nullptr);
    // `used` includes `draft`, the tokens of the text that was not sent yet. All in tokens.
    void setUse(int used, int draft, int limit);
    int used() const { return m_used; }
    QSize sizeHint() const override;

protected:
    void paintEvent(QPaintEvent*) override;

private:
    QString text() const;
    int m_used = 0, m_draft = 0, m_limit = 0;
};

class Composer : public QWidget {
    Q_OBJECT

public:
    explicit Composer(QWidget* parent = nullptr);
    void setModelName(const QString& name);
    void setCompact(bool on);
    void setGenerating(bool on);
    // Whether a message can be sent. `reason`: why not, or what will happen to it.
    void setAvailable(bool on, const QString& reason);
    void setSummary(const QString& text);
    void setContext(int used, int draft, int limit);  // in tokens
    // A line above the buttons; "": none. `stops`: nothing can be sent meanwhile. `action`: the
    // text of its link; "": none.
    void setNotice(const QString& text, bool stops, const QString& action = {});
    QString notice() const;
    void setEscapeStops(bool on);  // whether Esc stops a reply, or Ctrl+.
    QString text() const { return m_edit->toPlainText(); }
    void setText(const QString& text);
    void clear() { m_edit->clear(); }
    void focusEditor() { m_edit->setFocus(); }
    MessageEdit* editor() const { return m_edit; }
    ContextMeter* meter() const { return m_meter; }
    Button* samplingButton() const { return m_sampling; }
    Button* sendButton() const { return m_send; }
    Button* stopButton() const { return m_stop; }

signals:
    void sendWanted(const QString& text);
    void stopWanted();
    void samplingWanted();
    void noticeAction();
    void drafted();                  // the text changed
    void pageWanted(int direction);  // -1 or 1: scroll the conversation by a page

protected:
    void paintEvent(QPaintEvent*) override;
    void resizeEvent(QResizeEvent*) override;
    void mousePressEvent(QMouseEvent*) override;
    bool eventFilter(QObject*, QEvent*) override;

private:
    void grow();
    int noticeHeight() const;
    void layOut();
    void send();
    void refresh();

    MessageEdit* m_edit;
    Note* m_notice;
    LinkButton* m_action;
    Button *m_sampling, *m_send, *m_stop;
    ContextMeter* m_meter;
    QString m_model, m_reason;
    bool m_compact = false, m_generating = false, m_available = false, m_stopped = false;
};

}  // namespace colibri::ui
