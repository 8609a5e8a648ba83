// SPDX-License-Identifier: Apache-2.0
// Keeps a job's progress calls to about 30 a second; the last one of a stage always goes through.
#pragma once

#include <chrono>
#include <utility>

#include "engine/base/progress.h"

namespace colibri {

class ProgressGate {
public:
    explicit ProgressGate(const ProgressFn& fn) : m_fn(fn) {}

    void report(const std::string& stage, uint64_t done, uint64_t total, bool always = false) {
        if (!m_fn) return;
        auto now = std::chrono::steady_clock::now();
        if (!always && done < total && now - m_last < std::chrono::milliseconds(33)) return;
        m_last = now;
        m_fn({stage, done, total});
    }

private:
    const ProgressFn& m_fn;  // borrowed; outlives the gate
    std::chrono::steady_clock::time_point m_last{};
};

inline bool cancelled(const CancelFlag* cancel) {
    return cancel && cancel->load(std::memory_order_relaxed);
}

}  // namespace colibri
