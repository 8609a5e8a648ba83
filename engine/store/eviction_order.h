// SPDX-License-Identifier: Apache-2.0
// The order in which resident experts are evicted.
//
// A requested expert enters the order when it gets its slot, in request order, so that evictions do
// not depend on the duration of reads. A prefetched expert keeps its slot outside the order until
// its layer is requested.
//
// Not thread-safe: the store calls it under its lock.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "engine/store/expert_entry.h"
#include "engine/store/policy.h"
#include "engine/store/reader.h"

namespace colibri {

class EvictionOrder {
public:
    // `shape` and `entries` (MoE layers * E) must outlive the order.
    EvictionOrder(const StoreShape& shape, std::vector<ExpertEntry>& entries,
                  CachePolicyKind policy);

    void setPolicy(CachePolicyKind policy);
    void setSlots(int64_t slots);  // the number of slots of the cache

    void use(uint32_t key);               // it has a slot and was requested
    void addColdest(uint32_t key);        // it was read, and nothing needs it
    void keepUntilLayer(uint32_t key);    // a prefetch was read before its layer is requested
    void endKeep(uint32_t key);           // that prefetch is requested
    void releaseLayer(int64_t moeLayer);  // prefetches that were not requested: evicted first
    void remove(uint32_t key);            // its slot is taken

    // The expert to evict first; -1: all are held.
    int64_t next() const;
    // The experts in the order, for scans by other rules.
    const CachePolicy& policy() const { return *m_policy; }

private:
    const StoreShape& m_shape;
    std::vector<ExpertEntry>& m_entries;
    CachePolicyKind m_kind;
    int64_t m_slots = 0;
    std::unique_ptr<CachePolicy> m_policy;
    std::vector<uint32_t> m_untilLayer;  // Order::UntilLayer, oldest first
};

}  // namespace colibri
