// SPDX-License-Identifier: Apache-2.0
// One expert cache of one size that is filled ahead of need.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "engine/knobs/knobs.h"
#include "engine/store/layer_steps.h"
#include "engine/store/policy.h"
#include "engine/store/prefetch_judge.h"

namespace colibri {

// Follows the store: a prefetched expert keeps its slot until its layer is requested. Then it is a
// hit, or becomes the coldest one. It takes a free slot, or the slot of an expert in the colder
// half of the policy whose layer comes later (SlotTable::slotForPrefetch). Prefetches without an
// outcome hold at most a quarter of the slots, and pause while most are wasted (PrefetchJudge).
//
// The caller says how many reads fit between two requests. The simulation does not delay demand
// reads by prefetches.
//
// Not thread-safe.
class PrefetchReplay {
public:
    PrefetchReplay(CachePolicyKind policy, PrefetchSource source, int64_t moeLayers,
                   int64_t experts, int64_t slotCount);

    // A request of distinct keys of one layer, in order of first use. Returns the misses.
    int64_t request(int64_t moeLayer, std::span<const uint32_t> keys);
    // Hints for a coming layer, most likely key first. Reads at most `reads` of them and returns
    // how many it read; `readNs`: what a read takes.
    int64_t prefetch(std::span<const uint32_t> hints, int64_t reads, uint64_t readNs);
    // A prefetch that had begun `aheadNs` before its expert was requested, but had not ended: a
    // miss.
    void late(uint64_t aheadNs);

    uint64_t lookups() const { return m_lookups; }
    uint64_t misses() const { return m_misses; }
    uint64_t prefetched() const { return m_prefetched; }  // hits because of a prefetch
    uint64_t reads() const { return m_reads; }            // prefetches
    bool contains(uint32_t key) const { return m_waits[key] || m_policy->contains(key); }

private:
    int64_t layerOf(uint32_t key) const { return int64_t(key) / m_experts; }
    void find(std::span<const uint32_t> keys);
    void releaseLayer(int64_t moeLayer);
    void giveSlot(uint32_t key);
    bool slotForPrefetch(int64_t moeLayer);
    void evict(uint32_t key);
    int64_t used() const { return m_policy->size() + int64_t(m_untilLayer.size()); }

    std::unique_ptr<CachePolicy> m_policy;
    PrefetchJudge m_judge;
    LayerSteps m_steps;
    PrefetchSource m_source;
    int64_t m_experts, m_slotCount;
    uint64_t m_readNs = 0;
    uint64_t m_lookups = 0, m_misses = 0, m_prefetched = 0, m_reads = 0;
    std::vector<uint8_t> m_held;         // (keys)
    std::vector<uint8_t> m_waits;        // (keys) prefetched, its layer is still to come
    std::vector<uint8_t> m_unused;       // (keys) prefetched, without an outcome
    std::vector<uint32_t> m_untilLayer;  // those that wait, oldest first
};

}  // namespace colibri
