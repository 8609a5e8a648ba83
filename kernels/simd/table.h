// SPDX-License-Identifier: Apache-2.0
// Private: the kernel table for a vector class V and its integer dot products D.
#pragma once

#include "kernels/simd/attention.h"
#include "kernels/simd/encode.h"
#include "kernels/simd/lookup.h"
#include "kernels/simd/matmul.h"

namespace colibri {
namespace {

template <typename V, typename D>
constexpr KernelSet tableOf(Isa isa) {
    return {
        .isa = isa,
        .prepareInput = RowOps<V>::prepareInput,
        .matmul = MatmulOps<V, D>::matmul,
        .gateUp = MatmulOps<V, D>::gateUp,
        .rmsNorm = RowOps<V>::rmsNorm,
        .rope = RowOps<V>::rope,
        .softmax = RowOps<V>::softmax,
        .attention = attentionOf<V>,
        .axpy = RowOps<V>::axpy,
        .dot = RowOps<V>::dot,
        .tableLookup = tableLookup,
        .toF16 = RowOps<V>::toF16,
        .fromF16 = RowOps<V>::fromF16,
        .encode = Encoder<V>::encode,
    };
}

}  // namespace
}  // namespace colibri
