// SPDX-License-Identifier: GPL-3.0-or-later
// Parts of the chat panel: head, find bar, readout line. GUI thread only.
#pragma once

#include <QLineEdit>
#include <QWidget>

#include "app/workbench/chat/conversation.h"
#include "app/workbench/widgets/controls.h"

namespace colibri::ui {

class ChatView;

class ChatHead : public QWidget {
    Q_OBJECT

public:
    explicit ChatHead(QWidget* parent = nullptr);
    void setTitle(const QString& title);
    void setCompact(bool on);
    QWidget* titleButton() const { return m_title; }
    QWidget* listButton() const {
        return m_list->isVisible() ? static_cast<QWidget*>(m_list) : m_title;
    }
    QWidget* moreButton() const { return m_more; }

signals:
    void titleClicked();
    void findWanted();
    void listWanted();
    void newWanted();
    void moreWanted();

protected:
    void paintEvent(QPaintEvent*) override;
    void resizeEvent(QResizeEvent*) override;

private:
    QAbstractButton* m_title;
    IconButton *m_find, *m_list, *m_new, *m_more;
    bool m_compact = false;
};

class FindBar : public QWidget {
    Q_OBJECT

public:
    explicit FindBar(QWidget* parent = nullptr);
    void open();
    void close();
    void setCount(int at, int count);
    // Searches the view for what is typed, and shows the newest match first.
    void searchIn(ChatView* view);
    QLineEdit* input() const { return m_input; }

signals:
    void changed(const QString& text);
    void stepped(int by);
    void closed();

protected:
    void paintEvent(QPaintEvent*) override;
    bool eventFilter(QObject*, QEvent*) override;

private:
    QLineEdit* m_input;
    QString m_count;
    int m_match = 0, m_matches = 0;
};

// Shows how long the token under the pointer took, and why.
class Readout : public QWidget {
    Q_OBJECT

public:
    explicit Readout(QWidget* parent = nullptr);
    struct Content {
        QString token, gap, slo;
        QVector<Span> reason;
        bool slow = false;
        bool inPlots = true;  // the token belongs to the session in the plots
        double t = 0;
    };
    void setContent(const Content& content);
    const Content& content() const { return m_content; }
    void setInset(int right);  // px at the right that something covers
    void setSloMs(double ms);  // tokens with a longer gap are underlined

signals:
    void showWanted(double t);

protected:
    void paintEvent(QPaintEvent*) override;
    void resizeEvent(QResizeEvent*) override { layOut(); }

private:
    void layOut();

    Content m_content;
    QString m_slow;
    int m_inset = 0;
    Button* m_show;
};

// How long a token of a reply took, and why. REQUIRES: the turn has this token.
Readout::Content tokenReadout(const Turn& turn, int token, double sloMs);

}  // namespace colibri::ui
