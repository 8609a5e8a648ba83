// SPDX-License-Identifier: GPL-3.0-or-later
// The entry point of libFuzzer for one target: the function COLIBRI_FUZZ_TARGET.
#include <cstddef>
#include <cstdint>

#include "tests/fuzz/targets.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
    colibri::fuzz::COLIBRI_FUZZ_TARGET({reinterpret_cast<const char*>(data), size});
    return 0;
}
