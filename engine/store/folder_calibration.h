// SPDX-License-Identifier: Apache-2.0
// The engine's measurement of disk and memory, also for a folder without a model.
#pragma once

#include <filesystem>

#include "engine/base/progress.h"
#include "engine/store/calibration.h"

namespace colibri {

// If `folder` contains a model, reads its experts; else reads the largest file below it (two
// levels) in records of 4 MiB. If no file is large enough, writes a temporary one of 128 MiB and
// removes it afterwards. Takes less than a second and stores the result (keepCalibration). Errors:
// BadInput, those of measureCalibration.
Result<Calibration> calibrateFolder(const std::filesystem::path& folder, const CancelFlag& cancel);

// The same for the disk of `folder`, always in reads of 4 MiB.
Result<Calibration> calibrateDisk(const std::filesystem::path& folder, const CancelFlag& cancel);

}  // namespace colibri
