// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/workbench/widgets/page_parts.h"

#include <QApplication>
#include <QClipboard>
#include <QDesktopServices>
#include <QDir>
#include <QFileInfo>
#include <QFontMetricsF>
#include <QHBoxLayout>
#include <QHelpEvent>
#include <QTimer>
#include <QToolTip>
#include <QUrl>
#include <QVBoxLayout>
#include <algorithm>
#include <cmath>

#include "app/workbench/platform/text.h"
#include "app/workbench/widgets/controls.h"
#include "engine/base/format.h"

namespace colibri::ui {
namespace {

constexpr int kFactPitch = 21, kFactPadX = 16, kFactPadY = 12, kFactName = 152;
constexpr int kTagGap = 12;

double factNameWidth(int width) {
    return std::min<double>(kFactName, width * 0.4);
}

}  // namespace

// ---- TextLine

TextLine::TextLine(int height, QWidget* parent) : QWidget(parent) {
    setFixedHeight(height);
    setSizePolicy(QSizePolicy::Preferred, QSizePolicy::Fixed);
}

TextLine::TextLine(const QString& text, const QFont& font, Tone tone, int height, QWidget* parent)
    : TextLine(height, parent) {
    setSpans({{text, tone, font}});
}

void TextLine::setSpans(const QVector<Span>& spans, double gap) {
    m_spans = spans;
    m_gap = gap;
    setAccessibleName(text());
    updateGeometry();
    update();
}

void TextLine::setText(const QString& text) {
    if (m_spans.isEmpty() || m_spans.front().text == text) return;
    QVector<Span> spans = {m_spans.front()};
    spans.front().text = text;
    setSpans(spans, m_gap);
}

QString TextLine::text() const {
    QString text;
    for (const Span& span : m_spans) text += (text.isEmpty() || m_gap == 0 ? "" : " ") + span.text;
    return text;
}

QSize TextLine::sizeHint() const {
    return {int(std::ceil(spansWidth(m_spans, m_gap))) + 1, height()};
}

void TextLine::paintEvent(QPaintEvent*) {
    QPainter p(this);
    drawSpans(p, rect(), m_spans, m_gap);
}

// ---- PanelHead

PanelHead::PanelHead(const QString& title, const QString& caption, bool lineAbove, QWidget* parent)
    : QWidget(parent),
      m_title(title),
      m_caption(caption),
      m_lineAbove(lineAbove),
      m_row(new QHBoxLayout(this)) {
    setFixedHeight(32);
    m_row->setContentsMargins(0, lineAbove ? 1 : 0, 6, 1);
    m_row->setSpacing(6);
    m_row->addStretch(1);
}

void PanelHead::setTitle(const QString& title) {
    m_title = title;
    update();
}

void PanelHead::setCaption(const QString& caption) {
    m_caption = caption;
    update();
}

void PanelHead::setIcon(const QString& icon) {
    m_icon = icon;
    update();
}

void PanelHead::setLineBelow(bool on) {
    m_lineBelow = on;
    m_row->setContentsMargins(0, m_lineAbove ? 1 : 0, 6, on ? 1 : 0);
    update();
}

void PanelHead::addWidget(QWidget* widget) {
    m_row->addWidget(widget);
}

void PanelHead::paintEvent(QPaintEvent*) {
    QPainter p(this);
    if (m_lineAbove) p.fillRect(0, 0, width(), 1, tone(Tone::Line1));
    if (m_lineBelow) p.fillRect(0, height() - 1, width(), 1, tone(Tone::Line1));
    int right = width() - 6;
    for (int i = 0; i < m_row->count(); ++i) {
        const QWidget* widget = m_row->itemAt(i)->widget();
        if (widget && widget->isVisible()) right = std::min(right, widget->x() - 8);
    }
    int left = 12;
    if (!m_icon.isEmpty()) {
        paintIcon(p, m_icon, QRectF(left, 7, 16, 16), tone(Tone::Text1));
        left += 22;
    }
    drawSpans(p, QRectF(left, m_lineAbove, right - left, height() - m_lineBelow - m_lineAbove),
              {{m_title, Tone::Text1, type::bodyBold()}, {m_caption, Tone::Text3, type::dense()}},
              6);
}

// ---- PageHead

PageHead::PageHead(QWidget* parent)
    : QWidget(parent),
      m_title(new TextLine("", type::section(), Tone::Text1, 20)),
      m_subtitle(new TextLine("", type::dense(), Tone::Text3, 16)),
      m_back(new IconButton("left", "Back", 28)),
      m_row(new QHBoxLayout(this)) {
    setFixedHeight(kHeight);
    m_row->setContentsMargins(16, 0, 16, 1);
    m_row->setSpacing(12);
    m_row->addWidget(m_back);
    auto* names = new QVBoxLayout;
    names->setSpacing(0);
    names->addStretch(1);
    names->addWidget(m_title);
    names->addWidget(m_subtitle);
    names->addStretch(1);
    m_row->addLayout(names);
    connect(m_back, &QAbstractButton::clicked, this, &PageHead::back);
}

void PageHead::setTitle(const QString& title, const QString& subtitle) {
    m_title->setText(title);
    m_subtitle->setText(subtitle);
}

void PageHead::setBackEnabled(bool on) {
    m_back->setEnabled(on);
}

// ---- FactList

FactList::FactList(QWidget* parent) : QWidget(parent) {
    QSizePolicy policy(QSizePolicy::Preferred, QSizePolicy::Fixed);
    policy.setHeightForWidth(true);
    setSizePolicy(policy);
}

void FactList::setFacts(const QVector<Fact>& facts) {
    m_facts = facts;
    QStringList lines;
    for (const Fact& fact : facts)
        lines.push_back(fact.name + ": " + fact.value +
                        (fact.advice.isEmpty() ? QString() : ". " + fact.advice));
    setAccessibleName(lines.join("; "));
    updateGeometry();
    update();
}

QVector<int> FactList::heights(int width) const {
    QVector<int> tops;
    int y = kFactPadY;
    for (const Fact& fact : m_facts) {
        tops.push_back(y);
        y += kFactPitch;
        if (fact.advice.isEmpty()) continue;
        const double room = width - 2 * kFactPadX - factNameWidth(width);
        y += int(std::ceil(drawWrapped(nullptr, {}, room, fact.advice, type::dense(), 16, {}))) + 2;
    }
    tops.push_back(y + kFactPadY - (m_facts.isEmpty() ? 0 : 5));
    return tops;
}

void FactList::paintEvent(QPaintEvent*) {
    QPainter p(this);
    const double at = factNameWidth(width()), room = width() - 2 * kFactPadX - at;
    const QVector<int> tops = heights(width());
    for (qsizetype i = 0; i < m_facts.size(); ++i) {
        const Fact& fact = m_facts[i];
        const double y = tops[i];
        drawElided(p, QRectF(kFactPadX, y, at - 8, 16), Qt::AlignVCenter, fact.name, type::dense(),
                   tone(Tone::Text2));
        drawElided(p, QRectF(kFactPadX + at, y, room, 16), Qt::AlignVCenter, fact.value,
                   type::mono(), tone(fact.tone));
        if (!fact.advice.isEmpty())
            drawWrapped(&p, {kFactPadX + at, y + 18}, room, fact.advice, type::dense(), 16,
                        tone(Tone::Text2));
    }
}

bool FactList::event(QEvent* event) {
    if (event->type() == QEvent::ToolTip) {
        auto* help = static_cast<QHelpEvent*>(event);
        const double room = width() - 2 * kFactPadX - factNameWidth(width());
        const QVector<int> tops = heights(width());
        for (qsizetype i = 0; i < m_facts.size(); ++i) {
            const int y = help->pos().y();
            if (y < tops[i] || y >= tops[i] + kFactPitch ||
                textWidth(type::mono(), m_facts[i].value) <= room)
                continue;
            QToolTip::showText(help->globalPos(), m_facts[i].value, this);
            return true;
        }
    }
    return QWidget::event(event);
}

// ---- TagRow

TagRow::TagRow(QWidget* parent) : QWidget(parent) {
    setFixedHeight(18);
    setSizePolicy(QSizePolicy::Preferred, QSizePolicy::Fixed);
}

void TagRow::setTags(const QVector<TagLook>& tags, const QStringList& tips) {
    m_tags = tags;
    m_tips = tips;
    QStringList names;
    for (const TagLook& tag : tags) names.push_back(tag.text);
    setAccessibleName(names.join(", "));
    updateGeometry();
    update();
}

QSize TagRow::sizeHint() const {
    double width = 0;
    for (const TagLook& tag : m_tags) width += tagWidth(tag) + (width > 0 ? kTagGap : 0);
    return {int(std::ceil(width)), 18};
}

QVector<QRectF> TagRow::places() const {
    QVector<QRectF> places(m_tags.size());
    double right = width();
    for (qsizetype i = m_tags.size() - 1; i >= 0; --i) {
        const double w = tagWidth(m_tags[i]);
        if (right - w < 0) break;
        places[i] = QRectF(right - w, 0, w, 18);
        right -= w + kTagGap;
    }
    return places;
}

void TagRow::paintEvent(QPaintEvent*) {
    QPainter p(this);
    const auto at = places();
    for (qsizetype i = 0; i < m_tags.size(); ++i) {
        if (at[i].width() > 0) drawTag(p, at[i].left(), 9, m_tags[i]);
    }
}

bool TagRow::event(QEvent* event) {
    if (event->type() == QEvent::ToolTip) {
        auto* help = static_cast<QHelpEvent*>(event);
        const auto at = places();
        for (qsizetype i = 0; i < m_tags.size() && i < m_tips.size(); ++i) {
            if (at[i].contains(help->pos()) && !m_tips[i].isEmpty()) {
                QToolTip::showText(help->globalPos(), m_tips[i], this);
                return true;
            }
        }
    }
    return QWidget::event(event);
}

// ---- CommandLine

CommandLine::CommandLine(QWidget* parent) : QWidget(parent) {
    setFixedHeight(28);
    setSizePolicy(QSizePolicy::Expanding, QSizePolicy::Fixed);
    auto* row = new QHBoxLayout(this);
    row->setContentsMargins(0, 0, 4, 0);
    row->addStretch(1);
    auto* copy = new IconButton("copy", "Copy command");
    row->addWidget(copy);
    connect(copy, &QAbstractButton::clicked, this, [this, copy] {
        copyText(m_command);
        showCopied(copy);
    });
}

void CommandLine::setCommand(const QString& command) {
    if (command == m_command) return;
    m_command = command;
    setAccessibleName("Command line: " + command);
    update();
}

void CommandLine::paintEvent(QPaintEvent*) {
    QPainter p(this);
    fillBox(p, rect(), tone(Tone::Plot), tone(Tone::Line1), 4);
    paintIcon(p, "term", QRectF(9, 6, 16, 16), tone(Tone::Text3));
    drawElided(p, QRectF(33, 0, width() - 33 - 34, height()), Qt::AlignVCenter, m_command,
               type::mono(), tone(Tone::Text2));
}

// ---- text

QString shellQuoted(const QString& word) {
    static const QString kPlain = "/._-+=:,@%~";
    const bool plain = !word.isEmpty() && std::all_of(word.begin(), word.end(), [](QChar c) {
        return (c.unicode() < 128 && c.isLetterOrNumber()) || kPlain.contains(c);
    });
    if (plain && !word.startsWith('~')) return word;
    QString quoted = word;
    quoted.replace("'", "'\\''");
    return "'" + quoted + "'";
}

QString shortPath(const QString& path) {
    const QString home = QDir::homePath();
    return shown(path.startsWith(home + "/") ? "~" + path.mid(home.size()) : path);
}

QString sizeText(double bytes) {
    return str(formatGiB(bytes));
}

void revealInFolder(const QString& path) {
    const QFileInfo info(path);
    QDesktopServices::openUrl(QUrl::fromLocalFile(info.isDir() ? path : info.path()));
}

void copyText(const QString& text) {
    QApplication::clipboard()->setText(text);
}

void showCopied(IconButton* button) {
    constexpr int kShownMs = 1500;
    button->setIconName("check");
    QToolTip::showText(button->mapToGlobal(QPoint(0, button->height())), "Copied", button);
    QTimer::singleShot(kShownMs, button, [button] { button->setIconName("copy"); });
}

}  // namespace colibri::ui
