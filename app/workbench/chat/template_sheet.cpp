// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/workbench/chat/template_sheet.h"

#include <QHBoxLayout>
#include <QLabel>
#include <QPlainTextEdit>
#include <QTextBlock>
#include <QVBoxLayout>

#include "app/workbench/platform/text.h"
#include "app/workbench/widgets/slider_row.h"

namespace colibri::ui {
namespace {

constexpr int kRenderAfterMs = 150;  // after the last key press

}  // namespace

TemplateSheet::TemplateSheet(QWidget* window)
    : Overlay(window),
      m_title(new QLabel),
      m_begin(new Select),
      m_editor(new QPlainTextEdit),
      m_preview(new QPlainTextEdit),
      m_note(new Note),
      m_use(new Button("Use this template", Button::Kind::Primary)) {
    setFocusPolicy(Qt::StrongFocus);
    m_title->setFont(type::bodyBold());
    for (QPlainTextEdit* edit : {m_editor, m_preview}) {
        edit->setFont(type::mono());
        edit->setLineWrapMode(QPlainTextEdit::NoWrap);
        edit->setTabChangesFocus(true);
        edit->setProperty("boxed", true);
    }
    m_editor->setAccessibleName("Chat template, Jinja");
    m_preview->setAccessibleName("Rendered chat");
    m_preview->setReadOnly(true);
    m_timer.setSingleShot(true);
    m_timer.setInterval(kRenderAfterMs);

    auto* cancel = new Button("Cancel");
    auto* foot = new QHBoxLayout;
    foot->setContentsMargins(12, 8, 12, 12);
    foot->setSpacing(8);
    foot->addWidget(m_note, 1, Qt::AlignVCenter);
    foot->addWidget(cancel);
    foot->addWidget(m_use);
    auto* caption = new QLabel("Rendered prompt");
    caption->setFont(type::caption());
    caption->setContentsMargins(0, 8, 0, 4);
    auto* texts = new QVBoxLayout;
    texts->setContentsMargins(12, 0, 12, 0);
    texts->setSpacing(0);
    texts->addWidget(m_editor, 3);
    texts->addWidget(caption);
    texts->addWidget(m_preview, 2);
    auto* column = plainColumn(panel());
    column->setContentsMargins(1, 1, 1, 1);
    column->addLayout(makeHead());
    column->addLayout(texts, 1);
    column->addLayout(foot);

    connect(m_editor, &QPlainTextEdit::textChanged, &m_timer, qOverload<>(&QTimer::start));
    connect(&m_timer, &QTimer::timeout, this, &TemplateSheet::refresh);
    connect(m_begin, &QComboBox::activated, this, [this](int index) {
        if (index >= 0 && index < m_begins.size()) m_editor->setPlainText(m_begins[index].text);
    });
    connect(cancel, &QAbstractButton::clicked, this, &Overlay::closePanel);
    connect(m_use, &QAbstractButton::clicked, this, [this] {
        refresh();
        if (!m_use->isEnabled()) return;
        const QString text = m_editor->toPlainText();
        closePanel();
        emit used(text);
    });
}

QLayout* TemplateSheet::makeHead() {
    auto* close = new IconButton("close", "Close");
    close->describe("Close", "Esc");
    m_begin->setPlaceholderText("Start from");
    m_begin->setAccessibleName("Start from the text of another template");
    auto* head = new QHBoxLayout;
    head->setContentsMargins(12, 8, 8, 8);
    head->setSpacing(8);
    head->addWidget(m_title, 1);
    head->addWidget(m_begin);
    head->addWidget(close);
    return head;
}

void TemplateSheet::openText(const QString& model, const QString& text,
                             const QVector<TemplateChoice>& begins, Render render) {
    m_render = std::move(render);
    m_begins.clear();
    m_begin->clear();
    for (const TemplateChoice& choice : begins) {
        if (choice.text.isEmpty()) continue;
        m_begins << choice;
        m_begin->addItem(choice.name);
    }
    m_begin->setCurrentIndex(-1);
    m_title->setText("Chat template of " + model);
    setAccessibleName(m_title->text());
    m_editor->setPlainText(text);
    refresh();
    openPanel();
}

void TemplateSheet::refresh() {
    m_timer.stop();
    const TemplateChoice choice{TemplateChoice::Kind::Edited, {}, m_editor->toPlainText()};
    const auto parsed = choice.parse();
    const bool empty = choice.text.trimmed().isEmpty();
    m_use->setEnabled(parsed.ok() && !empty);
    if (empty) return showFault({0, 0, "Write a template, or start from one in the list."});
    if (!parsed) return showFault(templateFault(parsed.status()));
    const Result<std::string> text = m_render(*parsed);
    if (!text) return showFault(templateFault(text.status()));
    markLine(0);
    m_preview->setPlainText(str(*text));
    m_note->setNote("The template renders this chat.", "check", Tone::Ok, Tone::Text2);
}

QString TemplateSheet::preview() const {
    return m_preview->toPlainText();
}
QString TemplateSheet::note() const {
    return m_note->text();
}

void TemplateSheet::showFault(const TemplateFault& fault) {
    markLine(fault.line);
    m_preview->clear();
    m_note->setNote(
        fault.line > 0
            ? QString("Line %1, column %2: %3").arg(fault.line).arg(fault.column).arg(fault.what)
            : fault.what,
        "error", Tone::Error, Tone::Text1);
}

void TemplateSheet::markLine(int line) {
    QList<QTextEdit::ExtraSelection> marks;
    const QTextBlock block = m_editor->document()->findBlockByNumber(line - 1);
    if (line > 0 && block.isValid()) {
        QTextEdit::ExtraSelection mark;
        mark.cursor = QTextCursor(block);
        mark.format.setBackground(tone(Tone::ErrorBg));
        mark.format.setProperty(QTextFormat::FullWidthSelection, true);
        marks << mark;
    }
    m_editor->setExtraSelections(marks);
}

QRect TemplateSheet::panelRect() const {
    const QWidget* window = parentWidget();
    const int width = std::min(860, window->width() - 32),
              height = std::min(760, window->height() - 80);
    return {(window->width() - width) / 2, (window->height() - height) / 2, width, height};
}

void TemplateSheet::opened() {
    m_editor->setFocus();
}

}  // namespace colibri::ui
