// SPDX-License-Identifier: Apache-2.0
// Replacement policies over all (MoE layer, expert) keys. A policy only keeps records in order,
// coldest first; the caller decides during a scan which of them may be evicted (not pinned, not
// being read).
//
// All policies are a few intrusive lists in one flat array, so every operation is O(1) and a scan
// touches only the records it visits. Not thread-safe: the store calls them under its lock.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "engine/knobs/knobs.h"

namespace colibri {

class CachePolicy {
public:
    virtual ~CachePolicy() = default;

    // The key became resident (or is about to: its slot is taken) because it is needed now.
    virtual void insert(uint32_t key) = 0;
    // The key is resident but was not requested: it is evicted first.
    virtual void insertCold(uint32_t key) { pushCold(0, key); }
    // The key was looked up and is in the policy.
    virtual void touch(uint32_t key) = 0;
    // The number of slots of the cache; partitions adapt.
    virtual void setSlots(int64_t slotCount) = 0;
    // Takes over the records of another policy in their order.
    virtual void adopt(std::span<const uint32_t> coldToHot) = 0;

    void remove(uint32_t key) { unlink(key); }
    bool contains(uint32_t key) const { return m_where[key] != kNowhere; }
    int64_t size() const { return m_size; }
    std::vector<uint32_t> order() const;  // coldest first

    // Visits at most `limit` records, coldest first, until `accept(key)` is true.
    // Returns that key, or -1.
    template <typename Accept>
    int64_t coldest(int64_t limit, Accept accept) const {
        for (const List& list : m_lists) {
            for (uint32_t key = list.cold; key != kEnd; key = m_links[key].hotter) {
                if (limit-- <= 0) return -1;
                if (accept(key)) return key;
            }
        }
        return -1;
    }

protected:
    CachePolicy(int64_t keys, int lists);

    static constexpr uint32_t kEnd = UINT32_MAX;
    static constexpr uint8_t kNowhere = UINT8_MAX;
    struct List {
        uint32_t cold = kEnd, hot = kEnd;
        int64_t size = 0;
    };
    struct Link {
        uint32_t colder = kEnd, hotter = kEnd;
    };

    void pushHot(int list, uint32_t key);
    void pushCold(int list, uint32_t key);
    void unlink(uint32_t key);
    // Moves the coldest of `from` to the hot end of `to`. REQUIRES: `from` is not empty
    uint32_t demote(int from, int to);

    std::vector<List> m_lists;     // in order, coldest list first
    std::vector<uint8_t> m_where;  // (keys) index of the key's list
    std::vector<Link> m_links;     // (keys)
    int64_t m_size = 0;
};

// lru:  one list by last use.
// slru: records used once (probation) are evicted before records used again (protected, half the
//       slotCount).
// lfru: the most recently used half is ordered by recency; the records below it by number of uses,
//       least often used first (counts survive eviction and are halved from time to time).
std::unique_ptr<CachePolicy> makePolicy(CachePolicyKind kind, int64_t keys, int64_t slotCount);

}  // namespace colibri
