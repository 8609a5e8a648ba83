// SPDX-License-Identifier: Apache-2.0
// model.json as text: both directions. Pure functions, no files touched.
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
