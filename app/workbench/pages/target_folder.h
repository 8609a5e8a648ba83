// SPDX-License-Identifier: GPL-3.0-or-later
// Whether a model of a size can be written to a folder, and the note under the field that names it.
#pragma once

#include <QString>
#include <cstdint>
#include <filesystem>

namespace colibri::ui {

class Note;

struct DiskRoom {
    int64_t bytes = 0, free = 0;     // free 0: not known
    bool named = false;              // there is a name of a folder
    bool exists = false;             // something of that name is there
    QString missing;                 // folder above it that is not there
};

// Looks at the disk: not for the GUI's thread.
DiskRoom roomFor(const std::filesystem::path& target, int64_t bytes);
// "what": "the converted model". `after`: a sentence where all is well. Returns whether all is.
bool showRoom(Note& note, const DiskRoom& room, const QString& what, const QString& after);

}  // namespace colibri::ui
