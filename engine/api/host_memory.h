// SPDX-License-Identifier: Apache-2.0
// Whether a caller's pointer may be followed: asked of the system, so that a device pointer or a
// wild one is an error and not a crash. The first and the last byte are probed.
#pragma once

#include <cstddef>

namespace colibri {

bool hostReadable(const void* data, size_t bytes);
bool hostWritable(void* data, size_t bytes);  // REQUIRES: nobody else writes there meanwhile

}  // namespace colibri
