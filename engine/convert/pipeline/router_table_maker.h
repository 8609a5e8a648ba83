// SPDX-License-Identifier: Apache-2.0
// Computes the token -> experts table of a checkpoint: applies the norm and gate of each MoE layer
// to every row of the embedding.
#pragma once

#include <filesystem>

#include "engine/base/progress.h"
#include "engine/base/status.h"
#include "engine/convert/pipeline/plan.h"

namespace colibri {

// Needs memory for one router and some tens of MiB. REQUIRES: `plan` was made from `source`.
// Errors: Unsupported (no experts in the model), IoError, NoSpace, BadInput (the source),
// Cancelled.
Status makeRouterTable(const OpenedSource& source, const Plan& plan,
                       const std::filesystem::path& file, const ProgressFn& progress,
                       const CancelFlag* cancel);

}  // namespace colibri
