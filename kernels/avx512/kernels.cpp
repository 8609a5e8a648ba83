// SPDX-License-Identifier: Apache-2.0
#include "kernels/avx512/dots.h"
#include "kernels/avx512/vec.h"
#include "kernels/simd/table.h"

namespace colibri {
namespace {

constexpr KernelSet kAvx512 = tableOf<Vec512, Dots512>(Isa::Avx512);

}  // namespace

const KernelSet& avx512Kernels() {
    return kAvx512;
}

}  // namespace colibri
