// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/workbench/pages/convert_panel.h"

#include <QDir>
#include <QFileDialog>
#include <QFileInfo>
#include <QGridLayout>
#include <QHBoxLayout>

#include "app/workbench/pages/disk_room.h"
#include "app/workbench/pages/page_parts.h"

namespace colibri::ui {
namespace {

constexpr DType kTypes[] = {DType::Q8_0, DType::Q4_0, DType::F16, DType::BF16, DType::F32};

struct Look {
    std::optional<ContainerInfo> info;
    DiskRoom room;
};

}  // namespace

ConvertPanel::ConvertPanel(QWidget* parent) : QWidget(parent) {
    auto* grid = new QGridLayout(this);
    grid->setContentsMargins(20, 12, 20, 8);
    grid->setHorizontalSpacing(12);
    grid->setVerticalSpacing(8);
    grid->addWidget(new TextLine("Weight type", type::body(), Tone::Text1, 24), 0, 0);
    QStringList names;
    for (const DType type : kTypes) names << QString::fromUtf8(dtypeName(type).data());
    m_types = new Segment(names);
    m_types->setAccessibleName("Weight type");
    m_types->setToolTip(
        "q8_0 is hardly told from the original; q4_0 takes half of it. Embedding "
        "and head stay at q8_0.");
    grid->addWidget(m_types, 0, 1, 1, 2, Qt::AlignLeft);
    grid->addWidget(new TextLine("Target folder", type::body(), Tone::Text1, 28), 1, 0);
    m_target = new QLineEdit;
    m_target->setAccessibleName("Target folder");
    m_target->setFont(type::mono());
    m_target->setMinimumWidth(120);
    grid->addWidget(m_target, 1, 1);
    auto* browse = new Button("Choose");
    grid->addWidget(browse, 1, 2);
    m_note = new Note;
    grid->addWidget(m_note, 2, 1, 1, 2);
    grid->setColumnStretch(1, 1);

    connect(m_types, &Segment::chosen, this, [this] {
        if (!m_targetEdited) suggestTarget();
        look();
    });
    connect(m_target, &QLineEdit::textEdited, this, [this] {
        m_targetEdited = true;
        look();
    });
    connect(browse, &QAbstractButton::clicked, this, [this] {
        const QString dir =
            QFileDialog::getExistingDirectory(this, "Folder in which the converted model is made",
                                              QFileInfo(m_target->text()).path());
        if (dir.isEmpty()) return;
        m_target->setText(dir + "/" + QFileInfo(m_target->text()).fileName());
        m_targetEdited = true;
        look();
    });
}

void ConvertPanel::setSource(const Inspection& inspection) {
    m_inspection = inspection;
    m_targetEdited = false;
    // A model stored below eight bits is not made larger.
    m_types->setCurrent(inspection.source.dtype == DType::Q4_0 ? 1 : 0);
    suggestTarget();
    look();
}

std::optional<DType> ConvertPanel::dtype() const {
    return kTypes[m_types->current()];
}

void ConvertPanel::suggestTarget() {
    const QFileInfo source(QString::fromStdString(m_inspection.path.string()));
    const QString name = source.isDir() ? source.fileName() : source.completeBaseName();
    const QString type = QString::fromUtf8(dtypeName(*dtype()).data());
    m_target->setText(QDir::cleanPath(source.absolutePath() + "/" + name + "-" + type));
}

ConvertOptions ConvertPanel::options() const {
    ConvertOptions options;
    options.source = m_inspection.path;
    options.target = m_target->text().toStdString();
    options.dtype = dtype();
    return options;
}

QString ConvertPanel::command() const {
    return "colibri convert " + shellQuoted(QString::fromStdString(m_inspection.path.string())) +
           " -o " + shellQuoted(m_target->text()) + " --dtype " +
           QString::fromUtf8(dtypeName(*dtype()).data());
}

void ConvertPanel::look() {
    if (m_look) m_look->abandon();
    m_ready = false;
    emit changed();
    const auto result = std::make_shared<Look>();
    m_look = new Job(
        [options = options(), result](const ProgressFn&, const CancelFlag*) {
            auto info = plannedContainer(options.source, options.dtype);
            if (!info) return info.status();
            result->room = roomFor(options.target, containerBytes(*info));
            result->info = std::move(*info);
            return Status();
        },
        this);
    connect(m_look, &Job::finished, this, [this, result](const Status& status) {
        if (status.ok()) {
            m_ready = showRoom(*m_note, result->room, "the converted model",
                               "The original is left as it is.");
        } else {
            m_note->setNote(QString::fromStdString(status.text()), "error", Tone::Error,
                            Tone::Text2);
        }
        if (result->info) emit planned(*result->info);
        emit changed();
    });
    m_look->start();
}

}  // namespace colibri::ui
