// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/workbench/pages/shape_panel.h"

#include <QDir>
#include <QFileInfo>
#include <QGridLayout>

#include "app/workbench/platform/settings.h"
#include "app/workbench/platform/text.h"
#include "app/workbench/widgets/page_parts.h"

namespace colibri::ui {
namespace {

constexpr int kSkewScale = 100;

QString typeName(DType type) {
    return str(dtypeName(type));
}

}  // namespace

ShapePanel::ShapePanel(QWidget* parent)
    : QWidget(parent),
      m_types(weightTypeSegment()),
      m_target(new TargetFolder("the model", "", this)) {
    auto* grid = new QGridLayout(this);
    grid->setContentsMargins(20, 12, 20, 12);
    grid->setHorizontalSpacing(12);
    grid->setVerticalSpacing(8);
    grid->setColumnStretch(1, 1);
    const auto label = [&](const QString& text, int row) {
        grid->addWidget(new TextLine(text, type::body(), Tone::Text1, 24), row, 0);
    };
    label("Shape of", 0);
    m_shape = new Select;
    m_shape->setAccessibleName("Shape of");
    for (const SynthShape& shape : synthShapes())
        m_shape->addItem(QString("%1 (%2)").arg(shape.of, shape.name), QString(shape.name));
    grid->addWidget(m_shape, 0, 1, 1, 2, Qt::AlignLeft);
    label("Weight type", 1);
    m_types->setCurrent(1);
    m_types->setToolTip(
        "The type to which the real model would be converted; time, bytes and memory are the "
        "same.");
    grid->addWidget(m_types, 1, 1, 1, 2, Qt::AlignLeft);
    m_layers = new SliderRow("Layers", "layers");
    m_layers->setNote("Fewer layers give a smaller model; the time per layer stays the same.");
    grid->addWidget(m_layers, 2, 0, 1, 3);
    m_skew = new SliderRow("Routing skew", "");
    m_skew->setScale(kSkewScale, 2);
    SliderRange skew{0, 4 * kSkewScale, 5, 0};
    skew.minText = "0.00";
    skew.maxText = "4.00";
    m_skew->setRange(skew);
    m_skew->setValue(0);
    m_skew->setNote("0 is nearly uniform; 1 has clear favourites, which a cache can keep.");
    grid->addWidget(m_skew, 3, 0, 1, 3);
    m_seed = new SliderRow("Seed", "");
    m_seed->setRange({0, 999'999, 1, 1});
    m_seed->setValue(1);
    m_seed->setNote("The same seed gives the same bytes.");
    grid->addWidget(m_seed, 4, 0, 1, 3);
    m_target->addTo(grid, 5);

    connect(m_shape, &QComboBox::currentIndexChanged, this, [this] {
        shapeChosen();
        look();
    });
    connect(m_types, &Segment::chosen, this, [this] {
        suggestTarget();
        look();
    });
    for (SliderRow* row : {m_layers, m_skew, m_seed})
        connect(row, &SliderRow::edited, this, &ShapePanel::look);
    connect(m_target, &TargetFolder::edited, this, &ShapePanel::look);
    connect(m_target, &TargetFolder::planned, this, &ShapePanel::planned);
    connect(m_target, &TargetFolder::changed, this, &ShapePanel::changed);
    shapeChosen();
}

void ShapePanel::shapeChosen() {
    const SynthShape& shape = synthShapes()[size_t(m_shape->currentIndex())];
    m_layers->setRange({1, shape.layers, 1, shape.layers});
    m_layers->setValue(shape.layers);
    suggestTarget();
}

void ShapePanel::suggestTarget() {
    const QString dir = settings().value("shape/folder", QDir::homePath()).toString();
    m_target->suggest(dir + "/" + m_shape->currentData().toString() + "-synthetic-" +
                      typeName(*weightType(*m_types)));
}

void ShapePanel::keepFolder() const {
    settings().setValue("shape/folder", QFileInfo(m_target->path()).path());
}

SynthOptions ShapePanel::options() const {
    const SynthShape& shape = synthShapes()[size_t(m_shape->currentIndex())];
    SynthOptions options;
    options.shape = shape.name;
    options.target = m_target->path().toStdString();
    options.dtype = *weightType(*m_types);
    options.skew = double(m_skew->value()) / kSkewScale;
    options.layers = m_layers->value() == shape.layers ? 0 : m_layers->value();
    options.seed = uint64_t(m_seed->value());
    return options;
}

QString ShapePanel::command() const {
    const SynthOptions o = options();
    QString text = "colibri synth " + str(o.shape) + " -o " + shellQuoted(m_target->path()) +
                   " --quant " + typeName(o.dtype);
    if (o.skew > 0) text += QString(" --skew %1").arg(o.skew);
    if (o.layers > 0) text += QString(" --layers %1").arg(o.layers);
    return text + QString(" --seed %1").arg(o.seed);
}

void ShapePanel::look() {
    m_target->look([options = options()] { return plannedSynthetic(options); });
}

}  // namespace colibri::ui
