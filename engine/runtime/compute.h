// SPDX-License-Identifier: Apache-2.0
// Kernels that run on the thread pool: the few kinds of parallel work in the forward pass.
#pragma once

#include <cstdint>
#include <functional>
#include <span>

#include "engine/base/buffer.h"
#include "engine/runtime/thread_pool.h"
#include "engine/runtime/weights.h"
#include "kernels/kernels.h"

namespace colibri {

struct MatmulJob {
    const Matrix* weights;
    const std::byte* input;  // from Compute::prepare for weights->type
    int64_t rows;
    float* out;  // (rows, weights->rows)
};

struct FfnScratch {
    ScratchBuffer input, inner, up, innerInput;
    int64_t bytes() const {
        return input.bytes() + inner.bytes() + up.bytes() + innerInput.bytes();
    }
};

// The activation between the matrices of an FFN that the fused kernel (silu, no biases) cannot do.
struct GluSpec {
    Activation activation = Activation::Silu;
    float limit = 0, alpha = 0;  // ClampedSwiglu
};
// gate[i] = activation(gate[i] + gateBias[i], up[i] + upBias[i]); biases may be nullptr.
void applyGlu(const GluSpec& spec, const float* gateBias, const float* upBias, int64_t n,
              float* gate, const float* up);

class Compute {
public:
    Compute(ThreadPool& pool, const KernelSet& kernels) : m_pool(pool), m_kernels(kernels) {}

    const KernelSet& kernels() const { return m_kernels; }
    ThreadPool& pool() const { return m_pool; }

    // Activation rows x (rows, cols) in the form that weights of `type` need: in `buffer`, or x
    // itself if the form is the same.
    const std::byte* prepare(DType type, const float* x, int64_t rows, int64_t cols,
                             ScratchBuffer& buffer) const;
    // All jobs in one parallel region over their panels.
    void matmuls(std::span<const MatmulJob> jobs) const;
    // REQUIRES: gate and up take their input in the same form.
    void gateUp(const Matrix& gate, const Matrix& up, const std::byte* input, int64_t rows,
                float* out) const;
    // out (rows, H) = down(silu(gate x) * up x) for x (rows, H).
    void ffn(const FfnWeights& w, const float* x, int64_t rows, FfnScratch& scratch,
             float* out) const;
    // A matrix with one block of rows per head, each with its own input: head h of row
    // r reads weights.cols floats at x + r * rowStride + h * headStride. out (rows, weights.rows).
    // A block is a whole number of panels.
    void perHead(const Matrix& weights, int64_t heads, const float* x, int64_t rowStride,
                 int64_t headStride, int64_t rows, ScratchBuffer& buffer, float* out) const;
    // One row of n values; out may be x.
    void norm(const Norm& norm, float eps, const float* x, int64_t n, float* out) const;
    // The next region runs matmuls over these: idle workers prefetch their first bytes.
    void warm(std::span<const Matrix* const> next) const;
    // body(row) for every row; in parallel when there are several.
    void forRows(int64_t rows, const std::function<void(int64_t)>& body) const;

private:
    ThreadPool& m_pool;
    const KernelSet& m_kernels;
};

}  // namespace colibri
