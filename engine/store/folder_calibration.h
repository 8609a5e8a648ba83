// SPDX-License-Identifier: Apache-2.0
// The engine's own measurement of disk and memory, also for a folder that holds no model.
#pragma once

#include <filesystem>

#include "engine/base/progress.h"
#include "engine/store/calibration.h"

namespace colibri {

// With a model in `folder`, its experts are read; else the largest file below it (two levels),
// taken for records of 4 MiB; where none is large enough, a temporary one of 128 MiB is written
// first and removed. Takes under a second. What was measured is kept (keepCalibration). Errors: BadInput, those of measureCalibration.
Result<Calibration> calibrateFolder(const std::filesystem::path& folder, const CancelFlag& cancel);

// The same of the disk under `folder`, in reads of 4 MiB whatever lies there.
Result<Calibration> calibrateDisk(const std::filesystem::path& folder, const CancelFlag& cancel);

}  // namespace colibri
