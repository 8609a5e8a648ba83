// SPDX-License-Identifier: Apache-2.0
// Measures memory, disk and kernels of this machine.
#pragma once

#include <filesystem>

#include "engine/base/progress.h"
#include "engine/base/status.h"
#include "profiler/machine/machine_profile.h"

namespace colibri {

// Takes about ten seconds; the machine should be idle. `folder`: on the disk to measure. Neither
// keeps the profile nor changes the calibration. Errors: BadInput (not a folder), Cancelled, those
// of reading.
Result<MachineProfile> measureMachine(const std::filesystem::path& folder,
                                      const ProgressFn& progress, const CancelFlag& cancel);

}  // namespace colibri
