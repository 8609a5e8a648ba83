// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/workbench/pages/load_page.h"

#include <QBoxLayout>
#include <QCheckBox>
#include <QFileInfo>
#include <QKeyEvent>
#include <QScrollArea>

#include "app/workbench/pages/at_load_panel.h"
#include "app/workbench/pages/convert_panel.h"
#include "app/workbench/pages/data_table.h"
#include "app/workbench/pages/expected_panel.h"
#include "app/workbench/pages/load_facts.h"
#include "app/workbench/pages/memory_panel.h"
#include "app/workbench/pages/message_strip.h"
#include "app/workbench/pages/page_parts.h"
#include "app/workbench/pages/progress_panel.h"
#include "engine/base/format.h"

namespace colibri::ui {
namespace {

constexpr int kModelColumn = 424, kNarrowColumn = 344, kStackBelow = 1000, kWideFrom = 1200;

QVBoxLayout* columnOf(QWidget* widget) {
    auto* layout = new QVBoxLayout(widget);
    layout->setContentsMargins(0, 0, 0, 0);
    layout->setSpacing(0);
    return layout;
}

}  // namespace

LoadPage::LoadPage(EngineHost& host, QWidget* parent) : QWidget(parent), m_host(host) {
    setFocusPolicy(Qt::StrongFocus);
    auto* page = columnOf(this);
    page->addWidget(buildHead());
    m_strip = new MessageStrip;
    page->addWidget(m_strip);
    m_body = new QWidget;
    m_columns = new QBoxLayout(QBoxLayout::LeftToRight, m_body);
    m_columns->setContentsMargins(0, 0, 0, 0);
    m_columns->setSpacing(0);
    m_modelColumn = buildModelColumn();
    m_memoryColumn = buildMemoryColumn();
    m_columns->addWidget(m_modelColumn);
    m_columns->addWidget(m_memoryColumn, 1);
    m_scroll = new QScrollArea;
    m_scroll->setWidgetResizable(true);
    m_scroll->setFrameShape(QFrame::NoFrame);
    m_scroll->setHorizontalScrollBarPolicy(Qt::ScrollBarAlwaysOff);
    m_scroll->setWidget(m_body);
    page->addWidget(m_scroll, 1);
    page->addWidget(buildFoot());

    connect(m_atLoad, &AtLoadPanel::changed, this, [this] {
        m_memory->setModel(m_inspection.container, m_atLoad->knobs());
        refreshState();
    });
    connect(m_memory, &MemoryPanel::limitChanged, this, [this] {
        m_atLoad->setLimit(m_memory->limit());
        refreshState();
    });
    connect(m_convert, &ConvertPanel::planned, this, [this](const ContainerInfo& info) {
        m_inspection.container = info;
        showFacts();
        m_memory->setModel(info, {});
    });
    connect(m_convert, &ConvertPanel::changed, this, &LoadPage::refreshState);
    connect(m_override, &QCheckBox::toggled, this, &LoadPage::refreshState);
    connect(&m_host, &EngineHost::loadProgressed, this, [this] {
        if (m_loading && m_host.loadProgress()) m_progress->setProgress(*m_host.loadProgress());
    });
    connect(&m_host, &EngineHost::stateChanged, this, &LoadPage::onHostState);
    connect(&m_host, &EngineHost::loadFailed, this, [this](const Status& status) {
        m_strip->showError(m_title->text() + " could not be loaded.", status);
    });
}

// ---- parts

QWidget* LoadPage::buildHead() {
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
    m_title = new TextLine("", type::section(), Tone::Text1, 20);
    m_subtitle = new TextLine("", type::dense(), Tone::Text3, 16);
    names->addWidget(m_title);
    names->addWidget(m_subtitle);
    names->addStretch(1);
    row->addLayout(names);
    m_badges = new TagRow;
    m_badges->setSizePolicy(QSizePolicy::Ignored, QSizePolicy::Fixed);
    row->addWidget(m_badges, 1);
    m_verify = new Button("Verify hashes", Button::Kind::Default, Button::Size::Dense);
    m_verify->setToolTip("Reads every byte of the model once and compares it with its hash.");
    row->addSpacing(4);
    row->addWidget(m_verify);
    connect(m_back, &QAbstractButton::clicked, this, &LoadPage::back);
    connect(m_verify, &QAbstractButton::clicked, this, &LoadPage::verify);
    return head;
}

QWidget* LoadPage::buildModelColumn() {
    auto* widget = new QWidget;
    auto* column = columnOf(widget);
    column->addWidget(new PanelHead("Model"));
    m_facts = new FactList;
    column->addWidget(m_facts);
    column->addWidget(new PanelHead("Weights", {}, true));
    m_weights = new DataTable({{"Part", 0},
                               {"Tensors", 72, true, true},
                               {"Type", 76, false, true},
                               {"GiB", 72, true, true}},
                              false);
    m_weights->setPadding(16, 16);
    column->addWidget(m_weights);
    column->addWidget(new PanelHead("One token", {}, true));
    m_tokenFacts = new FactList;
    column->addWidget(m_tokenFacts);
    column->addStretch(1);
    return widget;
}

QWidget* LoadPage::buildMemoryColumn() {
    auto* widget = new QWidget;
    auto* column = columnOf(widget);
    m_memory = new MemoryPanel;
    column->addWidget(m_memory);
    m_expectedHead = new PanelHead("Expected", {}, true);
    column->addWidget(m_expectedHead);
    m_expected = new ExpectedPanel;
    column->addWidget(m_expected);
    m_settingsHead = new PanelHead("At load", {}, true);
    column->addWidget(m_settingsHead);
    m_atLoad = new AtLoadPanel;
    column->addWidget(m_atLoad);
    m_convert = new ConvertPanel;
    column->addWidget(m_convert);
    column->addStretch(1);
    m_overrideRow = new QWidget;
    m_overrideRow->setFixedHeight(44);
    auto* row = new QHBoxLayout(m_overrideRow);
    row->setContentsMargins(20, 1, 20, 0);
    row->setSpacing(10);
    m_override = new QCheckBox("Load even if the estimate is over the limit");
    row->addWidget(m_override);
    row->addWidget(
        new TextLine("The system may swap or end other programs.", type::dense(), Tone::Text3, 16),
        1);
    column->addWidget(m_overrideRow);
    return widget;
}

QWidget* LoadPage::buildFoot() {
    auto* foot = new QWidget;
    auto* column = columnOf(foot);
    m_commandRow = new QWidget;
    m_commandRow->setFixedHeight(64);
    auto* row = new QHBoxLayout(m_commandRow);
    row->setContentsMargins(16, 1, 16, 0);
    row->setSpacing(12);
    m_command = new CommandLine;
    row->addWidget(m_command, 1);
    m_cancel = new Button("Cancel");
    row->addWidget(m_cancel);
    m_main = new Button("Load", Button::Kind::Primary, Button::Size::Main);
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
    connect(m_cancel, &QAbstractButton::clicked, this, &LoadPage::cancel);
    connect(m_main, &QAbstractButton::clicked, this, &LoadPage::start);
    connect(m_progress, &ProgressPanel::cancelled, this, &LoadPage::cancel);
    return foot;
}

// ---- content

void LoadPage::showModel(const Inspection& inspection, const KnobValues& knobs) {
    m_inspection = inspection;
    m_verified = false;
    m_strip->hide();
    const ContainerInfo& info = inspection.container;
    const QString folder = QFileInfo(QString::fromStdString(inspection.path.string())).fileName();
    m_title->setText(
        QString::fromStdString(info.config.name.empty() ? folder.toStdString() : info.config.name));
    const QString kind = converting() ? QString::fromStdString(inspection.source.format)
                                      : QString("Colibri container");
    const double bytes =
        converting() ? double(inspection.source.bytes) : double(info.denseBytes + info.expertBytes);
    m_subtitle->setText(folder + ", " + kind + ", " + sizeText(bytes));
    showFacts();
    showBadges();
    m_override->setChecked(false);
    m_settingsHead->setTitle(converting() ? "Convert" : "At load");
    m_settingsHead->setCaption(
        converting()
            ? "into a folder of its own; can be stopped and taken up again"
            : "cache size can also be moved while the model runs; the others need a reload");
    m_verify->setVisible(!converting());
    m_atLoad->setVisible(!converting());
    m_convert->setVisible(converting());
    m_expected->setVisible(!converting());
    m_expectedHead->setVisible(!converting());
    m_overrideRow->setVisible(!converting());
    if (converting()) {
        m_memory->setModel(info, {});
        m_convert->setSource(inspection);
    } else {
        m_atLoad->setModel(info, knobs);
        m_memory->setModel(info, m_atLoad->knobs());
        refreshMeasurements();
    }
    m_memory->setActual(isLoadedModel() ? m_host.engineMemory() : std::nullopt);
    m_scroll->ensureVisible(0, 0);
    refreshState();
    setFocus();
}

void LoadPage::showFacts() {
    const ContainerInfo& info = m_inspection.container;
    m_facts->setFacts(modelFactList(info));
    QString unit;
    m_weights->setRows(weightRows(info, &unit));
    m_weights->setColumnTitle(3, unit);
    m_tokenFacts->setFacts(tokenFactList(info, m_host.measurements().machine()));
}

void LoadPage::showBadges() {
    QVector<TagLook> tags;
    QStringList tips;
    for (const Badge& badge : badgesOf(m_inspection)) {
        tags << badge.look;
        tips << badge.tip;
    }
    if (m_verified) {
        tags << okTag("hashes match");
        tips << "Every byte was read and is what was written.";
    }
    m_badges->setTags(tags, tips);
}

void LoadPage::refreshMeasurements() {
    m_tokenFacts->setFacts(tokenFactList(m_inspection.container, m_host.measurements().machine()));
    m_expected->setRun(m_host.measurements().run(m_inspection.container.fingerprint));
    m_expectedHead->setCaption(m_expected->caption());
}

void LoadPage::setGpuReason(const QString& reason) {
    m_atLoad->setGpuReason(reason);
}

bool LoadPage::isLoadedModel() const {
    const ContainerInfo* loaded = m_host.container();
    return loaded && !converting() && loaded->dir == m_inspection.container.dir;
}

bool LoadPage::busy() const {
    return m_loading || m_job;
}

QString LoadPage::command() const {
    if (converting()) return m_convert->command();
    return "colibri chat " +
           shellQuoted(QString::fromStdString(m_inspection.container.dir.string())) + " " +
           knobOptions(m_atLoad->knobs());
}

void LoadPage::refreshState() {
    const bool idle = !busy();
    m_command->setCommand(command());
    m_main->setText(converting() ? "Convert" : isLoadedModel() ? "Reload" : "Load");
    m_main->updateGeometry();
    const bool allowed =
        converting() ? m_convert->ready() : m_memory->fits() || m_override->isChecked();
    m_main->setEnabled(idle && allowed);
    m_main->setToolTip(allowed || converting() ? QString()
                                               : "The estimate is over the limit. Make the cache "
                                                 "smaller, or tick the box above.");
    m_verify->setEnabled(idle);
    m_back->setEnabled(idle);
    m_atLoad->setEnabled(idle);
    m_convert->setEnabled(idle);
}

// ---- jobs

void LoadPage::beginProgress(const QString& title) {
    m_strip->hide();
    m_progress->begin(title);
    m_commandRow->hide();
    m_progressRow->show();
    refreshState();
    setFocus();
}

void LoadPage::endProgress() {
    m_progressRow->hide();
    m_commandRow->show();
    refreshState();
}

void LoadPage::start() {
    if (!m_main->isEnabled()) return;
    if (converting()) return convert();
    m_loading = true;
    beginProgress("Loading");
    m_memory->setActual(std::nullopt);
    m_host.load(m_inspection.container.dir, m_atLoad->knobs());
}

void LoadPage::onHostState() {
    if (m_loading && m_host.state() != SessionSource::State::Loading) {
        m_loading = false;
        endProgress();
        if (m_host.state() == SessionSource::State::Ready) emit loaded();
    }
    m_memory->setActual(isLoadedModel() ? m_host.engineMemory() : std::nullopt);
    refreshState();
}

void LoadPage::verify() {
    if (busy()) return;
    m_job = new Job(
        [info = m_inspection.container](const ProgressFn& progress, const CancelFlag* cancel) {
            return verifyContainer(info, progress, cancel);
        },
        this);
    connect(m_job, &Job::progressed, this, [this] { m_progress->setProgress(m_job->progress()); });
    connect(m_job, &Job::finished, this, [this](const Status& status) {
        m_job = nullptr;
        endProgress();
        m_verified = status.ok();
        showBadges();
        if (!status.ok() && status.code() != Code::Cancelled)
            m_strip->showError("The model is damaged or could not be read.", status);
    });
    m_job->start();
    beginProgress("Verifying");
}

void LoadPage::convert() {
    const ConvertOptions options = m_convert->options();
    m_job = new Job(
        [options](const ProgressFn& progress, const CancelFlag* cancel) {
            return convertModel(options, progress, cancel).status();
        },
        this);
    connect(m_job, &Job::progressed, this, [this] { m_progress->setProgress(m_job->progress()); });
    connect(m_job, &Job::finished, this, [this, options](const Status& status) {
        m_job = nullptr;
        endProgress();
        if (status.ok()) {
            emit converted(QString::fromStdString(options.target.string()));
        } else if (status.code() == Code::Cancelled) {
            m_strip->showMessage(MessageStrip::Kind::Info, "The conversion was stopped.",
                                 "Convert into the same folder to go on where it stopped.");
            m_strip->addClose();
        } else {
            m_strip->showError("The conversion failed.", status);
        }
    });
    m_job->start();
    beginProgress("Converting");
}

void LoadPage::cancel() {
    if (m_loading) {
        m_host.cancelLoad();
        m_progress->setCancelling();
    } else if (m_job) {
        m_job->cancel();
        m_progress->setCancelling();
    } else {
        emit back();
    }
}

// ---- events

void LoadPage::keyPressEvent(QKeyEvent* event) {
    if (event->key() == Qt::Key_Escape) return cancel();
    if (event->key() == Qt::Key_Return || event->key() == Qt::Key_Enter) {
        // Enter on another button means that button.
        auto* button = qobject_cast<QAbstractButton*>(focusWidget());
        if (button && button != m_main && button != m_override) return button->click();
        return start();
    }
    QWidget::keyPressEvent(event);
}

void LoadPage::resizeEvent(QResizeEvent*) {
    const bool stacked = width() < kStackBelow;
    m_columns->setDirection(stacked ? QBoxLayout::BottomToTop : QBoxLayout::LeftToRight);
    m_modelColumn->setMinimumWidth(0);
    m_modelColumn->setMaximumWidth(QWIDGETSIZE_MAX);
    if (!stacked) m_modelColumn->setFixedWidth(width() < kWideFrom ? kNarrowColumn : kModelColumn);
    m_atLoad->setColumns(m_memoryColumn->width() < 620 && width() < 760 ? 1 : 2);
}

void LoadPage::paintEvent(QPaintEvent*) {
    QPainter p(this);
    p.fillRect(rect(), tone(Tone::Bg1));
    const QColor line = tone(Tone::Line1);
    p.fillRect(0, 55, width(), 1, line);
    const QWidget* foot = m_commandRow->isVisible() ? m_commandRow : m_progressRow;
    p.fillRect(0, foot->mapTo(this, QPoint(0, 0)).y(), width(), 1, line);
    if (width() >= kStackBelow) {
        p.fillRect(m_modelColumn->width(), m_scroll->y(), 1, m_scroll->height(), line);
    }
    if (m_overrideRow->isVisible()) {
        const QPoint at = m_overrideRow->mapTo(this, QPoint(0, 0));
        if (at.y() > m_scroll->y() && at.y() < m_scroll->geometry().bottom())
            p.fillRect(at.x(), at.y(), m_overrideRow->width(), 1, line);
    }
}

}  // namespace colibri::ui
