// SPDX-License-Identifier: Apache-2.0
// The conditions that the store's threads wait for. All belong to the store's mutex.
#pragma once

#include <cstdint>

#include "engine/base/mutex.h"

namespace colibri {

struct StoreConditions {
    Condition readEnded;         // wait(), settle(): a read ended, or a slot changed owner
    Condition linkChanged;       // the link thread and prefetches on the link
    Condition prefetchMayBegin;  // prefetch threads
    Condition prepareSlots;      // the thread that prepares memory
    Condition moveSlots;         // the thread that moves slots

    int64_t readWaiters = 0;  // threads that wait for readEnded
    void tellReadEnded() {
        if (readWaiters > 0) readEnded.notifyAll();
    }
    void waitForRead(Mutex& mutex) REQUIRES(mutex) {
        ++readWaiters;
        readEnded.wait(mutex);
        --readWaiters;
    }
};

}  // namespace colibri
