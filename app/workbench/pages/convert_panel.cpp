// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/workbench/pages/convert_panel.h"

#include <QFileInfo>
#include <QGridLayout>

#include "app/workbench/pages/page_parts.h"

namespace colibri::ui {

ConvertPanel::ConvertPanel(QWidget* parent)
    : QWidget(parent),
      m_types(weightTypeSegment()),
      m_target(
          new TargetFolder("the converted model", "The original is left as it is.", this)) {
    auto* grid = new QGridLayout(this);
    grid->setContentsMargins(20, 12, 20, 8);
    grid->setHorizontalSpacing(12);
    grid->setVerticalSpacing(8);
    grid->addWidget(new TextLine("Weight type", type::body(), Tone::Text1, 24), 0, 0);
    m_types->setToolTip(
        "q8_0 is hardly told from the original; q4_0 takes half of it. Embedding "
        "and head stay at q8_0.");
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
    // A model stored below eight bits is not made larger.
    m_types->setCurrent(inspection.source.dtype == DType::Q4_0 ? 1 : 0);
    suggestTarget();
    look();
}

void ConvertPanel::suggestTarget() {
    const QFileInfo source(QString::fromStdString(m_inspection.path.string()));
    const QString name = source.isDir() ? source.fileName() : source.completeBaseName();
    const QString type = QString::fromUtf8(dtypeName(dtype()).data());
    m_target->suggest(source.absolutePath() + "/" + name + "-" + type);
}

ConvertOptions ConvertPanel::options() const {
    ConvertOptions options;
    options.source = m_inspection.path;
    options.target = m_target->path().toStdString();
    options.dtype = dtype();
    return options;
}

QString ConvertPanel::command() const {
    return "colibri convert " + shellQuoted(QString::fromStdString(m_inspection.path.string())) +
           " -o " + shellQuoted(m_target->path()) + " --dtype " +
           QString::fromUtf8(dtypeName(dtype()).data());
}

void ConvertPanel::look() {
    m_target->look([options = options()] {
        return plannedContainer(options.source, options.dtype);
    });
}

}  // namespace colibri::ui
