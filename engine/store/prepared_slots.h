// SPDX-License-Identifier: Apache-2.0
// Slots whose memory the system has allocated before they are needed. The system allocates a page
// at its first touch; on a virtual machine that takes up to several milliseconds per 2 MiB, longer
// than the read of an expert. A thread of the store prepares slots in advance: as fast as possible
// while nothing is computed, otherwise for a small share of the time.
//
// Not thread-safe: the store calls it under its lock.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace colibri {

class PreparedSlots {
public:
    // `most`: the maximum number of slots that are ready at once.
    PreparedSlots(bool enabled, int64_t slotBytes, size_t most);

    // ---- slots ----
    bool enabled() const { return m_enabled; }
    int64_t ready() const { return int64_t(m_ready.size()); }
    // Including the one being prepared: their memory is allocated but not in use.
    int64_t held() const { return ready() + m_preparing; }
    std::byte* take();  // a ready slot; nullptr: none

    // ---- work ----
    // A slot is being prepared from now until endWork().
    void beginWork(uint64_t now);
    void endWork(uint64_t now);
    void add(std::byte* slot, uint64_t tookNs);
    // There is no memory for more slots until the cache size is set again.
    void setFull(bool full) { m_full = full; }
    bool full() const { return m_full; }
    // While tokens are computed, no slot is prepared before this time.
    uint64_t restUntilNs() const { return m_restUntilNs; }
    // The phase has ended. Returns a note about it; "" if it was too short to notice.
    std::string endPhase(uint64_t now);

    // ---- cost and benefit ----
    // A demand read into memory that had been touched before took `tookNs`.
    void addRead(uint64_t tookNs);
    bool measured() const { return m_touchNs > 0; }
    // Whether evicting a record that was last used `age` steps ago is better than touching new
    // memory. Such a record would be read again about once in `age` steps, which keeping it saves;
    // the touch costs its time once.
    bool evictionPays(int64_t age) const;

private:
    const bool m_enabled;
    const int64_t m_slotBytes;
    std::vector<std::byte*> m_ready;
    int64_t m_preparing = 0;  // 1: a slot is being prepared
    bool m_full = false;
    uint64_t m_workFromNs = 0, m_restUntilNs = 0;
    uint64_t m_phaseFromNs = 0;  // 0: no phase
    int64_t m_phaseSlots = 0;
    int64_t m_touchNs = 0;  // mean time to prepare a slot
    int64_t m_readNs = 0;   // mean time of a demand read into touched memory
};

}  // namespace colibri
