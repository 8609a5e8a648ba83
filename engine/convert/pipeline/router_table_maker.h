// SPDX-License-Identifier: Apache-2.0
// Computes the token -> experts table of a checkpoint: every row of the embedding through each MoE
// layer's norm and gate.
#pragma once

#include <filesystem>

#include "engine/base/progress.h"
#include "engine/base/status.h"
#include "engine/convert/pipeline/plan.h"

namespace colibri {

// Memory: one router and some tens of MiB. REQUIRES: `plan` was made from `source`. Errors:
// Unsupported (no experts in the model), IoError, NoSpace, BadInput (the source), Cancelled.
Status makeRouterTable(const OpenedSource& source, const Plan& plan,
                       const std::filesystem::path& file, const ProgressFn& progress,
                       const CancelFlag* cancel);

}  // namespace colibri
