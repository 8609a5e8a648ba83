// SPDX-License-Identifier: GPL-3.0-or-later
// Differences of two sessions as JSON and text, for `diff` and `replay`.
#pragma once

#include <string>

#include "app/cli/cli.h"
#include "profiler/compare/compare.h"

namespace colibri::cli {

Json differencesJson(const SessionComparison& comparison);
// Lines "  decode_tok_s   18.1 tok/s -> 21.0 tok/s  +16.0 % (95 %: +14.8 % .. +17.1 %)".
std::string differencesText(const SessionComparison& comparison);

}  // namespace colibri::cli
