// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/workbench/pages/guide_page.h"

#include <QFile>
#include <QKeyEvent>
#include <QTextBlock>
#include <QTextBrowser>
#include <QTextFrame>
#include <QTextList>
#include <QTextTable>
#include <QVBoxLayout>

#include "app/workbench/widgets/controls.h"
#include "app/workbench/widgets/page_parts.h"

namespace colibri::ui {
namespace {

constexpr const char* kFirst = "user-guide.md";
constexpr int kTextWidth = 760, kHead = 56;

// Qt renders Markdown without space between blocks and tables without lines.
void dress(QTextDocument* document) {
    for (QTextBlock block = document->begin(); block.isValid(); block = block.next()) {
        QTextCursor cursor(block);
        if (cursor.currentTable()) continue;
        QTextBlockFormat format = block.blockFormat();
        const bool heading = format.headingLevel() > 0;
        format.setTopMargin(heading ? 18 : 0);
        format.setBottomMargin(heading ? 6 : block.textList() ? 4 : 10);
        format.setLineHeight(120, QTextBlockFormat::ProportionalHeight);
        cursor.setBlockFormat(format);
    }
    for (QTextFrame* frame : document->rootFrame()->childFrames()) {
        auto* table = qobject_cast<QTextTable*>(frame);
        if (!table) continue;
        QTextTableFormat format = table->format();
        format.setBorder(1);
        format.setBorderCollapse(true);
        format.setBorderBrush(tone(Tone::Line1));
        format.setCellPadding(6);
        table->setFormat(format);
    }
}

}  // namespace

GuidePage::GuidePage(QWidget* parent) : QWidget(parent), m_text(new QTextBrowser) {
    setFocusProxy(m_text);
    auto* page = plainColumn(this);
    auto* head = new QWidget;
    head->setFixedHeight(kHead);
    auto* row = new QHBoxLayout(head);
    row->setContentsMargins(16, 0, 16, 1);
    row->setSpacing(12);
    auto* back = new IconButton("left", "Back", 28);
    row->addWidget(back);
    m_title = new TextLine("", type::section(), Tone::Text1, 20);
    row->addWidget(m_title, 1);
    page->addWidget(head);
    m_text->setOpenLinks(false);
    m_text->setAccessibleName("Help");
    m_text->setFont(type::chat());
    m_text->document()->setDocumentMargin(20);
    auto* centred = new QHBoxLayout;
    centred->addStretch(1);
    centred->addWidget(m_text, 1000);
    centred->addStretch(1);
    m_text->setMaximumWidth(kTextWidth + 60);
    page->addLayout(centred, 1);
    connect(back, &QAbstractButton::clicked, this, &GuidePage::goBack);
    connect(m_text, &QTextBrowser::anchorClicked, this,
            [this](const QUrl& link) { showPage(link.fileName()); });
    connect(&Theme::get(), &Theme::changed, this, &GuidePage::render);
}

bool GuidePage::showPage(const QString& name) {
    if (!QFile::exists(":/help/" + name)) return false;
    m_shown = name;
    render();
    m_text->moveCursor(QTextCursor::Start);
    return true;
}

void GuidePage::render() {
    QFile file(":/help/" + m_shown);
    if (m_shown.isEmpty() || !file.open(QIODevice::ReadOnly)) return;
    QPalette colours = m_text->palette();
    colours.setColor(QPalette::Link, tone(Tone::Accent));
    colours.setColor(QPalette::Text, tone(Tone::Text1));
    m_text->setPalette(colours);
    m_text->document()->setMarkdown(QString::fromUtf8(file.readAll()));
    dress(m_text->document());
    m_title->setText(m_shown == kFirst ? "Help" : "Help: " + m_shown);
}

// From another help page to the guide, from the guide to the previous page of the window.
void GuidePage::goBack() {
    if (m_shown != kFirst)
        showPage(kFirst);
    else
        emit back();
}

void GuidePage::keyPressEvent(QKeyEvent* event) {
    if (event->key() == Qt::Key_Escape) return goBack();
    QWidget::keyPressEvent(event);
}

void GuidePage::paintEvent(QPaintEvent*) {
    QPainter p(this);
    p.fillRect(rect(), tone(Tone::Bg1));
    p.fillRect(0, kHead - 1, width(), 1, tone(Tone::Line1));
}

}  // namespace colibri::ui
