// SPDX-License-Identifier: Apache-2.0
// Progress and cancellation of a long job (loading, converting).
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <string>

namespace colibri {

struct Progress {
    std::string stage;   // "Dense weights", "Experts, layer 12 of 24"
    uint64_t done = 0;   // in `unit`
    uint64_t total = 0;  // 0: unknown
    const char* unit = "bytes";
};

// Called on the thread of the job, at most about 30 times a second; must not block.
using ProgressFn = std::function<void(const Progress&)>;

// Set from any thread; the job checks it at least every 100 ms of work and ends with
// Code::Cancelled, leaving no incomplete files.
using CancelFlag = std::atomic<bool>;

}  // namespace colibri
