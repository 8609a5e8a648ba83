// SPDX-License-Identifier: Apache-2.0
#include "engine/runtime/compute.h"

#include <algorithm>
#include <cmath>

namespace colibri {

const std::byte* Compute::prepare(DType type, const float* x, int64_t rows, int64_t cols,
                                  ScratchBuffer& buffer) const {
    if (!usesQuantisedInput(type) && paddedCols(cols) == cols) {
        return reinterpret_cast<const std::byte*>(x);
    }
    const int64_t rowBytes = inputRowBytes(type, cols);
    auto* out = buffer.as<std::byte>(rows * rowBytes);
    const auto run = [&](int64_t begin, int64_t end) {
        m_kernels.prepareInput(type, x + begin * cols, cols, end - begin, cols,
                               out + begin * rowBytes);
    };
    if (rows < 8) {
        run(0, rows);
    } else {
        m_pool.parallelFor(rows, 4, run);
    }
    return out;
}

void Compute::matmuls(std::span<const MatmulJob> jobs) const {
    int64_t total = 0;
    for (const MatmulJob& j : jobs) total += j.weights->panels();
    m_pool.parallelFor(total, 1, [&](int64_t begin, int64_t end) {
        int64_t base = 0;
        for (const MatmulJob& j : jobs) {
            const int64_t panels = j.weights->panels();
            const int64_t first = std::max<int64_t>(begin - base, 0);
            const int64_t last = std::min(end - base, panels);
            if (first < last) {
                m_kernels.matmul(j.weights->type, j.weights->data, j.weights->rows, j.weights->cols,
                                 first, last, j.input, j.rows, j.out, j.weights->rows);
            }
            base += panels;
        }
    });
}

void Compute::gateUp(const Matrix& gate, const Matrix& up, const std::byte* input, int64_t rows,
                     float* out) const {
    m_pool.parallelFor(gate.panels(), 1, [&](int64_t begin, int64_t end) {
        m_kernels.gateUp(gate.type, gate.data, up.type, up.data, gate.rows, gate.cols, begin, end,
                         input, rows, out, gate.rows);
    });
}

void applyGlu(const GluSpec& spec, const float* gateBias, const float* upBias, int64_t n,
              float* gate, const float* up) {
    for (int64_t i = 0; i < n; ++i) {
        float g = gate[i], u = up[i];
        if (gateBias) {
            g += gateBias[i];
            u += upBias[i];
        }
        if (spec.activation == Activation::Silu) {
            gate[i] = g / (1.0f + std::exp(-g)) * u;
        } else {
            g = std::min(g, spec.limit);
            u = std::clamp(u, -spec.limit, spec.limit);
            gate[i] = (u + 1.0f) * g / (1.0f + std::exp(-spec.alpha * g));
        }
    }
}

void Compute::ffn(const FfnWeights& w, const float* x, int64_t rows, FfnScratch& scratch,
                  float* out) const {
    const int64_t hidden = w.gate.cols, inner = w.gate.rows;
    auto* h = scratch.inner.as<float>(rows * inner);
    const std::byte* input = prepare(w.gate.type, x, rows, hidden, scratch.input);
    if (w.gateBias) {
        auto* up = scratch.up.as<float>(rows * inner);
        const MatmulJob jobs[2] = {{&w.gate, input, rows, h}, {&w.up, input, rows, up}};
        matmuls(jobs);
        forRows(rows, [&](int64_t r) {
            applyGlu({}, w.gateBias, w.upBias, inner, h + r * inner, up + r * inner);
        });
    } else {
        gateUp(w.gate, w.up, input, rows, h);
    }
    const MatmulJob down{&w.down, prepare(w.down.type, h, rows, inner, scratch.innerInput), rows,
                         out};
    matmuls({&down, 1});
    if (!w.downBias) return;
    for (int64_t r = 0; r < rows; ++r) m_kernels.axpy(out + r * hidden, 1.0f, w.downBias, hidden);
}

void Compute::perHead(const Matrix& weights, int64_t heads, const float* x, int64_t rowStride,
                      int64_t headStride, int64_t rows, ScratchBuffer& buffer, float* out) const {
    const int64_t headBytes = rows * inputRowBytes(weights.type, weights.cols);
    auto* inputs = buffer.as<std::byte>(heads * headBytes);
    forRows(heads, [&](int64_t h) {
        m_kernels.prepareInput(weights.type, x + h * headStride, rowStride, rows, weights.cols,
                               inputs + h * headBytes);
    });
    const int64_t perHead = weights.panels() / heads;
    m_pool.parallelFor(weights.panels(), 1, [&](int64_t begin, int64_t end) {
        while (begin < end) {
            const int64_t head = begin / perHead, last = std::min(end, (head + 1) * perHead);
            m_kernels.matmul(weights.type, weights.data, weights.rows, weights.cols, begin, last,
                             inputs + head * headBytes, rows, out, weights.rows);
            begin = last;
        }
    });
}

void Compute::norm(const Norm& norm, float eps, const float* x, int64_t n, float* out) const {
    if (!norm.bias) {
        m_kernels.rmsNorm(x, norm.weight, n, eps, out);
        return;
    }
    double mean = 0, squares = 0;
    for (int64_t i = 0; i < n; ++i) mean += double(x[i]);
    mean /= double(n);
    for (int64_t i = 0; i < n; ++i) squares += (double(x[i]) - mean) * (double(x[i]) - mean);
    const auto inverse = float(1 / std::sqrt(squares / double(n) + double(eps)));
    for (int64_t i = 0; i < n; ++i) {
        out[i] = (x[i] - float(mean)) * inverse * norm.weight[i] + norm.bias[i];
    }
}

void Compute::warm(std::span<const Matrix* const> next) const {
    int64_t total = 0;
    for (const Matrix* m : next) total += m->panels();
    for (int thread = 1; thread < m_pool.threads(); ++thread) {
        int64_t panel = m_pool.chunkBegin(total, 1, thread);
        for (const Matrix* m : next) {
            if (panel < m->panels()) {
                m_pool.warm(thread, m->data + panel * panelBytes(m->type, m->cols));
                break;
            }
            panel -= m->panels();
        }
    }
    m_pool.warmed();
}

void Compute::forRows(int64_t rows, const std::function<void(int64_t)>& body) const {
    if (rows == 1) {
        body(0);
        return;
    }
    m_pool.parallelFor(rows, 1, [&](int64_t begin, int64_t end) {
        for (int64_t r = begin; r < end; ++r) body(r);
    });
}

}  // namespace colibri
