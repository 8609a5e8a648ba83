// SPDX-License-Identifier: Apache-2.0
// Reads and writes the text of model.json. Pure functions that access no files.
#pragma once

#include <string>
#include <string_view>

#include "engine/base/status.h"
#include "engine/model/container.h"

namespace colibri {

// Everything but the sizes and hashes of files: `dir`, hasTokenizer and hasTemplate stay empty.
// Checked: schema, every number, the tensor table complete and inside dense.bin, the experts'
// layers complete. Errors: BadInput, or Unsupported for a newer schema (both numbers named).
Result<ContainerInfo> parseModelJson(std::string_view text, const std::string& where);

// Deterministic: the same info gives the same bytes.
std::string writeModelJson(const ContainerInfo& info);

}  // namespace colibri
