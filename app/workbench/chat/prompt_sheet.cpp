// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/workbench/chat/prompt_sheet.h"

#include <QClipboard>
#include <QGuiApplication>
#include <QHBoxLayout>
#include <QLabel>
#include <QPlainTextEdit>
#include <QVBoxLayout>

namespace colibri::ui {

PromptSheet::PromptSheet(QWidget* window)
    : Overlay(window), m_title(new QLabel), m_text(new QPlainTextEdit) {
    setFocusPolicy(Qt::StrongFocus);
    m_title->setFont(type::bodyBold());
    m_text->setFont(type::mono());
    m_text->setReadOnly(true);
    m_text->setAccessibleName("The prompt");
    auto* copy = new Button("Copy", Button::Kind::Default, Button::Size::Dense);
    copy->setIconName("copy");
    auto* close = new IconButton("close", "Close");
    close->describe("Close", "Esc");
    auto* head = new QHBoxLayout;
    head->setContentsMargins(12, 8, 8, 8);
    head->addWidget(m_title, 1);
    head->addWidget(copy);
    head->addWidget(close);
    auto* column = plainColumn(panel());
    column->setContentsMargins(1, 1, 1, 1);
    column->addLayout(head);
    column->addWidget(m_text, 1);
    connect(copy, &QAbstractButton::clicked, this,
            [this] { QGuiApplication::clipboard()->setText(text()); });
    connect(close, &QAbstractButton::clicked, this, &Overlay::closePanel);
}

void PromptSheet::openText(const QString& title, const QString& text) {
    m_title->setText(title);
    m_text->setPlainText(text);
    setAccessibleName(title);
    openPanel();
}

QString PromptSheet::text() const {
    return m_text->toPlainText();
}

QRect PromptSheet::panelRect() const {
    const QWidget* window = parentWidget();
    const int width = std::min(760, window->width() - 32),
              height = std::min(640, window->height() - 120);
    return {(window->width() - width) / 2, (window->height() - height) / 2, width, height};
}

void PromptSheet::opened() {
    m_text->setFocus();
}

}  // namespace colibri::ui
