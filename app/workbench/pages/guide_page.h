// SPDX-License-Identifier: GPL-3.0-or-later
// The help pages, which are part of the program. Links between them work; links to other addresses
// do not.
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
    // "user-guide.md". False: there is no such page, and nothing changes.
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
