// SPDX-License-Identifier: Apache-2.0
// One expert cache of one size, replayed with the engine's own replacement policy.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "engine/store/policy.h"

namespace colibri {

// Follows ExpertStore::request: all experts of a request are looked up and held first; then, in the
// same order, each missing one gets a slot (a free one, or that of the coldest expert that is not
// held) and each resident one is touched. Reads are assumed to end in order, before the next layer
// is requested; prefetching is off.
//
// A request of more experts than there are slots follows MoeStage: resident experts come first, and
// further experts are requested as slots become free.
//
// Not thread-safe.
class PolicyReplay {
public:
    PolicyReplay(CachePolicyKind policy, int64_t keys, int64_t slotCount);

    // An expert is preloaded: takes a free slot as the coldest, or is ignored if there is none.
    void preload(uint32_t key);
    // A request of distinct keys, in order of first use. Returns the number of misses.
    int64_t request(std::span<const uint32_t> keys);

    uint64_t lookups() const { return m_lookups; }
    uint64_t misses() const { return m_misses; }
    bool contains(uint32_t key) const { return m_policy->contains(key); }

private:
    int64_t lookUp(std::span<const uint32_t> keys);
    int64_t askInTurns(std::span<const uint32_t> keys);
    void release(std::span<const uint32_t> keys);
    void giveSlot(uint32_t key);

    std::unique_ptr<CachePolicy> m_policy;
    int64_t m_slotCount;
    uint64_t m_lookups = 0, m_misses = 0;
    std::vector<uint8_t> m_held;    // (keys)
    std::vector<uint32_t> m_order;  // of a request in turns
};

}  // namespace colibri
