// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <string>

#include "app/cli/cli.h"
#include "profiler/machine/machine_profile.h"

namespace colibri::cli {

// Tables of what was measured, and when.
std::string profileText(const MachineProfile& profile);

}  // namespace colibri::cli
