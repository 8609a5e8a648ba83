// SPDX-License-Identifier: GPL-3.0-or-later
// The help pages, which are part of the program. Links lead from one to another, never out of it.
#pragma once

#include <QWidget>

class QTextBrowser;
class QUrl;

namespace colibri::ui {

class TextLine;

class GuidePage : public QWidget {
    Q_OBJECT

public:
    explicit GuidePage(QWidget* parent = nullptr);
    // "user-guide.md"; what does not exist leaves the page as it is, and is false.
    bool showPage(const QString& name);
    QString shown() const { return m_shown; }
    QTextBrowser* browser() const { return m_text; }

signals:
    void back();

protected:
    void paintEvent(QPaintEvent*) override;
    void keyPressEvent(QKeyEvent*) override;

private:
    void goBack();
    void render();

    TextLine* m_title;
    QTextBrowser* m_text;
    QString m_shown;
};

}  // namespace colibri::ui
