// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/workbench/pages/disk_room.h"

#include "app/workbench/pages/page_parts.h"
#include "app/workbench/widgets/slider_row.h"

namespace colibri::ui {

DiskRoom roomFor(const std::filesystem::path& target, int64_t bytes) {
    DiskRoom room;
    room.bytes = bytes;
    room.named = target.has_filename();
    std::error_code error;
    room.exists = std::filesystem::exists(std::filesystem::symlink_status(target, error));
    std::filesystem::path parent = target.parent_path();
    if (parent.empty()) parent = ".";
    if (!std::filesystem::is_directory(parent, error))
        room.missing = QString::fromStdString(parent.string());
    const auto space = std::filesystem::space(parent, error);
    room.free = error ? 0 : int64_t(space.available);
    return room;
}

bool showRoom(Note& note, const DiskRoom& room, const QString& what, const QString& after) {
    const QString size = sizeText(double(room.bytes)), free = sizeText(double(room.free));
    const auto warn = [&](const QString& text) {
        note.setNote(text, "warn", Tone::Warn, Tone::Text2);
        return false;
    };
    if (!room.named) return warn("Name a folder for " + what + ".");
    if (room.exists) return warn("This folder is there already. Name one that is not.");
    if (!room.missing.isEmpty())
        return warn("There is no folder " + room.missing + ". Create it first.");
    if (room.free > 0 && room.bytes > room.free) {
        note.setNote(size + " are needed, " + free + " are free on that disk.", "error",
                     Tone::Error, Tone::Text2);
        return false;
    }
    const QString text =
        size + " on the disk" + (room.free > 0 ? ", of " + free + " free." : "; free space n/a.");
    note.setNote(after.isEmpty() ? text : text + " " + after);
    return true;
}

}  // namespace colibri::ui
