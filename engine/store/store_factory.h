// SPDX-License-Identifier: Apache-2.0
// Builds a store from its parts, and gives tests access to its internals.
#pragma once

#include <memory>
#include <vector>

#include "engine/store/expert_store.h"
#include "engine/store/store_parts.h"

namespace colibri {

struct StoreFactory {
    // Parts that are nullptr are replaced by the real ones; `queue` is required.
    static Result<std::unique_ptr<ExpertStore>> open(StoreShape shape, const StoreOptions& options,
                                                     Telemetry* telemetry, StoreParts parts);
    static StoreShape shapeOf(const ContainerInfo& info);
    // Waits until no read is in flight and no prefetch can start.
    static void settle(ExpertStore& store);
    // Experts in order of eviction, coldest first: moeLayer * experts + expert.
    static std::vector<uint32_t> order(const ExpertStore& store);
};

}  // namespace colibri
