// SPDX-License-Identifier: Apache-2.0
// The measured effect of a knob change as a session file has it: the text of a mark.
#pragma once

#include <string_view>

#include "profiler/metrics/snapshot.h"

namespace colibri {

// Reads the text that effectText() wrote into the effect of `marker`. False: it is another text,
// and the marker is unchanged.
bool readEffect(std::string_view text, Marker* marker);

}  // namespace colibri
