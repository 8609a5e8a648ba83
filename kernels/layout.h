// SPDX-License-Identifier: Apache-2.0
// Private: the blocks of the packed layout as structs, and the sets of kernels to choose from.
#pragma once

#include <cstdint>

#include "kernels/kernels.h"

namespace colibri {

// One block of 32 columns of a panel of 16 output rows (kernels/packed.h).
struct PackedQ8 {
    uint16_t scale[kPanel];
    int8_t q[kBlock / 4][kPanel][4];
};
static_assert(sizeof(PackedQ8) == 544);

struct PackedQ4 {
    uint16_t scale[kPanel];
    uint8_t q[kBlock / 8][kPanel][4];
};
static_assert(sizeof(PackedQ4) == 288);

const KernelSet& scalarKernels();
#ifdef COLIBRI_X86_KERNELS
// Call a function of these tables only on a processor that has the instruction set.
const KernelSet& avx2Kernels();
const KernelSet& avx512Kernels();
const KernelSet& avx512VnniKernels();
#endif

}  // namespace colibri
