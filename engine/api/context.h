// SPDX-License-Identifier: Apache-2.0
// The implementation of colibri_context_t: an engine and its running dispatches. Every function
// may be called from any thread; close() comes last.
#pragma once

#include <atomic>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <span>
#include <string_view>

#include "engine/base/progress.h"
#include "engine/include/colibri.h"
#include "engine/runtime/engine.h"

struct colibri_context {
public:
    static colibri::Result<std::unique_ptr<colibri_context>> open(const colibri_config_t& config);
    // Cancels running dispatches and waits until all have returned.
    void close();

    // Scores `ids` into out (ids, vocab). REQUIRES: both are host memory of that size.
    colibri::Status dispatch(std::span<const int32_t> ids, float* out);
    colibri::Status setKnob(std::string_view name, const std::string& value);
    colibri::Status bindPrefetchThread(int thread, int core);  // core -1: any
    // None: no such knob.
    std::optional<colibri::KnobState> knob(std::string_view name) const;

    const colibri::Engine& engine() const { return *m_engine; }
    uint64_t dispatches() const { return m_dispatches.load(std::memory_order_relaxed); }

private:
    std::unique_ptr<colibri::Engine> m_engine;
    std::atomic<uint64_t> m_dispatches{0};
    std::mutex m_mutex;  // guards the following
    std::condition_variable m_idle;
    int m_running = 0;                     // dispatches
    colibri::CancelFlag m_closing{false};  // set under the mutex
};
