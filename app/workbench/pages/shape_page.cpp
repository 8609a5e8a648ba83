// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/workbench/pages/shape_page.h"

#include <QBoxLayout>
#include <QKeyEvent>
#include <QScrollArea>

#include "app/workbench/pages/load_facts.h"
#include "app/workbench/pages/message_strip.h"
#include "app/workbench/pages/page_parts.h"
#include "app/workbench/pages/progress_panel.h"
#include "app/workbench/pages/shape_panel.h"

namespace colibri::ui {
namespace {

constexpr int kFactsColumn = 424, kStackBelow = 1000, kWidestPanel = 720;

QVBoxLayout* columnOf(QWidget* widget) {
    auto* layout = new QVBoxLayout(widget);
    layout->setContentsMargins(0, 0, 0, 0);
    layout->setSpacing(0);
    return layout;
}

}  // namespace

ShapePage::ShapePage(QWidget* parent) : QWidget(parent) {
    setFocusPolicy(Qt::StrongFocus);
    auto* page = columnOf(this);
    page->addWidget(buildHead());
    m_strip = new MessageStrip;
    page->addWidget(m_strip);
    m_factsColumn = new QWidget;
    auto* facts = columnOf(m_factsColumn);
    facts->addWidget(new PanelHead("Model"));
    m_facts = new FactList;
    facts->addWidget(m_facts);
    facts->addWidget(new PanelHead("One token", {}, true));
    m_tokenFacts = new FactList;
    facts->addWidget(m_tokenFacts);
    facts->addStretch(1);
    auto* choices = new QWidget;
    auto* column = columnOf(choices);
    column->addWidget(new PanelHead("Make", "its text is noise; time, bytes and memory are real"));
    m_panel = new ShapePanel;
    m_panel->setMaximumWidth(kWidestPanel);
    column->addWidget(m_panel);
    column->addStretch(1);
    auto* body = new QWidget;
    m_columns = new QBoxLayout(QBoxLayout::LeftToRight, body);
    m_columns->setContentsMargins(0, 0, 0, 0);
    m_columns->setSpacing(0);
    m_columns->addWidget(m_factsColumn);
    m_columns->addWidget(choices, 1);
    m_scroll = new QScrollArea;
    m_scroll->setWidgetResizable(true);
    m_scroll->setFrameShape(QFrame::NoFrame);
    m_scroll->setHorizontalScrollBarPolicy(Qt::ScrollBarAlwaysOff);
    m_scroll->setWidget(body);
    page->addWidget(m_scroll, 1);
    page->addWidget(buildFoot());
    connect(m_panel, &ShapePanel::changed, this, &ShapePage::refresh);
    connect(m_panel, &ShapePanel::planned, this, [this](const ContainerInfo& info) {
        QVector<Fact> model = modelFactList(info);
        model.back().name = "Made as";  // it was converted from nothing
        m_facts->setFacts(model);
        m_tokenFacts->setFacts(tokenFactList(info, {}).mid(0, 4));
    });
    refresh();
}

QWidget* ShapePage::buildHead() {
    auto* head = new QWidget;
    head->setFixedHeight(56);
    auto* row = new QHBoxLayout(head);
    row->setContentsMargins(16, 0, 16, 1);
    row->setSpacing(12);
    m_back = new IconButton("left", "Back", 28);
    row->addWidget(m_back);
    auto* names = new QVBoxLayout;
    names->setSpacing(0);
    names->addStretch(1);
    names->addWidget(new TextLine("Try a shape", type::section(), Tone::Text1, 20));
    names->addWidget(
        new TextLine("Random weights in the shape of a real model: tune this machine "
                     "before a download",
                     type::dense(), Tone::Text3, 16));
    names->addStretch(1);
    row->addLayout(names, 1);
    connect(m_back, &QAbstractButton::clicked, this, &ShapePage::back);
    return head;
}

QWidget* ShapePage::buildFoot() {
    auto* foot = new QWidget;
    auto* column = columnOf(foot);
    m_commandRow = new QWidget;
    m_commandRow->setFixedHeight(64);
    auto* row = new QHBoxLayout(m_commandRow);
    row->setContentsMargins(16, 1, 16, 0);
    row->setSpacing(12);
    m_command = new CommandLine;
    row->addWidget(m_command, 1);
    auto* cancelButton = new Button("Cancel");
    row->addWidget(cancelButton);
    m_main = new Button("Make model", Button::Kind::Primary, Button::Size::Main);
    m_main->setKey("Enter");
    row->addWidget(m_main);
    column->addWidget(m_commandRow);
    m_progressRow = new QWidget;
    auto* progressRow = new QHBoxLayout(m_progressRow);
    progressRow->setContentsMargins(16, 11, 16, 10);
    m_progress = new ProgressPanel;
    progressRow->addWidget(m_progress);
    m_progressRow->hide();
    column->addWidget(m_progressRow);
    connect(cancelButton, &QAbstractButton::clicked, this, &ShapePage::cancel);
    connect(m_main, &QAbstractButton::clicked, this, &ShapePage::start);
    connect(m_progress, &ProgressPanel::cancelled, this, &ShapePage::cancel);
    return foot;
}

void ShapePage::begin() {
    if (busy()) return;
    m_strip->hide();
    m_panel->look();
}

void ShapePage::refresh() {
    m_command->setCommand(m_panel->command());
    m_main->setEnabled(!busy() && m_panel->ready());
    m_back->setEnabled(!busy());
    m_panel->setEnabled(!busy());
    m_commandRow->setVisible(!busy());
    m_progressRow->setVisible(busy());
}

void ShapePage::start() {
    if (!m_main->isEnabled()) return;
    m_strip->hide();
    m_panel->keepFolder();
    const SynthOptions options = m_panel->options();
    m_job = new Job(
        [options](const ProgressFn& progress, const CancelFlag* cancel) {
            return synthesiseModel(options, progress, cancel).status();
        },
        this);
    connect(m_job, &Job::progressed, this, [this] { m_progress->setProgress(m_job->progress()); });
    connect(m_job, &Job::finished, this, [this, options](const Status& status) {
        ended(status, QString::fromStdString(options.target.string()));
    });
    m_progress->begin("Making " + QString::fromStdString(options.target.filename().string()));
    m_job->start();
    refresh();
    setFocus();
}

void ShapePage::ended(const Status& status, const QString& folder) {
    m_job = nullptr;
    refresh();
    m_panel->look();
    if (status.ok()) {
        emit made(folder);
    } else if (status.code() == Code::Cancelled) {
        m_strip->showMessage(MessageStrip::Kind::Info, "The model was not made.",
                             "What was written of it is deleted.");
        m_strip->addClose();
    } else {
        m_strip->showError("The model could not be made.", status);
    }
}

void ShapePage::cancel() {
    if (!m_job) return emit back();
    m_job->cancel();
    m_progress->setCancelling();
}

void ShapePage::keyPressEvent(QKeyEvent* event) {
    if (event->key() == Qt::Key_Escape) return cancel();
    if (event->key() == Qt::Key_Return || event->key() == Qt::Key_Enter) {
        // Enter on another button means that button.
        auto* button = qobject_cast<QAbstractButton*>(focusWidget());
        if (button && button != m_main) return button->click();
        return start();
    }
    QWidget::keyPressEvent(event);
}

void ShapePage::resizeEvent(QResizeEvent*) {
    const bool stacked = width() < kStackBelow;
    m_columns->setDirection(stacked ? QBoxLayout::BottomToTop : QBoxLayout::LeftToRight);
    m_factsColumn->setMinimumWidth(0);
    m_factsColumn->setMaximumWidth(QWIDGETSIZE_MAX);
    if (!stacked) m_factsColumn->setFixedWidth(kFactsColumn);
}

void ShapePage::paintEvent(QPaintEvent*) {
    QPainter p(this);
    p.fillRect(rect(), tone(Tone::Bg1));
    const QColor line = tone(Tone::Line1);
    p.fillRect(0, 55, width(), 1, line);
    const QWidget* foot = m_commandRow->isVisible() ? m_commandRow : m_progressRow;
    p.fillRect(0, foot->mapTo(this, QPoint(0, 0)).y(), width(), 1, line);
    if (width() >= kStackBelow)
        p.fillRect(m_factsColumn->width(), m_scroll->y(), 1, m_scroll->height(), line);
}

}  // namespace colibri::ui
