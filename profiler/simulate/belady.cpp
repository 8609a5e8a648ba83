// SPDX-License-Identifier: Apache-2.0
#include "profiler/simulate/belady.h"

#include <algorithm>
#include <queue>
#include <span>
#include <utility>

namespace colibri {
namespace {

constexpr uint32_t kNoFurtherUse = UINT32_MAX;

// The resident keys by next use. Entries of a key that was used or evicted since are outdated and
// dropped when they are found.
class ResidentKeys {
public:
    explicit ResidentKeys(size_t keys) : m_next(keys), m_resident(keys) {}

    bool contains(uint32_t key) const { return m_resident[key]; }
    int64_t size() const { return m_size; }
    void set(uint32_t key, uint32_t nextUse) {
        if (!m_resident[key]) ++m_size;
        m_resident[key] = true;
        m_next[key] = nextUse;
        m_heap.emplace_back(nextUse, key);
        std::push_heap(m_heap.begin(), m_heap.end());
        if (m_heap.size() > 4 * size_t(m_size) + 1024) dropOutdated();
    }
    // Evicts the key whose next use is furthest in the future. REQUIRES: size() > 0
    void evict() {
        while (true) {
            std::pop_heap(m_heap.begin(), m_heap.end());
            const auto [nextUse, key] = m_heap.back();
            m_heap.pop_back();
            if (!m_resident[key] || m_next[key] != nextUse) continue;
            m_resident[key] = false;
            --m_size;
            return;
        }
    }

private:
    void dropOutdated() {
        std::erase_if(m_heap, [this](const std::pair<uint32_t, uint32_t>& entry) {
            return !m_resident[entry.second] || m_next[entry.second] != entry.first;
        });
        std::sort(m_heap.begin(), m_heap.end());
        m_heap.erase(std::unique(m_heap.begin(), m_heap.end()), m_heap.end());
        std::make_heap(m_heap.begin(), m_heap.end());
    }

    std::vector<uint32_t> m_next;  // (keys) next use of a resident key
    std::vector<bool> m_resident;  // (keys)
    int64_t m_size = 0;
    std::vector<std::pair<uint32_t, uint32_t>> m_heap;  // (next use, key), furthest first
};

}  // namespace

Belady::Belady(const RoutingTrace& trace)
    : m_trace(trace),
      m_nextUse(trace.keys().size()),
      m_firstUse(size_t(trace.keyCount()), kNoFurtherUse) {
    size_t at = m_nextUse.size();
    for (size_t request = trace.requests(); request-- > 0;) {
        for (size_t i = trace.request(request).size(); i-- > 0;) {
            const uint32_t key = trace.keys()[--at];
            m_nextUse[at] = m_firstUse[key];
            m_firstUse[key] = uint32_t(request);
        }
    }
}

uint64_t Belady::replay(int64_t slotCount, const std::function<void(size_t, int64_t)>& take) const {
    ResidentKeys resident(m_firstUse.size());
    uint64_t misses = 0;
    size_t at = 0, nextPreload = 0;
    for (size_t request = 0; request < m_trace.requests(); ++request) {
        // A preloaded key's next use is only known from its first one.
        m_trace.preloadsBefore(request, nextPreload, [&](uint32_t key) {
            const uint32_t nextUse = m_firstUse[key];
            const bool used = nextUse < request;
            if (!used && resident.size() < slotCount && !resident.contains(key))
                resident.set(key, nextUse);
        });
        const std::span<const uint32_t> keys = m_trace.request(request);
        const auto missing = int64_t(std::count_if(
            keys.begin(), keys.end(), [&](uint32_t key) { return !resident.contains(key); }));
        // The keys of this request are resident until it ends, and their next use is now: they are
        // evicted only if nothing else is left, and that only if they do not fit.
        const bool fits = int64_t(keys.size()) <= slotCount;
        while (fits && resident.size() + missing > slotCount) resident.evict();
        for (const uint32_t key : keys) resident.set(key, m_nextUse[at++]);
        while (resident.size() > slotCount) resident.evict();
        misses += uint64_t(missing);
        if (take) take(request, missing);
    }
    return misses;
}

}  // namespace colibri
