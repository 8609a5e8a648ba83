// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/workbench/pages/job_page.h"

#include <QCheckBox>
#include <QKeyEvent>
#include <QScrollArea>

#include "app/workbench/widgets/controls.h"
#include "app/workbench/widgets/message_strip.h"
#include "app/workbench/widgets/page_parts.h"
#include "app/workbench/widgets/progress_panel.h"

namespace colibri::ui {
namespace {

constexpr int kStackJobBelow = 1000;

}  // namespace

JobPage::JobPage(const QString& action, QWidget* parent) : QWidget(parent) {
    setFocusPolicy(Qt::ClickFocus);  // not a stop of Tab, since the focus would not be visible
    auto* page = plainColumn(this);
    m_head = new PageHead;
    connect(m_head, &PageHead::back, this, &JobPage::back);
    page->addWidget(m_head);
    m_strip = new MessageStrip;
    page->addWidget(m_strip);
    auto* body = new QWidget;
    m_columns = new QBoxLayout(QBoxLayout::LeftToRight, body);
    m_columns->setContentsMargins(0, 0, 0, 0);
    m_columns->setSpacing(0);
    m_scroll = new QScrollArea;
    m_scroll->setWidgetResizable(true);
    m_scroll->setFrameShape(QFrame::NoFrame);
    m_scroll->setHorizontalScrollBarPolicy(Qt::ScrollBarAlwaysOff);
    m_scroll->setWidget(body);
    page->addWidget(m_scroll, 1);
    page->addWidget(buildFoot(action));
}

QWidget* JobPage::buildFoot(const QString& action) {
    auto* foot = new QWidget;
    auto* column = plainColumn(foot);
    m_commandRow = new QWidget;
    m_commandRow->setFixedHeight(64);
    auto* row = new QHBoxLayout(m_commandRow);
    row->setContentsMargins(16, 1, 16, 0);
    row->setSpacing(12);
    m_command = new CommandLine;
    row->addWidget(m_command, 1);
    auto* cancelButton = new Button("Cancel");
    row->addWidget(cancelButton);
    m_main = new Button(action, Button::Kind::Primary, Button::Size::Main);
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
    connect(cancelButton, &QAbstractButton::clicked, this, &JobPage::cancel);
    connect(m_main, &QAbstractButton::clicked, this, &JobPage::start);
    connect(m_progress, &ProgressPanel::cancelled, this, &JobPage::cancel);
    return foot;
}

void JobPage::setTitle(const QString& title, const QString& subtitle) {
    m_head->setTitle(title, subtitle);
}

QHBoxLayout* JobPage::headRow() const {
    return m_head->row();
}

QString JobPage::title() const {
    return m_head->title();
}

void JobPage::setColumns(QWidget* left, QWidget* right) {
    m_left = left;
    m_columns->addWidget(left);
    m_columns->addWidget(right, 1);
}

bool JobPage::stacked() const {
    return width() < kStackJobBelow;
}

void JobPage::setCommand(const QString& command) {
    m_command->setCommand(command);
}

void JobPage::beginProgress(const QString& title) {
    m_strip->hide();
    m_progress->begin(title);
    m_commandRow->hide();
    m_progressRow->show();
    refreshState();
    setFocus();
}

void JobPage::endProgress() {
    m_progressRow->hide();
    m_commandRow->show();
    refreshState();
}

void JobPage::run(const QString& title, Job::Work work, std::function<void(const Status&)> ended) {
    m_job = new Job(std::move(work), this);
    connect(m_job, &Job::progressed, this, [this] { m_progress->setProgress(m_job->progress()); });
    connect(m_job, &Job::finished, this, [this, ended = std::move(ended)](const Status& status) {
        m_job = nullptr;
        endProgress();
        ended(status);
    });
    m_job->start();
    beginProgress(title);
}

void JobPage::cancel() {
    if (!m_job) return emit back();
    m_job->cancel();
    m_progress->setCancelling();
}

void JobPage::refreshState() {
    m_head->setBackEnabled(!busy());
}

// ---- events

void JobPage::keyPressEvent(QKeyEvent* event) {
    if (event->key() == Qt::Key_Escape) return cancel();
    if (event->key() == Qt::Key_Return || event->key() == Qt::Key_Enter) {
        // Enter on another button presses that button.
        auto* button = qobject_cast<QAbstractButton*>(focusWidget());
        if (button && button != m_main && !qobject_cast<QCheckBox*>(button)) return button->click();
        return start();
    }
    QWidget::keyPressEvent(event);
}

void JobPage::resizeEvent(QResizeEvent*) {
    m_columns->setDirection(stacked() ? QBoxLayout::BottomToTop : QBoxLayout::LeftToRight);
    m_left->setMinimumWidth(0);
    m_left->setMaximumWidth(QWIDGETSIZE_MAX);
    if (!stacked()) m_left->setFixedWidth(leftWidth());
}

void JobPage::paintEvent(QPaintEvent*) {
    QPainter p(this);
    p.fillRect(rect(), tone(Tone::Bg1));
    const QColor line = tone(Tone::Line1);
    p.fillRect(0, PageHead::kHeight - 1, width(), 1, line);
    const QWidget* foot = m_commandRow->isVisible() ? m_commandRow : m_progressRow;
    p.fillRect(0, foot->mapTo(this, QPoint(0, 0)).y(), width(), 1, line);
    if (!stacked()) p.fillRect(m_left->width(), m_scroll->y(), 1, m_scroll->height(), line);
}

}  // namespace colibri::ui
