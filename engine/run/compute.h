// SPDX-License-Identifier: Apache-2.0
// Kernels spread over the thread pool: the few shapes of parallel work the forward pass has.
#pragma once

#include <cstdint>
#include <functional>
#include <span>

#include "engine/run/buffer.h"
#include "engine/run/thread_pool.h"
#include "engine/run/weights.h"
#include "kernels/kernels.h"

namespace colibri {

struct MatmulJob {
    const Matrix* weights;
    const std::byte* input;  // from Compute::prepare for weights->type
    int64_t rows;
    float* out;  // (rows, weights->rows)
};

class Compute {
public:
    Compute(ThreadPool& pool, const KernelSet& kernels) : m_pool(pool), m_kernels(kernels) {}

    const KernelSet& kernels() const { return m_kernels; }
    ThreadPool& pool() const { return m_pool; }

    // Activation rows x (rows, cols) in the form that weights of `type` need; in `buffer`, or x
    // itself where the form is the same.
    const std::byte* prepare(DType type, const float* x, int64_t rows, int64_t cols,
                             ScratchBuffer& buffer) const;
    // All jobs in one parallel region over their panels.
    void matmuls(std::span<const MatmulJob> jobs) const;
    // REQUIRES: gate and up take their input in the same form.
    void gateUp(const Matrix& gate, const Matrix& up, const std::byte* input, int64_t rows,
                float* out) const;
    // The next region will be matmuls over these: idle workers fetch their beginnings.
    void warm(std::span<const Matrix* const> next) const;
    // body(row) for every row; in parallel when there are several.
    void forRows(int64_t rows, const std::function<void(int64_t)>& body) const;

private:
    ThreadPool& m_pool;
    const KernelSet& m_kernels;
};

}  // namespace colibri
