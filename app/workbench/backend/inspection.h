// SPDX-License-Identifier: GPL-3.0-or-later
// Inspects a path that the user opens: it is a model that can be loaded, a checkpoint that must be
// converted first, or a session.
#pragma once

#include <QString>
#include <filesystem>
#include <optional>

#include "app/workbench/backend/recorded_source.h"
#include "engine/base/progress.h"
#include "engine/convert/inspect.h"
#include "engine/model/container.h"
#include "engine/store/calibration.h"
#include "profiler/session/session_details.h"

namespace colibri::ui {

struct Inspection {
    enum class Kind { Container, Checkpoint, Session } kind = Kind::Container;
    std::filesystem::path path;
    ContainerInfo container;  // Container; for a Checkpoint the result of a conversion
    SourceInfo source;        // Checkpoint
    OpenedSession session;    // Session
    // Of the disk of the model, else the newest of this machine.
    std::optional<Calibration> calibration;
    int files = 0;  // of the model
    // Container: the checkpoint that the user opened, if this is an earlier conversion of it.
    std::filesystem::path convertedFrom;
    // "": usable; else what is wrong or missing.
    QString tokenizerProblem, templateProblem;
};

// The default folder for a conversion of a checkpoint: beside it, or in the user's cache if its
// folder is not writable.
std::filesystem::path conversionTarget(const std::filesystem::path& checkpoint, DType type);

// Reads headers, tables, tokenizer and template, but no weights. If a checkpoint was converted
// before to its conversionTarget(), the result is that container. Blocks, so it runs in a job.
Result<Inspection> inspectPath(const std::filesystem::path& path, const CancelFlag* cancel);

// The totals of a session. Scans the whole file, so it runs in a job. Errors: those of
// readSessionSummary().
struct SessionTotals {
    SessionSummary summary;
    SessionDetails details;
};
Result<SessionTotals> readTotals(const std::filesystem::path& path);

}  // namespace colibri::ui
