// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/workbench/pages/load_page.h"

#include <QBoxLayout>
#include <QCheckBox>
#include <QFileInfo>
#include <QScrollArea>

#include "app/workbench/pages/at_load_panel.h"
#include "app/workbench/pages/convert_panel.h"
#include "app/workbench/pages/expected_panel.h"
#include "app/workbench/pages/load_facts.h"
#include "app/workbench/pages/memory_panel.h"
#include "app/workbench/platform/text.h"
#include "app/workbench/widgets/data_table.h"
#include "app/workbench/widgets/message_strip.h"
#include "app/workbench/widgets/page_parts.h"
#include "app/workbench/widgets/progress_panel.h"
#include "engine/base/format.h"
#include "engine/convert/pipeline/target.h"

namespace colibri::ui {
namespace {

constexpr int kNarrowColumn = 344, kWideFrom = 1200;

}  // namespace

LoadPage::LoadPage(EngineHost& host, QWidget* parent) : JobPage("Load", parent), m_host(host) {
    buildHead();
    QWidget* const model = buildModelColumn();
    m_memoryColumn = buildMemoryColumn();
    setColumns(model, m_memoryColumn);

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
        if (m_loading && m_host.loadJob()) progress()->setProgress(m_host.loadJob()->progress());
    });
    connect(&m_host, &EngineHost::stateChanged, this, &LoadPage::onHostState);
    connect(&m_host, &EngineHost::loadFailed, this, [this](const Status& status) {
        strip()->showError(title() + " could not be loaded.", status);
        offerFormerModel({});
    });
}

// ---- parts

void LoadPage::buildHead() {
    m_badges = new TagRow;
    m_badges->setSizePolicy(QSizePolicy::Ignored, QSizePolicy::Fixed);
    headRow()->addWidget(m_badges, 1);
    m_verify = new Button("Verify hashes", Button::Kind::Default, Button::Size::Dense);
    m_verify->setToolTip("Reads every byte of the model once and verifies the hashes.");
    headRow()->addSpacing(4);
    headRow()->addWidget(m_verify);
    connect(m_verify, &QAbstractButton::clicked, this, &LoadPage::verify);
}

QWidget* LoadPage::buildModelColumn() {
    auto* widget = new QWidget;
    auto* column = plainColumn(widget);
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
    auto* column = plainColumn(widget);
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
    row->addWidget(new TextLine("The system may swap or terminate other programs.", type::dense(),
                                Tone::Text3, 16),
                   1);
    column->addWidget(m_overrideRow);
    return widget;
}

// ---- content

void LoadPage::showModel(const Inspection& inspection, const KnobValues& knobs) {
    m_inspection = inspection;
    m_verified = false;
    strip()->hide();
    const ContainerInfo& info = inspection.container;
    const QString folder = shown(QFileInfo(exactText(inspection.path.string())).fileName());
    const QString kind =
        converting() ? str(inspection.source.format) : QString("Colibri container");
    const double bytes =
        converting() ? double(inspection.source.bytes) : double(info.denseBytes + info.expertBytes);
    setTitle(info.config.name.empty() ? folder : str(info.config.name),
             folder + ", " + kind + ", " + sizeText(bytes));
    showFacts();
    showBadges();
    m_override->setChecked(false);
    m_settingsHead->setTitle(converting() ? "Convert" : "At load");
    m_settingsHead->setCaption(
        converting()
            ? "into a new folder; can be stopped and resumed"
            : "cache size can also be changed while the model runs; the others need a reload");
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
    m_memory->setActual(isLoadedModel() ? std::optional(m_host.engine()->memory()) : std::nullopt);
    scroll()->ensureVisible(0, 0);
    refreshState();
    setFocus();
}

void LoadPage::showFacts() {
    const ContainerInfo& info = m_inspection.container;
    QVector<Fact> model = modelFactList(info);
    if (converting()) model.back().name = "Checkpoint";  // not converted yet
    m_facts->setFacts(model);
    QString unit;
    m_weights->setRows(weightRows(info, &unit));
    m_weights->setColumnTitle(3, unit);
    m_tokenFacts->setFacts(tokenFactList(info, m_inspection.calibration.value_or(Calibration())));
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
        tips << "Verified: all checksums match.";
    }
    m_badges->setTags(tags, tips);
}

void LoadPage::refreshMeasurements() {
    m_expected->setRun(m_host.kept().measurements.run(m_inspection.container.fingerprint));
    m_expectedHead->setCaption(m_expected->caption());
}

void LoadPage::setRates(const Calibration& rates) {
    m_inspection.calibration = rates;
    m_tokenFacts->setFacts(tokenFactList(m_inspection.container, rates));
}

void LoadPage::setGpuReason(const QString& reason) {
    m_atLoad->setGpuReason(reason);
}

bool LoadPage::isLoadedModel() const {
    const auto loaded = m_host.engine();
    return loaded && !converting() && loaded->info().dir == m_inspection.container.dir;
}

bool LoadPage::busy() const {
    return m_loading || JobPage::busy();
}

QString LoadPage::command() const {
    if (converting()) return m_convert->command();
    return "colibri chat " + shellQuoted(exactText(m_inspection.container.dir.string())) + " " +
           knobOptions(m_atLoad->knobs());
}

