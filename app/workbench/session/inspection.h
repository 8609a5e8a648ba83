// SPDX-License-Identifier: GPL-3.0-or-later
// What a path turns out to be when someone opens it: a model ready to load, a checkpoint that must
// be converted first, or a session.
#pragma once

#include <QString>
#include <filesystem>
#include <optional>

#include "engine/base/progress.h"
#include "engine/convert/inspect.h"
#include "engine/model/container.h"
#include "engine/store/calibration.h"
#include "profiler/session/session_reader.h"

namespace colibri::ui {

struct Inspection {
    enum class Kind { Container, Checkpoint, Session } kind = Kind::Container;
    std::filesystem::path path;
    ContainerInfo container;         // Container; for a Checkpoint what a conversion would give
    SourceInfo source;               // Checkpoint
    SessionSummary session;          // Session
    std::optional<Calibration> calibration;   // of its disk, else the newest of this machine
    int files = 0;                   // of the model
    // Container: "" when there and usable, else what is wrong or missing.
    QString tokenizerProblem, templateProblem;
};

// Reads headers, tables, tokenizer and template, no weights. Blocking: for a job.
Result<Inspection> inspectPath(const std::filesystem::path& path, const CancelFlag* cancel);

}  // namespace colibri::ui
