// SPDX-License-Identifier: Apache-2.0
// The sizes of the system's memory pages on the processors that the engine supports.
#pragma once

#include <cstddef>

namespace colibri {

constexpr size_t kPage = 4096, kHugePage = 2 << 20;

}  // namespace colibri
