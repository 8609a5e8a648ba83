// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/workbench/pages/convert_panel.h"

#include <QFileInfo>
#include <QGridLayout>

#include "app/workbench/platform/text.h"
#include "app/workbench/widgets/page_parts.h"

namespace colibri::ui {

namespace {

const QString kAsStored = "as stored";

}  // namespace

ConvertPanel::ConvertPanel(QWidget* parent)
    : QWidget(parent),
      m_types(weightTypeSegment({kAsStored})),
      m_target(new TargetFolder("the converted model", "The original stays unchanged.", this)) {
    auto* grid = new QGridLayout(this);
    grid->setContentsMargins(20, 12, 20, 8);
    grid->setHorizontalSpacing(12);
    grid->setVerticalSpacing(8);
    grid->addWidget(new TextLine("Weight type", type::body(), Tone::Text1, 24), 0, 0);
    m_types->setToolTip(
        "q8_0 is nearly lossless; q4_0 is half its size, with embedding and head at q8_0. "
        "As stored, every tensor keeps its own type.");
    grid->addWidget(m_types, 0, 1, 1, 2, Qt::AlignLeft);
    m_target->addTo(grid, 1);
    grid->setColumnStretch(1, 1);

    connect(m_types, &Segment::chosen, this, [this] {
        suggestTarget();
        look();
    });
    connect(m_target, &TargetFolder::edited, this, &ConvertPanel::look);
    connect(m_target, &TargetFolder::planned, this, &ConvertPanel::planned);
    connect(m_target, &TargetFolder::changed, this, &ConvertPanel::changed);
}

void ConvertPanel::setSource(const Inspection& inspection) {
    m_inspection = inspection;
    m_target->forget();
    // A quantised checkpoint is not quantised again by default.
    m_types->setCurrent(isQuantised(inspection.source.dtype) ? m_types->count() - 1 : 0);
    suggestTarget();
    look();
}

void ConvertPanel::suggestTarget() {
    const DType shown = dtype().value_or(m_inspection.source.dtype);
    m_target->suggest(exactText(conversionTarget(m_inspection.path, shown).string()));
}

ConvertOptions ConvertPanel::options() const {
    ConvertOptions options;
    options.source = m_inspection.path;
    options.target = m_target->path().toStdString();
    options.dtype = dtype();
    return options;
}

QString ConvertPanel::command() const {
    const QString convert = "colibri convert " +
                            shellQuoted(exactText(m_inspection.path.string())) + " -o " +
                            shellQuoted(m_target->path());
    const std::optional<DType> type = dtype();
    return type ? convert + " --dtype " + str(dtypeName(*type)) : convert;
}

void ConvertPanel::look() {
    m_target->look(
        [options = options()] { return plannedContainer(options.source, options.dtype); });
}

}  // namespace colibri::ui
