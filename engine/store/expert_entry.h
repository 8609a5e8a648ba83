// SPDX-License-Identifier: Apache-2.0
// The state of one expert of one MoE layer, as the parts of the store share it.
//
// An expert goes OnDisk -> [NeedsSlot ->] Queued -> Reading -> Resident -> OnDisk.
#pragma once

#include <cstddef>
#include <cstdint>

#include "engine/knobs/knobs.h"
#include "engine/store/link.h"
#include "engine/telemetry/telemetry.h"

namespace colibri {

enum class ExpertState : uint8_t { OnDisk, NeedsSlot, Queued, Reading, Resident, Failed };

struct ExpertEntry {
    enum class Order : uint8_t { None, Policy, UntilLayer };  // see EvictionOrder
    static constexpr uint8_t kNoLane = UINT8_MAX;

    ExpertState state = ExpertState::OnDisk;
    Order order = Order::None;
    ReadReason reason = ReadReason::Demand;       // what started the read
    PrefetchSource source = PrefetchSource::Off;  // the source of a prefetch
    bool unused = false;                          // a prefetch that was not requested yet
    bool requestedLate = false;                   // a prefetch that was requested while being read
    bool demanded = false;                        // being read, and requested
    bool retried = false;
    bool fresh = false;              // last read into memory that had not been touched before
    bool waitsForSlot = false;       // in the list of experts that need a slot
    bool prefetchOnDisk = false;     // a prefetch, not requested, is being read from the disk
    bool ledReads = false;           // a demand read that began while no other was in flight
    uint32_t tickets = 0, pins = 0;  // evictable only if both are 0
    uint32_t waiting = 0;            // threads in wait()
    uint32_t uses = 0;               // lookups since it became resident
    uint32_t prefetchStep = 0;       // requests of its layer when the prefetch began
    uint32_t usedStep = 0;           // requests of its layer at its last use
    uint32_t neededStep = 0;         // the step that requested it while it was not resident
    uint8_t lane = kNoLane;          // of a read that the read queue has
    LinkLimiter::Transfer transfer = 0;
    std::byte* memory = nullptr;  // its slot
    uint64_t ticketNumber = 0;    // of its oldest ticket
    uint64_t requestedNs = 0;     // first requested, or prefetch hinted
    uint64_t submittedNs = 0;     // start of the current read
    uint64_t diskEndNs = 0;       // the disk has read it; the link may still carry it
    uint64_t diskTimeNs = 0;      // PrefetchJudge::diskTime() when a demand read began
    uint64_t residentNs = 0;

    bool held() const { return tickets + pins > 0; }
    bool evictable() const { return state == ExpertState::Resident && !held(); }
    bool usable() const { return state == ExpertState::Resident || state == ExpertState::Failed; }
};

}  // namespace colibri
