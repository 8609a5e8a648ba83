// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace colibri {

// LRU stack distances (Mattson et al., 1970): the number of distinct other keys used since the last
// use of a key. A settled LRU cache of n slots holds a key if and only if its distance is below n,
// so one pass over the uses gives the misses for every cache size. O(log keys) per use.
class StackDistances {
public:
    static constexpr uint32_t kNever = UINT32_MAX;  // the distance of a first use

    explicit StackDistances(size_t keys);
    // Records a use and returns the key's distance before it. REQUIRES: key < keys.
    uint32_t use(size_t key);
    // The key's distance now, without a use.
    uint32_t distance(size_t key) const;
    // Makes a key that was never used the coldest one, as a preloaded expert is. Ignores others.
    void addColdest(size_t key);
    uint32_t distinct() const { return m_marks; }  // keys used so far

private:
    void mark(size_t time, int by);
    uint32_t markedUpTo(size_t time) const;  // marks at times 1..time
    void renumber();

    // Each key has a mark at the time of its last use, so its distance is the number of marks after
    // that time. Uses get times above the number of keys, the coldest keys times below; 0 means
    // never. A Fenwick tree counts the marks.
    std::vector<size_t> m_lastUse;  // by key
    std::vector<int> m_tree;        // by time
    size_t m_now = 0;               // of the newest use
    size_t m_coldest = 0;           // the next time of a coldest key
    uint32_t m_marks = 0;
};

}  // namespace colibri
