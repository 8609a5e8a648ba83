// SPDX-License-Identifier: Apache-2.0
// Opens checkpoints of every format.
#pragma once

#include <filesystem>

#include "engine/base/status.h"
#include "engine/convert/converter.h"
#include "engine/convert/pipeline/output.h"
#include "engine/convert/pipeline/plan.h"

namespace colibri {

// `chatTemplate`: as in chooseTemplate. Errors: BadInput if the path does not exist or is not
// a checkpoint (the message says what it is); else those of the format.
Result<OpenedSource> openSource(const std::filesystem::path& path,
                                const std::string& chatTemplate = {});

// The notes of a source, including what it cannot be used for.
std::vector<std::string> notesOf(const OpenedSource& source);

// The plan's tables as they will be in model.json.
ContainerInfo containerOf(const OpenedSource& source, const Plan& plan);

// convertModel with test hooks for the disk.
Result<ContainerInfo> convertModel(const ConvertOptions& options, const ProgressFn& progress,
                                   const CancelFlag* cancel, const DiskHooks& hooks);

}  // namespace colibri
