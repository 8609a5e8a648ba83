// SPDX-License-Identifier: Apache-2.0
// Slots, eviction, tickets and pins. Everything private here runs under the lock.
#include <algorithm>

#include "engine/base/format.h"
#include "engine/store/store_core.h"

namespace colibri {

bool StoreCore::valid(const Ticket& ticket) const {
    return ticket.moeLayer < moeLayers() && ticket.expert < experts();
}

void StoreCore::setState(uint32_t key, State state) {
    m_entries[key].state = state;
    Residency shown = Residency::Loading;
    if (state == State::Resident) shown = Residency::Resident;
    if (state == State::OnDisk || state == State::Failed) shown = Residency::OnDisk;
    m_residency[key].store(uint8_t(shown), std::memory_order_relaxed);  // a display, no order
}

// ---- asking ----

void StoreCore::request(int64_t moeLayer, std::span<const uint16_t> experts,
                        std::vector<Ticket>& out) {
    out.clear();
    const uint64_t now = m_parts.clock->now();
    Lock lock(m_mutex);
    m_requestNs = now;
    const bool known = moeLayer >= 0 && moeLayer < moeLayers();
    if (known) passLayers(moeLayer);
    passPause();
    // First all are held, so that no miss evicts what this very request needs.
    for (uint16_t expert : experts) {
        Ticket& ticket = out.emplace_back();
        ticket.moeLayer = uint16_t(known ? moeLayer : UINT16_MAX);
        ticket.expert = expert;
        ticket.askedNs = now;
        if (valid(ticket)) lookUp(keyOf(moeLayer, expert), now, ticket);
    }
    if (known) demotePassed(moeLayer);
    for (const Ticket& ticket : out)
        if (valid(ticket)) place(keyOf(moeLayer, ticket.expert));
    flushOutcome(now, false);
    wakePrefetch();
    unlockAndFree(lock);
}

void StoreCore::clearHints(int64_t moeLayer) {
    std::vector<uint32_t>& hints = m_hints[size_t(moeLayer)];
    m_hinted -= int64_t(hints.size());
    hints.clear();
}

void StoreCore::passLayers(int64_t moeLayer) {
    if (m_hinted > 0)
        for (int64_t layer = m_layer; layer != moeLayer;) {
            layer = (layer + 1) % moeLayers();
            clearHints(layer);
        }
    clearHints(moeLayer);
    m_layer = moeLayer;
    ++m_epochs[size_t(moeLayer)];
}

void StoreCore::lookUp(uint32_t key, uint64_t now, Ticket& ticket) {
    Entry& e = m_entries[key];
    ++m_stats.lookups;
    ++m_lookups[key];
    ++e.uses;
    e.usedEpoch = m_epochs[size_t(layerOf(key))];
    if (e.tickets++ == 0) e.order = ++m_tickets;
    switch (e.state) {
        case State::Resident:
            ++m_stats.hits;
            ticket.hit = true;
            if (!e.unused) return;
            ticket.byPrefetch = true;
            count(&PrefetchCounts::useful, e.source);
            judge(false, e.residentNs - std::min(e.residentNs, e.submittedNs));
            e.unused = false;
            --m_unusedPrefetches;
            if (e.place == Place::Pending) {
                std::erase(m_pending, key);
                e.place = Place::Nowhere;
            }
            return;
        case State::Reading:
            if (!e.demanded) join(e, now);
            return;
        case State::OnDisk:
        case State::Failed:
            m_errors.erase(key);
            e.uses = 1;
            e.askedNs = now;
            e.reason = LoadReason::Demand;
            setState(key, State::NeedsSlot);
            return;
        case State::NeedsSlot:
        case State::Queued:
            return;
    }
}

void StoreCore::join(Entry& e, uint64_t now) {
    if (e.unused) {
        count(&PrefetchCounts::late, e.source);
        e.unused = false;
        e.joined = true;
        --m_unusedPrefetches;
    }
    leaveDisk(e);
    e.demanded = true;
    --m_prefetchReading;
    ++m_demandReading;
    e.askedNs = now;
    m_link.promote(e.transfer, now);
    m_linkCv.notify_all();
}

void StoreCore::demotePassed(int64_t moeLayer) {
    std::erase_if(m_pending, [&](uint32_t key) {
        if (layerOf(key) != moeLayer) return false;
        m_entries[key].place = Place::Policy;
        m_policy->insertCold(key);
        return true;
    });
}

void StoreCore::place(uint32_t key) {
    Entry& e = m_entries[key];
    if (e.state == State::NeedsSlot) {
        if (!e.lined) m_needSlot.push_back(key);
        e.lined = true;
        feedWaiting();
    } else if (e.place == Place::Policy) {
        m_policy->touch(key);
    } else if (e.memory != nullptr) {
        m_policy->insert(key);
        e.place = Place::Policy;
    }
}

bool StoreCore::ready(const Ticket& ticket) {
    if (!valid(ticket)) return true;
    Lock lock(m_mutex);
    return usable(m_entries[keyOf(ticket.moeLayer, ticket.expert)]);
}

Result<const std::byte*> StoreCore::wait(const Ticket& ticket, uint32_t& key,
                                         const std::atomic<bool>* abort) {
    if (!valid(ticket))
        return Status(Code::InvalidArgument, "The store has no expert " +
                                                 formatCount(ticket.expert) + " of MoE layer " +
                                                 formatCount(ticket.moeLayer));
    key = keyOf(ticket.moeLayer, ticket.expert);
    Lock lock(m_mutex);
    Entry& e = m_entries[key];
    if (e.tickets == 0)
        return Status(Code::Internal,
                      "A ticket of expert " + formatCount(ticket.expert) + " was waited for twice");
    if (!usable(e)) {
        const uint64_t from = m_parts.clock->now();
        ++e.waiting;
        ++m_doneWaiters;
        for (;;) {
            if (e.state == State::NeedsSlot) forceSlot(key);
            if (usable(e) || (abort != nullptr && abort->load())) break;
            m_doneCv.wait(lock);
        }
        --m_doneWaiters;
        --e.waiting;
        const uint64_t waited = m_parts.clock->now() - from;
        m_stats.stallNs += waited;
        if (e.fresh) m_stats.freshStallNs += waited;
    }
    if (e.state != State::Resident) {
        const Status status = errorOf(key);
        endTicket(key);
        unlockAndFree(lock);
        return status;
    }
    --e.tickets;
    ++e.pins;
    return static_cast<const std::byte*>(e.memory);
}

// Why a wait ended without the record.
Status StoreCore::errorOf(uint32_t key) const {
    try {
        if (m_entries[key].state != State::Failed)
            return {Code::Cancelled, "the wait for an expert was cancelled"};
        if (const auto error = m_errors.find(key); error != m_errors.end()) return error->second;
    } catch (const std::bad_alloc&) {
    }
    return {Code::OutOfMemory, "out of memory"};  // so short that it allocates nothing
}

void StoreCore::wakeWaiters() {
    Lock lock(m_mutex);
    if (m_doneWaiters > 0) m_doneCv.notify_all();
}

void StoreCore::drop(const Ticket& ticket) {
    if (!valid(ticket)) return;
    Lock lock(m_mutex);
    const uint32_t key = keyOf(ticket.moeLayer, ticket.expert);
    if (m_entries[key].tickets > 0) endTicket(key);
    unlockAndFree(lock);
}

void StoreCore::endTicket(uint32_t key) {
    Entry& e = m_entries[key];
    --e.tickets;
    if (!held(e)) letGo(key);
}

void StoreCore::unpin(uint32_t key) {
    Lock lock(m_mutex);
    Entry& e = m_entries[key];
    --e.pins;
    if (!held(e)) letGo(key);
    unlockAndFree(lock);
}

void StoreCore::letGo(uint32_t key) {
    Entry& e = m_entries[key];
    if (e.state == State::Failed) {
        m_errors.erase(key);
        setState(key, State::OnDisk);
    } else if (e.state == State::NeedsSlot) {
        std::erase(m_needSlot, key);
        e.lined = false;
        setState(key, State::OnDisk);
    }
    if (m_used > m_capacity) trim(m_used - m_capacity);
    if (!m_needSlot.empty()) feedWaiting();
}

// ---- slots ----

StoreCore::Slot StoreCore::newSlot() {
    if (std::byte* const memory = readySlot()) return {memory, false};
    std::byte* const memory = m_parts.memory->allocate(m_slotBytes);
    if (memory != nullptr) {
        try {
            placeNew(memory);
            ++m_used;
            return {memory, true};
        } catch (const std::bad_alloc&) {
            m_parts.memory->free(memory, m_slotBytes);
        }
    }
    const int64_t wanted = m_capacity / std::max<int64_t>(1, moeLayers());
    if (m_used < m_capacity) {
        m_capacity = std::max<int64_t>(1, m_used);
        m_policy->setSlots(m_capacity);
        m_sizeReason = "memory for " + formatCount(wanted) + " could not be allocated";
    }
    return {};
}

StoreCore::Slot StoreCore::slotForDemand() {
    if (m_used > m_capacity) trim(m_used - m_capacity);
    if (m_used > m_capacity) return {};
    const int64_t victim = coldestSlot();
    const bool reuse = m_ready.empty() && victim >= 0 && reuseFirst(uint32_t(victim));
    if (m_used < m_capacity && !reuse)
        if (const Slot slot = newSlot(); slot.memory != nullptr) return slot;
    if (m_used > m_capacity || victim < 0) return {};
    return {evict(uint32_t(victim), State::OnDisk), false};
}

int64_t StoreCore::coldestSlot() const {
    const int64_t victim =
        m_policy->coldest(m_policy->size(), [&](uint32_t k) { return evictable(k); });
    return victim < 0 && !m_pending.empty() ? int64_t(m_pending.front()) : victim;
}

int64_t StoreCore::ahead(int64_t moeLayer) const {
    const int64_t layers = moeLayers();
    const int64_t distance = (moeLayer - m_layer + layers) % layers;
    return distance == 0 ? layers : distance;
}

StoreCore::Slot StoreCore::slotForPrefetch(uint32_t key) {
    if (m_used > m_capacity) return {};
    // Nobody waits for a prefetch: new memory for it is left to the thread, where that has begun.
    if (m_used < m_capacity && !(m_ready.empty() && m_touchNs > 0 && slotsToPrepare() > 0))
        if (const Slot slot = newSlot(); slot.memory != nullptr) return slot;
    const int64_t target = ahead(layerOf(key));
    const int64_t colder = m_policy->size() - (m_capacity + 1) / 2;
    const int64_t victim = m_policy->coldest(colder, [&](uint32_t other) {
        if (!evictable(other)) return false;
        if (m_entries[other].unused) return true;  // a prefetch whose layer has passed
        const int64_t layer = layerOf(other);
        return layer != m_layer && ahead(layer) > target;
    });
    if (victim < 0) return {};
    return {evict(uint32_t(victim), State::OnDisk), false};
}

void StoreCore::queueRead(uint32_t key, Slot slot) {
    Entry& e = m_entries[key];
    e.memory = slot.memory;
    e.fresh = slot.fresh;
    e.retried = false;
    e.place = Place::Policy;
    m_policy->insert(key);
    setState(key, State::Queued);
    m_demand.push_back(key);
    startReads();
}

std::byte* StoreCore::takeSlot(uint32_t key) {
    Entry& e = m_entries[key];
    if (e.place == Place::Policy) m_policy->remove(key);
    if (e.place == Place::Pending) std::erase(m_pending, key);
    e.place = Place::Nowhere;
    if (e.unused) {
        count(&PrefetchCounts::wasted, e.source);
        judge(true);
        --m_unusedPrefetches;
        e.unused = false;
    }
    return std::exchange(e.memory, nullptr);
}

std::byte* StoreCore::evict(uint32_t key, State next) {
    Entry& e = m_entries[key];
    ++m_stats.evictions;
    if (m_ring != nullptr) {
        Event event{};
        event.type = EventType::Eviction;
        event.timeNs = m_parts.clock->now();
        event.eviction = {uint16_t(m_shape.layers[size_t(layerOf(key))]),
                          uint16_t(key % m_shape.experts), event.timeNs - e.residentNs, e.uses};
        m_ring->write(event);
    }
    e.uses = 0;
    setState(key, next);
    return takeSlot(key);
}

void StoreCore::dropSlot(uint32_t key) {
    giveBack(takeSlot(key));
}

void StoreCore::feedWaiting() {
    while (!m_needSlot.empty()) {
        const Slot slot = slotForDemand();
        if (slot.memory == nullptr && m_used > 0) return;
        // Whoever is waited for now goes first.
        auto next = std::find_if(m_needSlot.begin(), m_needSlot.end(),
                                 [&](uint32_t key) { return m_entries[key].waiting > 0; });
        if (next == m_needSlot.end()) next = m_needSlot.begin();
        const uint32_t key = *next;
        m_needSlot.erase(next);
        m_entries[key].lined = false;
        if (slot.memory != nullptr)
            queueRead(key, slot);
        else
            fail(key, {Code::OutOfMemory,
                       "No memory for one expert of " + formatGiB(double(m_slotBytes))});
    }
}

int64_t StoreCore::stealable(uint32_t key) const {
    // Of those nobody waits for now the youngest; else one that is waited for, but younger than
    // this: so the oldest ticket always gets on.
    const Entry& mine = m_entries[key];
    int64_t best = -1;
    bool bestWaiting = true;
    uint64_t bestOrder = mine.order;
    m_policy->coldest(m_policy->size(), [&](uint32_t other) {
        const Entry& e = m_entries[other];
        if (e.state != State::Resident || e.pins > 0 || e.tickets == 0) return false;
        const bool waiting = e.waiting > 0;
        if ((bestWaiting && !waiting) || (bestWaiting == waiting && e.order > bestOrder)) {
            best = other;
            bestWaiting = waiting;
            bestOrder = e.order;
        }
        return false;
    });
    return best;
}

void StoreCore::forceSlot(uint32_t key) {
    const int64_t victim = stealable(key);
    const bool reading = !m_demand.empty() || m_demandReading + m_prefetchReading > 0;
    Slot slot;
    if (victim >= 0) {
        slot.memory = evict(uint32_t(victim), State::NeedsSlot);
        m_entries[size_t(victim)].askedNs = m_parts.clock->now();
        m_entries[size_t(victim)].lined = true;
        m_needSlot.push_back(uint32_t(victim));
    } else if (reading) {
        return;  // what ends next can be evicted or taken
    } else {
        slot = newSlot();  // every slot is pinned: rather grow than wait for ever
    }
    std::erase(m_needSlot, key);
    m_entries[key].lined = false;
    if (slot.memory != nullptr)
        queueRead(key, slot);
    else
        fail(key, {Code::OutOfMemory,
                   "No memory for one more expert of " + formatGiB(double(m_slotBytes))});
}

void StoreCore::fail(uint32_t key, Status status) {
    setState(key, State::Failed);
    try {
        m_errors[key] = std::move(status);
    } catch (const std::bad_alloc&) {  // wait() finds none
    }
    if (m_doneWaiters > 0) m_doneCv.notify_all();
}

void StoreCore::trim(int64_t most) {
    for (; most > 0 && m_used > m_capacity; --most) {
        const int64_t victim = coldestSlot();
        if (victim < 0) return;
        giveBack(evict(uint32_t(victim), State::OnDisk));
    }
}

void StoreCore::giveBack(std::byte* memory) {
    --m_used;
    const auto slot = m_placed.find(memory);
    if (slot->second != m_placeSerial) --m_misplaced;
    m_placed.erase(slot);
    freeLater(memory);
}

// Unmapped after unlocking.
void StoreCore::freeLater(std::byte* memory) {
    try {
        m_freed.push_back(memory);
    } catch (const std::bad_alloc&) {  // or at once
        m_parts.queue->forget(memory);
        m_parts.memory->free(memory, m_slotBytes);
    }
}

void StoreCore::unlockAndFree(Lock& lock) {
    if (m_freed.empty()) {
        lock.unlock();
        return;
    }
    const std::vector<std::byte*> freed = std::exchange(m_freed, {});
    lock.unlock();
    for (std::byte* memory : freed) {
        m_parts.queue->forget(memory);
        m_parts.memory->free(memory, m_slotBytes);
    }
}

// ---- size ----

KnobState StoreCore::sizeState() const {
    KnobState state{m_requestedSize, m_requestedSize, {}};
    const int64_t layers = moeLayers();
    if (layers == 0) return state;
    if (m_used > m_capacity) {
        state.effective = (m_used + layers - 1) / layers;
        state.reason = formatCount(m_used) + " slots are in use by the current token";
    } else {
        state.effective = std::max<int64_t>(1, m_capacity / layers);
        if (state.effective != state.requested) state.reason = m_sizeReason;
    }
    return state;
}

KnobState StoreCore::cacheSizeState() {
    Lock lock(m_mutex);
    return sizeState();
}

KnobState StoreCore::setCacheSize(int64_t expertsPerLayer) {
    const int64_t free = m_parts.memory->freeBytes();  // asks the system: not under the lock
    Lock lock(m_mutex);
    const int64_t layers = moeLayers();
    const int64_t size = std::clamp<int64_t>(expertsPerLayer, 1, std::max<int64_t>(1, experts()));
    m_requestedSize = expertsPerLayer;
    m_sizeReason.clear();
    if (size != expertsPerLayer)
        m_sizeReason = "the range is 1 to " + formatCount(experts()) + " experts per layer";
    int64_t slots = size * layers;
    const int64_t fit =
        m_used + int64_t(m_ready.size()) + m_preparing + free / std::max<int64_t>(1, m_slotBytes);
    if (free > 0 && slots > m_capacity && slots > fit) {
        slots = std::max(m_capacity, fit / std::max<int64_t>(1, layers) * layers);
        m_sizeReason = "memory for " + formatCount(size) + " could not be allocated";
    }
    m_capacity = slots;
    m_policy->setSlots(slots);
    m_memoryFull = false;
    m_memoryCv.notify_all();
    dropReady(std::max<int64_t>(0, m_capacity - m_used));
    // In small steps: unmapping gigabytes at once would hold a token up.
    for (;;) {
        trim(kTrimBatch);
        if (m_freed.empty()) break;
        unlockAndFree(lock);
        lock.lock();
    }
    feedWaiting();
    wakePrefetch();
    const KnobState state = sizeState();
    unlockAndFree(lock);
    return state;
}

}  // namespace colibri
