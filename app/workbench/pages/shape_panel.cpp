// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/workbench/pages/shape_panel.h"

#include <QDir>
#include <QFileDialog>
#include <QFileInfo>
#include <QGridLayout>

#include "app/workbench/pages/disk_room.h"
#include "app/workbench/pages/page_parts.h"
#include "app/workbench/session/settings.h"
#include "engine/convert/inspect.h"

namespace colibri::ui {
namespace {

constexpr DType kTypes[] = {DType::Q8_0, DType::Q4_0, DType::F16, DType::BF16, DType::F32};
constexpr int kSkewScale = 100;

QString typeName(DType type) {
    return QString::fromUtf8(dtypeName(type).data());
}

}  // namespace

ShapePanel::ShapePanel(QWidget* parent) : QWidget(parent) {
    auto* grid = new QGridLayout(this);
    grid->setContentsMargins(20, 12, 20, 12);
    grid->setHorizontalSpacing(12);
    grid->setVerticalSpacing(8);
    grid->setColumnStretch(1, 1);
    const auto label = [&](const QString& text, int row, int height) {
        grid->addWidget(new TextLine(text, type::body(), Tone::Text1, height), row, 0);
    };
    label("Shape of", 0, 24);
    m_shape = new Select;
    m_shape->setAccessibleName("Shape of");
    for (const SynthShape& shape : synthShapes())
        m_shape->addItem(QString("%1 (%2)").arg(shape.of, shape.name), QString(shape.name));
    grid->addWidget(m_shape, 0, 1, 1, 2, Qt::AlignLeft);
    label("Weight type", 1, 24);
    QStringList names;
    for (const DType type : kTypes) names << typeName(type);
    m_types = new Segment(names);
    m_types->setCurrent(1);
    m_types->setAccessibleName("Weight type");
    m_types->setToolTip("As the real model would be converted: time, bytes and memory are those.");
    grid->addWidget(m_types, 1, 1, 1, 2, Qt::AlignLeft);
    m_layers = new SliderRow("Layers", "layers");
    m_layers->setNote("Fewer give a smaller model; the time of one layer stays what it is.");
    grid->addWidget(m_layers, 2, 0, 1, 3);
    m_skew = new SliderRow("Skew of the routing", "");
    m_skew->setScale(kSkewScale, 2);
    SliderRange skew{0, 4 * kSkewScale, 5, 0};
    skew.minText = "0.00";
    skew.maxText = "4.00";
    m_skew->setRange(skew);
    m_skew->setValue(0);
    m_skew->setNote("0 is nearly uniform, 1 has clear favourites, which a cache can keep.");
    grid->addWidget(m_skew, 3, 0, 1, 3);
    m_seed = new SliderRow("Seed", "");
    m_seed->setRange({0, 999'999, 1, 1});
    m_seed->setValue(1);
    m_seed->setNote("The same seed gives the same bytes.");
    grid->addWidget(m_seed, 4, 0, 1, 3);
    label("Target folder", 5, 28);
    m_target = new QLineEdit;
    m_target->setAccessibleName("Target folder");
    m_target->setFont(type::mono());
    m_target->setMinimumWidth(120);
    grid->addWidget(m_target, 5, 1);
    auto* browse = new Button("Choose");
    grid->addWidget(browse, 5, 2);
    m_note = new Note;
    grid->addWidget(m_note, 6, 1, 1, 2);

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
    connect(m_target, &QLineEdit::textEdited, this, [this] {
        m_targetEdited = true;
        look();
    });
    connect(browse, &QAbstractButton::clicked, this, [this] {
        const QString dir = QFileDialog::getExistingDirectory(
            window(), "Folder in which the model is made", QFileInfo(m_target->text()).path());
        if (dir.isEmpty()) return;
        m_target->setText(QDir::cleanPath(dir + "/" + QFileInfo(m_target->text()).fileName()));
        m_targetEdited = true;
        look();
    });
    shapeChosen();
}

void ShapePanel::shapeChosen() {
    const SynthShape& shape = synthShapes()[size_t(m_shape->currentIndex())];
    m_layers->setRange({1, shape.layers, 1, shape.layers});
    m_layers->setValue(shape.layers);
    suggestTarget();
}

void ShapePanel::suggestTarget() {
    if (m_targetEdited) return;
    const QString dir = settings().value("shape/folder", QDir::homePath()).toString();
    m_target->setText(QDir::cleanPath(dir + "/" + m_shape->currentData().toString() +
                                      "-synthetic-" + typeName(kTypes[m_types->current()])));
}

void ShapePanel::keepFolder() const {
    settings().setValue("shape/folder", QFileInfo(m_target->text().trimmed()).path());
}

SynthOptions ShapePanel::options() const {
    const SynthShape& shape = synthShapes()[size_t(m_shape->currentIndex())];
    SynthOptions options;
    options.shape = shape.name;
    options.target = m_target->text().trimmed().toStdString();
    options.dtype = kTypes[m_types->current()];
    options.skew = double(m_skew->value()) / kSkewScale;
    options.layers = m_layers->value() == shape.layers ? 0 : m_layers->value();
    options.seed = uint64_t(m_seed->value());
    return options;
}

QString ShapePanel::command() const {
    const SynthOptions o = options();
    QString text = "colibri synth " + QString::fromStdString(o.shape) + " -o " +
                   shellQuoted(m_target->text().trimmed()) + " --quant " + typeName(o.dtype);
    if (o.skew > 0) text += QString(" --skew %1").arg(o.skew);
    if (o.layers > 0) text += QString(" --layers %1").arg(o.layers);
    return text + QString(" --seed %1").arg(o.seed);
}

void ShapePanel::look() {
    if (m_look) m_look->abandon();
    m_ready = false;
    emit changed();
    struct Look {
        ContainerInfo info;
        DiskRoom room;
    };
    const auto result = std::make_shared<Look>();
    m_look = new Job(
        [options = options(), result](const ProgressFn&, const CancelFlag*) {
            auto info = plannedSynthetic(options);
            if (!info) return info.status();
            result->room = roomFor(options.target, containerBytes(*info));
            result->info = std::move(*info);
            return Status();
        },
        this);
    connect(m_look, &Job::finished, this, [this, result](const Status& status) {
        if (status.ok()) {
            m_ready = showRoom(*m_note, result->room, "the model", "");
            emit planned(result->info);
        } else {
            m_note->setNote(QString::fromStdString(status.text()), "error", Tone::Error,
                            Tone::Text2);
        }
        emit changed();
    });
    m_look->start();
}

}  // namespace colibri::ui
