// SPDX-License-Identifier: Apache-2.0
#include "kernels/avx2/dots.h"
#include "kernels/avx2/vec.h"
#include "kernels/simd/table.h"

namespace colibri {
namespace {

constexpr KernelSet kAvx2 = tableOf<Vec256, Dots256>(Isa::Avx2);

}  // namespace

const KernelSet& avx2Kernels() {
    return kAvx2;
}

}  // namespace colibri
