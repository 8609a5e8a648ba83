// SPDX-License-Identifier: Apache-2.0
// Reads and writes the text of model.json. Pure functions that access no files.
#pragma once

#include <string>
#include <string_view>

#include "engine/base/status.h"
#include "engine/model/container.h"

namespace colibri {

// Reads everything except the sizes and hashes of files; `dir`, hasTokenizer and hasTemplate stay
// empty. Checks the schema, all numbers, that the tensor table is complete and within dense.bin,
// and that no expert layer is missing. Errors: BadInput, or Unsupported for a newer schema (the
// message has both numbers).
Result<ContainerInfo> parseModelJson(std::string_view text, const std::string& where);

// Deterministic: the same info gives the same bytes.
std::string writeModelJson(const ContainerInfo& info);

}  // namespace colibri
