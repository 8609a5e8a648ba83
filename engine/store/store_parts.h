// SPDX-License-Identifier: Apache-2.0
// How a store is put together from its parts, and what tests may ask of its inside.
#pragma once

#include <memory>
#include <vector>

#include "engine/store/clock.h"
#include "engine/store/expert_store.h"
#include "engine/store/numa.h"
#include "engine/store/read_queue.h"
#include "engine/store/slot_memory.h"

namespace colibri {

// Parts of a store that tests replace.
struct StoreParts {
    std::unique_ptr<ReadQueue> queue;
    bool directWorks = true;  // of the queue's reader
    std::unique_ptr<SlotMemory> memory;
    std::unique_ptr<Numa> numa;
    std::unique_ptr<Clock> clock;
};

struct StoreFactory {
    static Result<std::unique_ptr<ExpertStore>> open(StoreShape shape, const StoreOptions& options,
                                                     Telemetry* telemetry, StoreParts parts);
    static StoreShape shapeOf(const ContainerInfo& info);
    // Waits until no read is under way and no prefetch can start.
    static void settle(ExpertStore& store);
    // Records in the policy's order, coldest first: moeLayer * experts + expert.
    static std::vector<uint32_t> order(const ExpertStore& store);
};

}  // namespace colibri
