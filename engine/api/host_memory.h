// SPDX-License-Identifier: Apache-2.0
// Checks whether a caller's pointer is writable host memory through a system call, so that a device
// pointer or an invalid one is an error and not a crash. Probes the first and the last byte.
#pragma once

#include <cstddef>

namespace colibri {

bool hostReadable(const void* data, size_t bytes);
bool hostWritable(void* data, size_t bytes);  // REQUIRES: no other thread writes there

}  // namespace colibri
