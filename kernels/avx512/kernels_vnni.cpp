// SPDX-License-Identifier: Apache-2.0
// The AVX-512 kernels compiled with VNNI, which needs one instruction for four products.
#include "kernels/avx512/dots.h"
#include "kernels/avx512/vec.h"
#include "kernels/simd/table.h"

#ifndef __AVX512VNNI__
#error "compile this file with -mavx512vnni"
#endif

namespace colibri {
namespace {

constexpr KernelSet kAvx512Vnni = tableOf<Vec512, Dots512>(Isa::Avx512);

}  // namespace

const KernelSet& avx512VnniKernels() {
    return kAvx512Vnni;
}

}  // namespace colibri
