// SPDX-License-Identifier: GPL-3.0-or-later
// libFuzzer's way into one target: COLIBRI_FUZZ_TARGET is its function.
#include <cstddef>
#include <cstdint>

#include "tests/fuzz/targets.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
    colibri::fuzz::COLIBRI_FUZZ_TARGET({reinterpret_cast<const char*>(data), size});
    return 0;
}
