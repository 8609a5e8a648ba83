// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/workbench/pages/target_folder.h"

#include <QDir>
#include <QFileInfo>
#include <QGridLayout>
#include <algorithm>
#include <vector>

#include "app/workbench/platform/ask_file.h"
#include "app/workbench/platform/text.h"
#include "app/workbench/widgets/controls.h"
#include "app/workbench/widgets/page_parts.h"
#include "engine/convert/inspect.h"
#include "engine/convert/pipeline/target.h"

namespace colibri::ui {
namespace {

// The types that the engine can encode: quantised ones first, then plain ones by size.
const std::vector<DType>& encodableTypes() {
    static const std::vector<DType> kTypes = [] {
        std::vector<DType> types;
        for (int i = 0; i < kDTypeCount; ++i)
            if (hasEncoder(DType(i))) types.push_back(DType(i));
        const auto plain = std::stable_partition(types.begin(), types.end(), isQuantised);
        std::stable_sort(plain, types.end(),
                         [](DType a, DType b) { return bitsPerWeight(a) < bitsPerWeight(b); });
        return types;
    }();
    return kTypes;
}

}  // namespace

struct TargetFolder::Room {
    int64_t bytes = 0, free = 0;  // free 0: not known
    int64_t partial = 0;          // bytes written by a stopped conversion
    bool named = false;           // the path has a name
    bool exists = false;          // a file or folder has this name
    QString missing;              // parent folder, if it does not exist

    // Reads the disk.
    static Room of(const std::filesystem::path& target, int64_t bytes) {
        Room room;
        room.bytes = bytes;
        room.named = target.has_filename();
        std::error_code error;
        room.exists = std::filesystem::exists(std::filesystem::symlink_status(target, error));
        room.partial = room.named && !room.exists ? partialBytes(target) : 0;
        std::filesystem::path parent = target.parent_path();
        if (parent.empty()) parent = ".";
        if (!std::filesystem::is_directory(parent, error)) room.missing = str(parent.string());
        const auto space = std::filesystem::space(parent, error);
        room.free = error ? 0 : int64_t(space.available);
        return room;
    }
};

TargetFolder::TargetFolder(const QString& what, const QString& after, QObject* parent)
    : QObject(parent),
      m_what(what),
      m_after(after),
      m_edit(new QLineEdit),
      m_note(new Note),
      m_discard(new Button("", Button::Kind::Destructive, Button::Size::Dense)) {
    m_edit->setAccessibleName("Target folder");
    m_edit->setFont(type::mono());
    m_edit->setMinimumWidth(120);
    m_discard->hide();
    m_discard->setToolTip("Deletes the files of a stopped conversion to this folder.");
    connect(m_discard, &QAbstractButton::clicked, this, &TargetFolder::discard);
    connect(m_edit, &QLineEdit::textEdited, this, [this] {
        m_edited = true;
        emit edited();
    });
}

void TargetFolder::addTo(QGridLayout* grid, int row) {
    grid->addWidget(new TextLine("Target folder", type::body(), Tone::Text1, 28), row, 0);
    grid->addWidget(m_edit, row, 1);
    auto* browse = new Button("Choose");
    grid->addWidget(browse, row, 2);
    auto* line = new QHBoxLayout;
    line->setSpacing(8);
    line->addWidget(m_note, 1);
    line->addWidget(m_discard, 0, Qt::AlignTop);
    grid->addLayout(line, row + 1, 1, 1, 2);
    connect(browse, &QAbstractButton::clicked, this, &TargetFolder::choose);
}

void TargetFolder::choose() {
    const QFileInfo now(path());
    const QString dir = askFolder(m_edit->window(), "Folder for " + m_what, now.path());
    if (dir.isEmpty()) return;
    m_edit->setText(QDir::cleanPath(dir + "/" + now.fileName()));
    m_edited = true;
    emit edited();
}

void TargetFolder::suggest(const QString& path) {
    if (!m_edited) m_edit->setText(QDir::cleanPath(path));
}

void TargetFolder::look(Plan plan) {
    if (m_look) m_look->abandon();
    m_ready = false;
    showPartial(0);
    emit changed();
    struct Found {
        ContainerInfo info;
        Room room;
    };
    const auto found = std::make_shared<Found>();
    m_look = new Job(
        [plan = std::move(plan), target = path().toStdString(), found](const ProgressFn&,
                                                                       const CancelFlag*) {
            auto info = plan();
            if (!info) return info.status();
            found->room = Room::of(target, containerBytes(*info));
            found->info = std::move(*info);
            return Status();
        },
        this);
    connect(m_look, &Job::finished, this, [this, found](const Status& status) {
        if (status.ok()) {
            m_ready = showRoom(found->room);
            emit planned(found->info);
        } else {
            m_note->setNote(str(status.text()), "error", Tone::Error, Tone::Text2);
        }
        emit changed();
    });
    m_look->start();
}

bool TargetFolder::showRoom(const Room& room) {
    const QString size = sizeText(double(room.bytes)), free = sizeText(double(room.free));
    const auto warn = [&](const QString& text) {
        m_note->setNote(text, "warn", Tone::Warn, Tone::Text2);
        return false;
    };
    showPartial(room.partial);
    if (!room.named) return warn("Choose a folder for " + m_what + ".");
    if (room.exists) return warn("This folder already exists. Choose a new one.");
    if (!room.missing.isEmpty())
        return warn("There is no folder " + room.missing + ". Create it first.");
    if (room.free > 0 && room.bytes - room.partial > room.free) {
        m_note->setNote(size + " needed, but only " + free + " free on that disk.", "error",
                        Tone::Error, Tone::Text2);
        return false;
    }
    const QString text =
        size + " on the disk" + (room.free > 0 ? ", of " + free + " free." : "; free space n/a.");
    const QString left =
        sizeText(double(room.partial)) + " of it were written before the conversion stopped.";
    const QString after = room.partial > 0 ? left : m_after;
    m_note->setNote(after.isEmpty() ? text : text + " " + after);
    return true;
}

void TargetFolder::showPartial(int64_t bytes) {
    m_discard->setVisible(bytes > 0);
    m_discard->setText("Discard " + sizeText(double(bytes)));
}

void TargetFolder::discard() {
    if (m_removal) return;
    m_discard->setEnabled(false);
    m_removal =
        new Job([target = path().toStdString()](
                    const ProgressFn&, const CancelFlag*) { return discardPartial(target); },
                this);
    connect(m_removal, &Job::finished, this, [this](const Status& status) {
        m_discard->setEnabled(true);
        if (status.ok()) return emit edited();  // look again
        m_note->setNote(str(status.text()), "error", Tone::Error, Tone::Text2);
    });
    m_removal->start();
}

Segment* weightTypeSegment(const QStringList& more) {
    QStringList names;
    for (const DType type : encodableTypes()) names << str(dtypeName(type));
    auto* segment = new Segment(names + more);
    segment->setAccessibleName("Weight type");
    return segment;
}

std::optional<DType> weightType(const Segment& segment) {
    const auto i = size_t(segment.current());
    const std::vector<DType>& types = encodableTypes();
    return i < types.size() ? std::optional(types[i]) : std::nullopt;
}

}  // namespace colibri::ui
