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
#include "profiler/session/session_details.h"
#include "profiler/session/session_reader.h"

namespace colibri::ui {

struct Inspection {
    enum class Kind { Container, Checkpoint, Session } kind = Kind::Container;
    std::filesystem::path path;
    ContainerInfo container;  // Container; for a Checkpoint what a conversion would give
    SourceInfo source;        // Checkpoint
    SessionSummary session;   // Session
    SessionDetails details;   // Session
    std::optional<Calibration> calibration;  // of its disk, else the newest of this machine
    int files = 0;                           // of the model
    // Container: the checkpoint that was opened, of which this is an earlier conversion.
    std::filesystem::path convertedFrom;
    // "" when there and usable, else what is wrong or missing.
    QString tokenizerProblem, templateProblem;
};

// Where a conversion of a checkpoint is written unless someone says otherwise: beside it, or in the
// user's cache when nothing can be written there.
std::filesystem::path conversionTarget(const std::filesystem::path& checkpoint, DType type);

// Reads headers, tables, tokenizer and template, no weights. A checkpoint that was converted
// before, to where conversionTarget says, is that container. Blocking: for a job.
Result<Inspection> inspectPath(const std::filesystem::path& path, const CancelFlag* cancel);

}  // namespace colibri::ui
