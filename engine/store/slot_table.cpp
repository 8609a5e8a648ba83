// SPDX-License-Identifier: Apache-2.0
#include "engine/store/slot_table.h"

#include <algorithm>
#include <new>
#include <utility>

#include "engine/base/format.h"

namespace colibri {

SlotTable::SlotTable(const Parts& parts, Numa& numa, const StoreOptions& options)
    : m_parts(parts),
      m_layers(parts.shape.layerCount()),
      m_slotBytes(
          parts.shape.recordBytes.empty()
              ? 0
              : *std::max_element(parts.shape.recordBytes.begin(), parts.shape.recordBytes.end())),
      m_entries(size_t(parts.shape.expertCount())),
      m_order(parts.shape, m_entries, options.policy),
      m_steps(parts.shape.layerCount()),
      m_prepared(options.prepareMemory, m_slotBytes, m_entries.size()),
      m_mover(numa, m_slotBytes) {
    setSize(options.cacheSize, 0);
}

SlotTable::~SlotTable() {
    for (const ExpertEntry& e : m_entries)
        if (e.memory != nullptr) freeLater(e.memory);
    dropPrepared(0);
    for (std::byte* memory : m_freed) m_parts.memory.free(memory, m_slotBytes);
}

// ---- experts ----

void SlotTable::setState(uint32_t key, ExpertState state) {
    m_entries[key].state = state;
    Residency shown = Residency::Reading;
    if (state == ExpertState::Resident) shown = Residency::Resident;
    if (state == ExpertState::OnDisk || state == ExpertState::Failed) shown = Residency::OnDisk;
    m_parts.residency.set(key, shown);
}

// ---- slots ----

Slot SlotTable::newSlot() {
    if (std::byte* const memory = m_prepared.take()) {
        ++m_used;
        return {memory, false};
    }
    std::byte* const memory = m_parts.memory.allocate(m_slotBytes);
    if (memory != nullptr) {
        try {
            m_mover.addNew(memory);
            ++m_used;
            return {memory, true};
        } catch (const std::bad_alloc&) {
            m_parts.memory.free(memory, m_slotBytes);
        }
    }
    const int64_t wanted = m_capacity / std::max<int64_t>(1, m_layers);
    if (m_used < m_capacity) {
        m_capacity = std::max<int64_t>(1, m_used);
        m_order.setSlots(m_capacity);
        m_sizeReason = "memory for " + formatCount(wanted) + " could not be allocated";
    }
    return {};
}

Slot SlotTable::slotForDemand() {
    trim();
    if (m_used > m_capacity) return {};
    const int64_t victim = m_order.next();
    const auto age = [&](uint32_t key) {
        return int64_t(m_steps.requestsOf(m_parts.shape.layerOf(key)) - m_entries[key].usedStep);
    };
    const bool evictFirst =
        m_prepared.ready() == 0 && victim >= 0 && m_prepared.evictionPays(age(uint32_t(victim)));
    if (m_used < m_capacity && !evictFirst)
        if (const Slot slot = newSlot()) return slot;
    if (m_used > m_capacity || victim < 0) return {};
    return {evict(uint32_t(victim), ExpertState::OnDisk), false};
}

Slot SlotTable::slotForPrefetch(int64_t moeLayer) {
    if (m_used > m_capacity) return {};
    // No thread waits for a prefetch, so it uses no new memory while slots are being prepared.
    const bool preparing =
        m_prepared.ready() == 0 && m_prepared.measured() && slotsNotPrepared() > 0;
    if (m_used < m_capacity && !preparing)
        if (const Slot slot = newSlot()) return slot;
    const int64_t target = m_steps.distance(moeLayer);
    const CachePolicy& policy = m_order.policy();
    const int64_t colderHalf = policy.size() - (m_capacity + 1) / 2;
    const int64_t victim = policy.coldest(colderHalf, [&](uint32_t key) {
        const ExpertEntry& e = m_entries[key];
        if (!e.evictable()) return false;
        if (e.unused) return true;  // a prefetch whose layer has passed
        const int64_t layer = m_parts.shape.layerOf(key);
        return layer != m_steps.current() && m_steps.distance(layer) > target;
    });
    if (victim < 0) return {};
    return {evict(uint32_t(victim), ExpertState::OnDisk), false};
}

void SlotTable::fill(uint32_t key, const Slot& slot) {
    m_entries[key].memory = slot.memory;
    m_entries[key].fresh = slot.fresh;
}

std::byte* SlotTable::takeSlot(uint32_t key) {
    ExpertEntry& e = m_entries[key];
    m_order.remove(key);
    if (std::exchange(e.unused, false)) m_parts.judge.wasted(e.source);
    return std::exchange(e.memory, nullptr);
}

std::byte* SlotTable::evict(uint32_t key, ExpertState next) {
    ++m_parts.counters.evictions;
    reportEviction(key);
    m_entries[key].uses = 0;
    setState(key, next);
    return takeSlot(key);
}

void SlotTable::reportEviction(uint32_t key) {
    if (m_ring == nullptr) return;
    const ExpertEntry& e = m_entries[key];
    Event event{};
    event.type = EventType::Eviction;
    event.timeNs = m_parts.clock.now();
    event.eviction = {uint16_t(m_parts.shape.layers[size_t(m_parts.shape.layerOf(key))]),
                      uint16_t(m_parts.shape.expertOf(key)), event.timeNs - e.residentNs, e.uses};
    m_ring->write(event);
}

int64_t SlotTable::stealable(uint32_t key) const {
    // Prefer the youngest ticket no thread waits on, else a younger waited-on one.
    int64_t best = -1;
    bool bestWaiting = true;
    uint64_t bestNumber = m_entries[key].ticketNumber;
    const CachePolicy& policy = m_order.policy();
    policy.coldest(policy.size(), [&](uint32_t other) {
        const ExpertEntry& e = m_entries[other];
        if (e.state != ExpertState::Resident || e.pins > 0 || e.tickets == 0) return false;
        const bool waiting = e.waiting > 0;
        if ((bestWaiting && !waiting) || (bestWaiting == waiting && e.ticketNumber > bestNumber)) {
            best = other;
            bestWaiting = waiting;
            bestNumber = e.ticketNumber;
        }
        return false;
    });
    return best;
}

void SlotTable::dropSlot(uint32_t key) {
    giveBack(takeSlot(key));
}

void SlotTable::giveBack(std::byte* memory) {
    --m_used;
    m_mover.remove(memory);
    freeLater(memory);
}

void SlotTable::freeLater(std::byte* memory) {
    try {
        m_freed.push_back(memory);
    } catch (const std::bad_alloc&) {  // or at once
        m_parts.queue.forget(memory);
        m_parts.memory.free(memory, m_slotBytes);
    }
}

std::vector<std::byte*> SlotTable::takeFreed() {
    return std::exchange(m_freed, {});
}

// ---- size ----

void SlotTable::setSize(int64_t expertsPerLayer, int64_t freeBytes) {
    m_requestedSize = expertsPerLayer;
    m_sizeReason.clear();
    int64_t slots = expertsPerLayer * m_layers;
    if (freeBytes > 0 && slots > m_capacity) {
        const int64_t fit =
            m_used + m_prepared.held() + freeBytes / std::max<int64_t>(1, m_slotBytes);
        if (slots > fit) {
            slots = std::max(m_capacity, fit / std::max<int64_t>(1, m_layers) * m_layers);
            m_sizeReason = "memory for " + formatCount(expertsPerLayer) + " could not be allocated";
        }
    }
    m_capacity = slots;
    m_order.setSlots(slots);
    m_prepared.setFull(false);
    dropPrepared(std::max<int64_t>(0, m_capacity - m_used));
}

KnobState SlotTable::sizeState() const {
    KnobState state{m_requestedSize, m_requestedSize, {}};
    if (m_layers == 0) return state;
    if (m_used > m_capacity) {
        state.effective = (m_used + m_layers - 1) / m_layers;
        state.reason = formatCount(m_used) + " slots are in use by the current token";
    } else {
        state.effective = std::max<int64_t>(1, m_capacity / m_layers);
        if (state.effective != state.requested) state.reason = m_sizeReason;
    }
    return state;
}

void SlotTable::trim(int64_t most) {
    for (; most > 0 && m_used > m_capacity; --most) {
        const int64_t victim = m_order.next();
        if (victim < 0) return;
        giveBack(evict(uint32_t(victim), ExpertState::OnDisk));
    }
}

// ---- memory ahead of need ----

int64_t SlotTable::slotsToPrepare() const {
    return m_prepared.enabled() && !m_prepared.full() ? slotsNotPrepared() : 0;
}

// More slots than there are experts are never used.
int64_t SlotTable::slotsNotPrepared() const {
    return std::max<int64_t>(
        0, std::min(m_capacity, int64_t(m_entries.size())) - m_used - m_prepared.ready());
}

void SlotTable::addPrepared(std::byte* memory, uint64_t tookNs) {
    m_mover.addPlaced(memory);
    m_prepared.add(memory, tookNs);
    ++m_parts.counters.slotsPrepared;
    m_parts.counters.prepareNs += tookNs;
}

void SlotTable::dropPrepared(int64_t keep) {
    while (m_prepared.ready() > keep) {
        std::byte* const memory = m_prepared.take();
        m_mover.remove(memory);
        freeLater(memory);
    }
}

int64_t SlotTable::nextMisplaced(size_t& from) const {
    for (size_t i = 0; m_mover.misplaced() > 0 && i < m_entries.size(); ++i) {
        from = (from + 1) % m_entries.size();
        const ExpertEntry& e = m_entries[from];
        if (e.state == ExpertState::Resident && m_mover.isMisplaced(e.memory)) return int64_t(from);
    }
    return -1;
}

}  // namespace colibri
