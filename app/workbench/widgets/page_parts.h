// SPDX-License-Identifier: GPL-3.0-or-later
// Parts of the pages and panels. They paint with the theme, so a change of theme is one repaint.
// GUI thread only.
#pragma once

#include <QVector>
#include <QWidget>
#include <filesystem>

#include "app/workbench/widgets/paint.h"
#include "engine/base/status.h"

class QHBoxLayout;

namespace colibri::ui {

class IconButton;

// One line of text, made of spans; cut at the right if it does not fit.
class TextLine : public QWidget {
    Q_OBJECT

public:
    explicit TextLine(int height, QWidget* parent = nullptr);
    TextLine(const QString& text, const QFont& font, Tone tone, int height,
             QWidget* parent = nullptr);
    void setSpans(const QVector<Span>& spans, double gap = 0);
    void setText(const QString& text);  // with the font and colour of the first span
    QString text() const;
    QSize sizeHint() const override;
    QSize minimumSizeHint() const override { return {16, height()}; }

protected:
    void paintEvent(QPaintEvent*) override;

private:
    QVector<Span> m_spans;
    double m_gap = 0;
};

// The head of a panel or a section, 32 px high: icon, title, caption, widgets at the right, a
// hairline below (and above).
class PanelHead : public QWidget {
    Q_OBJECT

public:
    PanelHead(const QString& title, const QString& caption = {}, bool lineAbove = false,
              QWidget* parent = nullptr);
    void setTitle(const QString& title);
    void setCaption(const QString& caption);
    void setIcon(const QString& icon);  // before the title
    void setLineBelow(bool on);         // false for a popover
    void addWidget(QWidget* widget);

protected:
    void paintEvent(QPaintEvent*) override;

private:
    QString m_title, m_caption, m_icon;
    bool m_lineAbove, m_lineBelow = true;
    QHBoxLayout* m_row;
};

// The head of a page, 56 px high: Back, title and subtitle, widgets at the right. The page paints
// the hairline below.
class PageHead : public QWidget {
    Q_OBJECT

public:
    static constexpr int kHeight = 56;
    explicit PageHead(QWidget* parent = nullptr);
    void setTitle(const QString& title, const QString& subtitle);
    QString title() const { return m_title->text(); }
    void setBackEnabled(bool on);
    QHBoxLayout* row() const { return m_row; }

signals:
    void back();

private:
    TextLine *m_title, *m_subtitle;
    IconButton* m_back;
    QHBoxLayout* m_row;
};

// Names and values in two columns; advice is wrapped below its value.
struct Fact {
    QString name, value;
    Tone tone = Tone::Text1;
    QString advice;
};
class FactList : public QWidget {
    Q_OBJECT

public:
    explicit FactList(QWidget* parent = nullptr);
    void setFacts(const QVector<Fact>& facts);
    const QVector<Fact>& facts() const { return m_facts; }
    bool hasHeightForWidth() const override { return true; }
    int heightForWidth(int width) const override { return heights(width).back(); }
    QSize sizeHint() const override { return {320, heightForWidth(width() > 40 ? width() : 320)}; }

protected:
    void paintEvent(QPaintEvent*) override;
    void resizeEvent(QResizeEvent*) override { updateGeometry(); }
    bool event(QEvent*) override;

private:
    QVector<int> heights(int width) const;  // y of each fact, and of the end

    QVector<Fact> m_facts;
};

// A row of tags. Tags that do not fit are dropped from the left.
class TagRow : public QWidget {
    Q_OBJECT

public:
    explicit TagRow(QWidget* parent = nullptr);
    void setTags(const QVector<TagLook>& tags, const QStringList& tips = {});
    const QVector<TagLook>& tags() const { return m_tags; }
    QSize sizeHint() const override;
    QSize minimumSizeHint() const override { return {40, 18}; }

protected:
    void paintEvent(QPaintEvent*) override;
    bool event(QEvent*) override;

private:
    QVector<QRectF> places() const;

    QVector<TagLook> m_tags;
    QStringList m_tips;
};

// A command line with the same effect as the page, and a button that copies it.
class CommandLine : public QWidget {
    Q_OBJECT

public:
    explicit CommandLine(QWidget* parent = nullptr);
    void setCommand(const QString& command);
    QString command() const { return m_command; }

protected:
    void paintEvent(QPaintEvent*) override;

private:
    QString m_command;
};

QString shellQuoted(const QString& word);  // quoted for a POSIX shell
QString shortPath(const QString& path);    // with ~ for the home folder
QString sizeText(double bytes);            // "7.65 GiB"
void revealInFolder(const QString& path);
void copyText(const QString& text);
void showCopied(IconButton* button);  // shows a tick instead of the icon for a moment

}  // namespace colibri::ui
