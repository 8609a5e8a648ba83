// SPDX-License-Identifier: Apache-2.0
// One door for every checkpoint format.
#pragma once

#include <filesystem>

#include "engine/base/status.h"
#include "engine/convert/pipeline/output.h"
#include "engine/convert/converter.h"
#include "engine/convert/pipeline/plan.h"

namespace colibri {

// `chatTemplate`: as in chooseTemplate. Errors: BadInput when nothing is there or it is no
// checkpoint, naming what it is; else those of the format.
Result<OpenedSource> openSource(const std::filesystem::path& path,
                                const std::string& chatTemplate = {});

// The notes of a source, with what it cannot be used for.
std::vector<std::string> notesOf(const OpenedSource& source);

// The plan's tables as they will stand in model.json.
ContainerInfo containerOf(const OpenedSource& source, const Plan& plan);

// convertModel with stand-ins for the disk.
Result<ContainerInfo> convertModel(const ConvertOptions& options, const ProgressFn& progress,
                                   const CancelFlag* cancel, const DiskHooks& hooks);

}  // namespace colibri
