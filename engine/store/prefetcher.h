// SPDX-License-Identifier: Apache-2.0
// Chooses what to prefetch: keeps the hints for coming layers, and picks the next expert to read
// while the disk and the link are idle.
//
// Not thread-safe: the store calls it under its lock, from its prefetch threads among others.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "engine/store/expert_reads.h"
#include "engine/store/prefetch_judge.h"
#include "engine/store/slot_table.h"
#include "engine/store/store_conditions.h"

namespace colibri {

class Prefetcher {
public:
    struct Parts {
        const StoreShape& shape;
        SlotTable& table;
        ExpertReads& reads;
        PrefetchJudge& judge;
        StoreConditions& conditions;
    };
    Prefetcher(const Parts& parts, const StoreOptions& options);

    // Replaces the hints for that layer; most likely expert first. Ignores them while prefetching
    // is off or paused.
    void hint(int64_t moeLayer, std::span<const uint16_t> experts, uint64_t now);
    // The layer is requested: discards the hints for it and for the layers skipped.
    void passLayers(int64_t moeLayer);
    // The next expert to read, with a slot and ready for ExpertReads::beginPrefetch(); -1: none
    // now.
    int64_t next(uint64_t now);

    void set(PrefetchSource source, int64_t depth);
    void setThreads(int64_t threads);
    int64_t threads() const { return m_threads; }
    KnobState sourceState() const;  // off while paused, with the reason

    // Wakes the prefetch threads if there may be work.
    void wake();
    // Wakes them always. All have checked once each has seen this number; see look().
    uint64_t wakeAll();
    uint64_t wakes() const { return m_wakes; }

private:
    bool on() const { return m_source != PrefetchSource::Off && m_depth > 0 && m_threads > 0; }
    bool mayRead(uint64_t now) const;
    void clear(int64_t moeLayer);
    void clearAll();
    void take(uint32_t key, const Slot& slot);

    const Parts m_parts;
    PrefetchSource m_source;
    int64_t m_depth, m_threads;
    std::vector<std::vector<uint32_t>> m_hints;  // (MoE layers) keys, most likely last
    std::vector<uint64_t> m_hintNs;              // (MoE layers) time of the last hint
    int64_t m_hinted = 0;                        // keys in m_hints
    uint64_t m_wakes = 0;
};

}  // namespace colibri
