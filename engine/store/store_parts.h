// SPDX-License-Identifier: Apache-2.0
// The parts of an expert store that tests replace.
#pragma once

#include <memory>

#include "engine/store/clock.h"
#include "engine/store/numa.h"
#include "engine/store/read_queue.h"
#include "engine/store/slot_memory.h"
#include "engine/store/store_options.h"

namespace colibri {

struct StoreParts {
    std::unique_ptr<ReadQueue> queue;
    bool directWorks = true;  // of the queue's reader
    std::unique_ptr<SlotMemory> memory;
    std::unique_ptr<Numa> numa;
    std::unique_ptr<StoreClock> clock;
};

}  // namespace colibri
