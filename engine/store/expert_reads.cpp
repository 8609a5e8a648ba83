// SPDX-License-Identifier: Apache-2.0
#include "engine/store/expert_reads.h"

#include <algorithm>
#include <bit>
#include <new>
#include <utility>

#include "engine/base/format.h"

namespace colibri {

namespace {

uint64_t elapsed(uint64_t from, uint64_t to) {
    return to - std::min(from, to);
}

}  // namespace

ExpertReads::ExpertReads(const Parts& parts, IoMode mode, int64_t depth)
    : m_parts(parts),
      m_slots(parts.table),
      m_mode(mode),
      m_depth(std::clamp<int64_t>(depth, 1, kMostDepth)) {
    for (std::vector<uint32_t>* keys : {&m_needSlot, &m_queued, &m_onLink})
        keys->reserve(size_t(m_parts.shape.expertCount()));
}

// ---- requests ----

void ExpertReads::need(uint32_t key) {
    m_errors.erase(key);
    if (!std::exchange(m_slots[key].waitsForSlot, true)) m_needSlot.push_back(key);
    giveSlots();
}

void ExpertReads::giveSlots() {
    while (!m_needSlot.empty()) {
        const Slot slot = m_slots.slotForDemand();
        if (!slot && m_slots.used() > 0) return;
        // An expert that a thread is waiting for goes first.
        auto next = std::find_if(m_needSlot.begin(), m_needSlot.end(),
                                 [&](uint32_t key) { return m_slots[key].waiting > 0; });
        if (next == m_needSlot.end()) next = m_needSlot.begin();
        const uint32_t key = *next;
        m_needSlot.erase(next);
        assign(key, slot);
    }
}

void ExpertReads::forceSlot(uint32_t key) {
    const int64_t victim = m_slots.stealable(key);
    Slot slot;
    if (victim >= 0) {
        slot.memory = m_slots.evict(uint32_t(victim), ExpertState::NeedsSlot);
        ExpertEntry& loser = m_slots[uint32_t(victim)];
        loser.requestedNs = m_parts.clock.now();
        loser.waitsForSlot = true;
        m_needSlot.push_back(uint32_t(victim));
    } else if (!quiet()) {
        return;  // the next read that ends frees a slot
    } else {
        slot = m_slots.newSlot();  // every slot is pinned: grow instead of waiting forever
    }
    std::erase(m_needSlot, key);
    assign(key, slot);
    startReads();
}

void ExpertReads::withdraw(uint32_t key) {
    ExpertEntry& e = m_slots[key];
    if (e.state == ExpertState::Failed) {
        m_errors.erase(key);
    } else if (e.state == ExpertState::NeedsSlot) {
        std::erase(m_needSlot, key);
        e.waitsForSlot = false;
    } else {
        return;
    }
    m_slots.setState(key, ExpertState::OnDisk);
}

void ExpertReads::assign(uint32_t key, const Slot& slot) {
    m_slots[key].waitsForSlot = false;
    if (!slot) {
        fail(key, {Code::OutOfMemory,
                   "No memory for one more expert of " + formatGiB(double(m_slots.slotBytes()))});
        return;
    }
    m_slots.fill(key, slot);
    m_slots[key].retried = false;
    m_slots.order().use(key);
    m_slots.setState(key, ExpertState::Queued);
    m_queued.push_back(key);
}

void ExpertReads::startReads() {
    while (!m_queued.empty() && std::popcount(m_lanes) < m_depth && !m_stopping) {
        const uint32_t key = m_queued.front();
        m_queued.erase(m_queued.begin());
        ExpertEntry& e = m_slots[key];
        e.demanded = true;
        e.ledReads = m_demandReading == 0;
        e.diskTimeNs = m_parts.judge.diskTime(m_parts.clock.now());
        e.lane = uint8_t(std::countr_one(m_lanes));
        m_lanes |= uint64_t(1) << e.lane;
        ++m_demandReading;
        m_parts.queue.submit(begin(key));
    }
}

void ExpertReads::join(uint32_t key, uint64_t now) {
    ExpertEntry& e = m_slots[key];
    if (e.demanded) return;
    if (std::exchange(e.unused, false)) {
        m_parts.judge.late(e.source);
        e.requestedLate = true;
    }
    leaveDisk(key);
    e.demanded = true;
    --m_prefetchReading;
    ++m_demandReading;
    e.requestedNs = now;
    m_link.promote(e.transfer, now);
    m_parts.conditions.linkChanged.notifyAll();
}

// ---- reads of both kinds ----

RecordRead ExpertReads::begin(uint32_t key) {
    ExpertEntry& e = m_slots[key];
    const int64_t layer = m_parts.shape.layerOf(key);
    const int64_t bytes = m_parts.shape.recordBytes[size_t(layer)];
    m_slots.setState(key, ExpertState::Reading);
    e.transfer = m_link.begin(bytes, e.demanded, m_parts.clock.now());
    return {key, layer, m_parts.shape.expertOf(key), {e.memory, size_t(bytes)}, m_mode};
}

RecordRead ExpertReads::beginPrefetch(uint32_t key) {
    ++m_prefetchReading;
    return begin(key);
}

uint64_t ExpertReads::carriedAt(uint32_t key, uint64_t now) {
    return m_link.finishAt(m_slots[key].transfer, now);
}

void ExpertReads::leaveDisk(uint32_t key) {
    if (std::exchange(m_slots[key].prefetchOnDisk, false))
        m_parts.judge.diskReadEnds(m_parts.clock.now());
}

void ExpertReads::finish(uint32_t key, const Status& status, EventRing* ring) {
    const uint64_t now = m_parts.clock.now();
    ExpertEntry& e = m_slots[key];
    if (const uint8_t lane = std::exchange(e.lane, ExpertEntry::kNoLane);
        lane != ExpertEntry::kNoLane) {
        m_lanes &= ~(uint64_t(1) << lane);
        ring = m_laneRings[lane];
        std::erase(m_onLink, key);
        if (status.ok() && e.fresh) {
            ++m_parts.counters.freshReads;
        } else if (status.ok()) {
            m_slots.prepared().addRead(elapsed(e.submittedNs, now));
        }
    }
    report(key, status, now, ring);
    m_link.end(e.transfer, now);
    --(e.demanded ? m_demandReading : m_prefetchReading);
    e.demanded = false;
    if (std::exchange(e.requestedLate, false))
        m_parts.judge.lateReadEnded(elapsed(e.submittedNs, e.requestedNs),
                                    elapsed(e.submittedNs, now));
    if (status.ok()) {
        keepRecord(key, now);
    } else {
        loseRecord(key, status);
    }
    giveSlots();
    m_parts.conditions.tellReadEnded();
}

void ExpertReads::keepRecord(uint32_t key, uint64_t now) {
    ExpertEntry& e = m_slots[key];
    const int64_t layer = m_parts.shape.layerOf(key);
    m_slots.setState(key, ExpertState::Resident);
    e.residentNs = now;
    StoreCounters& counters = m_parts.counters;
    ++(e.reason == ReadReason::Prefetch    ? counters.prefetchReads
       : e.reason == ReadReason::WarmStart ? counters.warmReads
                                           : counters.demandReads);
    counters.bytesRead += uint64_t(m_parts.shape.recordBytes[size_t(layer)]);
    if (e.order == ExpertEntry::Order::None) {
        const bool layerStillToCome = e.prefetchStep == m_slots.steps().requestsOf(layer);
        if (layerStillToCome) {
            m_slots.order().keepUntilLayer(key);
        } else {
            m_slots.order().addColdest(key);
        }
    }
    m_slots.trim();
}

void ExpertReads::loseRecord(uint32_t key, const Status& status) {
    ExpertEntry& e = m_slots[key];
    ++m_parts.counters.failedReads;
    if (e.held() && !e.retried && !m_stopping) {
        e.retried = true;
        e.reason = ReadReason::Demand;
        m_slots.setState(key, ExpertState::Queued);
        m_queued.insert(m_queued.begin(), key);
        return;
    }
    m_slots.dropSlot(key);
    if (e.held()) {
        fail(key, status);
    } else {
        m_slots.setState(key, ExpertState::OnDisk);
    }
}

void ExpertReads::fail(uint32_t key, Status status) {
    m_slots.setState(key, ExpertState::Failed);
    try {
        m_errors[key] = std::move(status);
    } catch (const std::bad_alloc&) {  // errorOf() finds none
    }
    m_parts.conditions.tellReadEnded();
}

Status ExpertReads::errorOf(uint32_t key) const {
    try {
        if (m_slots[key].state != ExpertState::Failed)
            return {Code::Cancelled, "the wait for an expert was cancelled"};
        if (const auto error = m_errors.find(key); error != m_errors.end()) return error->second;
    } catch (const std::bad_alloc&) {
    }
    return outOfMemory();
}

void ExpertReads::report(uint32_t key, const Status& status, uint64_t now, EventRing* ring) {
    if (ring == nullptr) return;
    const ExpertEntry& e = m_slots[key];
    const auto layer = size_t(m_parts.shape.layerOf(key));
    Event event{};
    event.timeNs = now;
    event.type = EventType::ExpertRead;
    event.expertRead.layer = uint16_t(m_parts.shape.layers[layer]);
    event.expertRead.expert = uint16_t(m_parts.shape.expertOf(key));
    event.expertRead.reason = e.reason;
    event.expertRead.failed = !status.ok();
    event.expertRead.fresh = e.fresh;
    event.expertRead.late = e.requestedLate;
    event.expertRead.step = e.demanded ? e.neededStep : 0;
    event.expertRead.bytes = uint32_t(m_parts.shape.recordBytes[layer]);
    event.expertRead.queueNs = elapsed(e.requestedNs, e.submittedNs);
    event.expertRead.readNs = elapsed(e.submittedNs, now);
    event.expertRead.linkNs = elapsed(e.diskEndNs, now);
    event.expertRead.needNs = e.demanded ? elapsed(e.requestedNs, now) : 0;
    ring->write(event);
}

// ---- reads of the read queue ----

void ExpertReads::endDiskRead(uint32_t key, const ReadOutcome& outcome) {
    ExpertEntry& e = m_slots[key];
    e.submittedNs = outcome.submittedNs;
    const uint64_t now = m_parts.clock.now();
    e.diskEndNs = now;
    if (outcome.status.ok()) {
        if (e.ledReads && !e.fresh)
            m_parts.judge.demandReadEnded(elapsed(e.submittedNs, now), e.diskTimeNs, now);
        if (carriedAt(key, now) > now) {
            m_onLink.push_back(key);
            m_parts.conditions.linkChanged.notifyAll();
            return;
        }
    }
    finish(key, outcome.status);
}

int64_t ExpertReads::nextOnLink(uint64_t now) {
    if (m_onLink.empty()) return -1;
    return *std::min_element(m_onLink.begin(), m_onLink.end(), [&](uint32_t a, uint32_t b) {
        return carriedAt(a, now) < carriedAt(b, now);
    });
}

void ExpertReads::setLinkRate(int64_t bytesPerSecond, uint64_t now) {
    m_link.setRate(bytesPerSecond, now);
    m_parts.conditions.linkChanged.notifyAll();
}

}  // namespace colibri
