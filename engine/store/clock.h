// SPDX-License-Identifier: Apache-2.0
// The store's clock: real in the product, moved by hand in tests.
#pragma once

#include <chrono>
#include <cstdint>

#include "engine/base/mutex.h"
#include "engine/telemetry/telemetry.h"

namespace colibri {

class StoreClock {
public:
    virtual ~StoreClock() = default;
    virtual uint64_t now() { return monotonicNs(); }
    // Waits on `condition` until notified or until `timeNs`, whichever is first.
    virtual void waitUntil(Condition& condition, Mutex& mutex, uint64_t timeNs) REQUIRES(mutex) {
        const uint64_t from = now();
        if (timeNs > from) condition.waitFor(mutex, std::chrono::nanoseconds(timeNs - from));
    }
};

}  // namespace colibri
