// SPDX-License-Identifier: Apache-2.0
// Private: the blocks of the packed layout as structs (kernels/packed.h describes them), and the
// kernel sets.
//
// The constants of every quantised block: kSubs, its number of 32-column sub-blocks; kSplit, the
// number of parts of a sub-block with their own scale; kOffset, the value subtracted from each
// code; kMin, whether a minimum is added to every value.
#pragma once

#include <cstdint>

#include "kernels/kernels.h"

namespace colibri {

struct PackedQ8 {
    static constexpr int kSubs = 1, kSplit = 1, kOffset = 0;
    static constexpr bool kMin = false;
    uint16_t scale[kPanel];
    int8_t q[kBlock / 4][kPanel][4];
};
static_assert(sizeof(PackedQ8) == 544);

// Unsigned codes of 32 columns: four low bits and `High` high bits each.
template <int High>
struct PackedCodes {
    uint8_t low[kBlock / 8][kPanel][4];
    uint8_t high[High][kPanel][4];
};
template <>
struct PackedCodes<0> {
    uint8_t low[kBlock / 8][kPanel][4];
};

template <int High, int Offset>
struct PackedScaled {
    static constexpr int kSubs = 1, kSplit = 1, kHigh = High, kOffset = Offset;
    static constexpr bool kMin = false;
    uint16_t scale[kPanel];
    PackedCodes<High> codes[1];
};
using PackedQ4 = PackedScaled<0, 8>;
using PackedQ5 = PackedScaled<1, 16>;
static_assert(sizeof(PackedQ4) == 288 && sizeof(PackedQ5) == 352);

template <int High>
struct PackedRaised {
    static constexpr int kSubs = 1, kSplit = 1, kHigh = High, kOffset = 0;
    static constexpr bool kMin = true;
    uint16_t scale[kPanel];
    uint16_t min[kPanel];
    PackedCodes<High> codes[1];
};
using PackedQ41 = PackedRaised<0>;
using PackedQ51 = PackedRaised<1>;
static_assert(sizeof(PackedQ41) == 320 && sizeof(PackedQ51) == 384);

// Codes are indices into kMxValues. Adding the offset makes the values unsigned.
struct PackedMx4 {
    static constexpr int kSubs = 1, kSplit = 1, kHigh = 0, kOffset = 12;
    static constexpr bool kMin = false;
    uint8_t scale[kPanel];
    PackedCodes<0> codes[1];
};
static_assert(sizeof(PackedMx4) == 272);
constexpr int8_t kMxValues[16] = {0, 1, 2, 3, 4, 6, 8, 12, 0, -1, -2, -3, -4, -6, -8, -12};

template <int High>
struct PackedSuper {
    static constexpr int kSubs = 8, kSplit = 1, kHigh = High, kOffset = 0;
    static constexpr bool kMin = true;
    uint16_t scale[kPanel];
    uint16_t min[kPanel];
    uint8_t subScale[kSubs][kPanel];
    uint8_t subMin[kSubs][kPanel];
    PackedCodes<High> codes[kSubs];
};
using PackedQ4K = PackedSuper<0>;
using PackedQ5K = PackedSuper<1>;
static_assert(sizeof(PackedQ4K) == 2368 && sizeof(PackedQ5K) == 2880);

struct PackedQ6K {
    static constexpr int kSubs = 8, kSplit = 2, kHigh = 2, kOffset = 32;
    static constexpr bool kMin = false;
    uint16_t scale[kPanel];
    int8_t subScale[kSubs][kSplit][kPanel];
    PackedCodes<2> codes[kSubs];
};
static_assert(sizeof(PackedQ6K) == 3360);

// Calls `body` with a null pointer of the block's type. REQUIRES: a quantised type.
template <typename Body>
void withBlock(DType type, Body body) {
    switch (type) {
        case DType::F32:
        case DType::F16:
        case DType::BF16:
            return;
        case DType::Q8_0:
            return body(static_cast<PackedQ8*>(nullptr));
        case DType::Q4_0:
            return body(static_cast<PackedQ4*>(nullptr));
        case DType::Q4_1:
            return body(static_cast<PackedQ41*>(nullptr));
        case DType::Q5_0:
            return body(static_cast<PackedQ5*>(nullptr));
        case DType::Q5_1:
            return body(static_cast<PackedQ51*>(nullptr));
        case DType::Q4_K:
            return body(static_cast<PackedQ4K*>(nullptr));
        case DType::Q5_K:
            return body(static_cast<PackedQ5K*>(nullptr));
        case DType::Q6_K:
            return body(static_cast<PackedQ6K*>(nullptr));
        case DType::MXFP4:
            return body(static_cast<PackedMx4*>(nullptr));
    }
}

const KernelSet& scalarKernels();
#ifdef COLIBRI_X86_KERNELS
// Functions of these tables may be called only on a processor with the instruction set.
const KernelSet& avx2Kernels();
const KernelSet& avx512Kernels();
const KernelSet& avx512VnniKernels();
#endif

}  // namespace colibri
