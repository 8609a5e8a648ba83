// SPDX-License-Identifier: Apache-2.0
// The store's clock: real in the product, moved by hand in tests.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <mutex>

#include "engine/telemetry/telemetry.h"

namespace colibri {

class Clock {
public:
    virtual ~Clock() = default;
    virtual uint64_t now() { return monotonicNs(); }
    // Waits on `cv` until notified or until `timeNs`, whichever is first.
    virtual void waitUntil(std::condition_variable& cv, std::unique_lock<std::mutex>& lock,
                           uint64_t timeNs) {
        const uint64_t from = now();
        if (timeNs > from) cv.wait_for(lock, std::chrono::nanoseconds(timeNs - from));
    }
};

}  // namespace colibri