void LoadPage::refreshState() {
    JobPage::refreshState();
    const bool idle = !busy();
    setCommand(command());
    mainButton()->setText(converting() ? "Convert" : isLoadedModel() ? "Reload" : "Load");
    mainButton()->updateGeometry();
    const bool allowed =
        converting() ? m_convert->ready() : m_memory->fits() || m_override->isChecked();
    mainButton()->setEnabled(idle && allowed);
    mainButton()->setToolTip(allowed || converting()
                                 ? QString()
                                 : "The estimate is over the limit. Make the cache "
                                   "smaller, or tick the box above.");
    m_verify->setEnabled(idle);
    m_atLoad->setEnabled(idle);
    m_convert->setEnabled(idle);
}

// ---- jobs

void LoadPage::start() {
    if (!mainButton()->isEnabled()) return;
    if (converting()) return convert();
    if (!m_host.model() || !m_ask) return load();
    const auto dir = m_inspection.container.dir;
    m_ask(isLoadedModel() ? "Reload " + title() + "?" : "Load " + title() + "?",
          isLoadedModel() ? "Reload it" : "Load it", [this, dir] {
              if (!converting() && !busy() && m_inspection.container.dir == dir) load();
          });
}

void LoadPage::load() {
    m_former = {};
    if (const auto running = m_host.engine())
        m_former = {m_host.model()->name, running->info().dir, m_host.requestedKnobs()};
    m_loading = true;
    beginProgress("Loading");
    m_memory->setActual(std::nullopt);
    m_host.load(m_inspection.container.dir, m_atLoad->knobs());
}

void LoadPage::onHostState() {
    if (m_loading && m_host.state() != SessionSource::State::Loading) {
        m_loading = false;
        endProgress();
        if (m_host.state() == SessionSource::State::Ready)
            emit loaded();
        else
            offerFormerModel("Loading " + title() + " was cancelled.");
    }
    m_memory->setActual(isLoadedModel() ? std::optional(m_host.engine()->memory()) : std::nullopt);
    refreshState();
}

// Two models would not fit in memory, so the former one is closed before the load. After a failed
// load this offers to load it again. `what`: a message; "": the strip has one already.
void LoadPage::offerFormerModel(const QString& what) {
    if (!what.isEmpty()) {
        strip()->showMessage(MessageStrip::Kind::Info, what,
                             m_former.name.isEmpty()
                                 ? QString()
                                 : m_former.name + " was closed to make room for it.");
    }
    if (!m_former.name.isEmpty()) {
        connect(strip()->addAction("Load " + m_former.name + " again"), &QAbstractButton::clicked,
                this, [this, former = m_former] {
                    emit formerWanted(exactText(former.dir.string()), former.knobs);
                });
    }
    strip()->addClose();
}

// After a conversion that was stopped or failed: it can be resumed, or its files discarded.
void LoadPage::offerDiscard(const std::filesystem::path& target) {
    if (const int64_t bytes = partialBytes(target); bytes > 0) {
        auto* discard = strip()->addAction("Discard " + sizeText(double(bytes)), true);
        connect(discard, &QAbstractButton::clicked, this, [this, target] {
            run(
                "Discarding",
                [target](const ProgressFn&, const CancelFlag*) { return discardPartial(target); },
                [this](const Status& status) {
                    if (!status.ok())
                        return strip()->showError("The conversion could not be discarded.", status);
                    strip()->showMessage(MessageStrip::Kind::Info,
                                         "The stopped conversion was discarded.",
                                         "The original is unchanged.");
                    strip()->addClose();
                });
        });
    }
    strip()->addClose();
}

void LoadPage::verify() {
    if (busy()) return;
    run(
        "Verifying",
        [info = m_inspection.container](const ProgressFn& progress, const CancelFlag* cancel) {
            return verifyContainer(info, progress, cancel);
        },
        [this](const Status& status) {
            m_verified = status.ok();
            showBadges();
            if (!status.ok() && status.code() != Code::Cancelled)
                strip()->showError("The model is damaged or could not be read.", status);
        });
}

void LoadPage::convert() {
    const ConvertOptions options = m_convert->options();
    run(
        "Converting",
        [options](const ProgressFn& progress, const CancelFlag* cancel) {
            return convertModel(options, progress, cancel).status();
        },
        [this, options](const Status& status) {
            if (status.ok()) {
                emit converted(exactText(options.target.string()));
            } else if (status.code() == Code::Cancelled) {
                strip()->showMessage(MessageStrip::Kind::Info, "The conversion was stopped.",
                                     "Convert into the same folder to resume it.");
                offerDiscard(options.target);
            } else {
                strip()->showError("The conversion failed.", status);
                offerDiscard(options.target);
            }
        });
}

void LoadPage::cancel() {
    if (!m_loading) return JobPage::cancel();
    m_host.cancelLoad();
    progress()->setCancelling();
}

// ---- events

int LoadPage::leftWidth() const {
    return width() < kWideFrom ? kNarrowColumn : JobPage::leftWidth();
}

void LoadPage::resizeEvent(QResizeEvent* event) {
    JobPage::resizeEvent(event);
    m_atLoad->setColumns(m_memoryColumn->width() < 620 && width() < 760 ? 1 : 2);
}

void LoadPage::paintEvent(QPaintEvent* event) {
    JobPage::paintEvent(event);
    if (!m_overrideRow->isVisible()) return;
    const QPoint at = m_overrideRow->mapTo(this, QPoint(0, 0));
    if (at.y() <= scroll()->y() || at.y() >= scroll()->geometry().bottom()) return;
    QPainter p(this);
    p.fillRect(at.x(), at.y(), m_overrideRow->width(), 1, tone(Tone::Line1));
}

}  // namespace colibri::ui
