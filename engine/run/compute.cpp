// SPDX-License-Identifier: Apache-2.0
#include "engine/run/compute.h"

#include <algorithm>

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
