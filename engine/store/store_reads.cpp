// SPDX-License-Identifier: Apache-2.0
// Reads: demand reads go to the queue, as many as the depth allows; prefetches are read one per
// prefetch thread; the link thread ends demand reads that a limited link still carries.
#include <pthread.h>

#include <algorithm>
#include <bit>
#include <system_error>

#include "engine/store/store_core.h"

namespace colibri {

namespace {

constexpr size_t kLaneEvents = 1 << 12;

}  // namespace

// ---- demand ----

Status StoreCore::openLanes(int64_t depth) {
    COLIBRI_TRY(m_parts.queue->setDepth(depth));
    for (auto i = int64_t(m_laneRings.size()); i < depth; ++i) {
        EventRing* const ring =
            m_telemetry == nullptr
                ? nullptr
                : m_telemetry->addRing("expert-io-" + std::to_string(i), kLaneEvents);
        Lock lock(m_mutex);
        m_laneRings.push_back(ring);
    }
    return {};
}

void StoreCore::startReads() {
    while (!m_demand.empty() && std::popcount(m_lanes) < m_ioDepth && !m_stopping) {
        const uint32_t key = m_demand.front();
        m_demand.erase(m_demand.begin());
        Entry& e = m_entries[key];
        e.demanded = true;
        e.leads = m_demandReading == 0;
        e.prefetchNs = m_prefetchDisk.at(m_parts.clock->now());
        e.lane = uint8_t(std::countr_one(m_lanes));
        m_lanes |= uint64_t(1) << e.lane;
        ++m_demandReading;
        m_parts.queue->submit(begin(key));
    }
}

// The slot's bytes belong to the read from here on.
RecordRead StoreCore::begin(uint32_t key) {
    Entry& e = m_entries[key];
    const int64_t layer = layerOf(key);
    const int64_t bytes = m_shape.recordBytes[size_t(layer)];
    setState(key, State::Reading);
    e.transfer = m_link.begin(bytes, e.demanded, m_parts.clock->now());
    return {key, layer, key % m_shape.experts, {e.memory, size_t(bytes)}, m_ioMode};
}

void StoreCore::landed(uint32_t key, const ReadOutcome& outcome) {
    Lock lock(m_mutex);
    Entry& e = m_entries[key];
    e.submittedNs = outcome.submittedNs;
    const uint64_t now = m_parts.clock->now();
    if (outcome.status.ok() && !e.fresh) measureDelay(e, now);
    if (outcome.status.ok() && !m_link.done(e.transfer, now)) {
        m_landed.push_back(key);
        m_linkCv.notify_all();
        return;
    }
    endDemand(lock, key, outcome.status);
}

void StoreCore::linkLoop() {
    pthread_setname_np(pthread_self(), "expert-link");
    Lock lock(m_mutex);
    while (!m_stopping) {
        if (m_landed.empty()) {
            m_linkCv.wait(lock);
            continue;
        }
        const uint64_t now = m_parts.clock->now();
        const auto finish = [&](uint32_t key) {
            return m_link.finishAt(m_entries[key].transfer, now);
        };
        const auto next =
            std::min_element(m_landed.begin(), m_landed.end(),
                             [&](uint32_t a, uint32_t b) { return finish(a) < finish(b); });
        if (!m_link.done(m_entries[*next].transfer, now)) {
            m_parts.clock->waitUntil(m_linkCv, lock, finish(*next));
            continue;
        }
        const uint32_t key = *next;
        m_landed.erase(next);
        endDemand(lock, key, {});
    }
}

void StoreCore::endDemand(Lock& lock, uint32_t key, const Status& status) {
    const uint64_t now = m_parts.clock->now();
    const uint8_t lane = m_entries[key].lane;
    report(key, status, now, m_laneRings[lane]);
    if (status.ok()) measureRead(m_entries[key], now);
    m_lanes &= ~(uint64_t(1) << lane);
    finishRead(key, status, now);
    startReads();
    if (m_freed.empty()) return;
    unlockAndFree(lock);
    lock.lock();
}

void StoreCore::report(uint32_t key, const Status& status, uint64_t now, EventRing* ring) {
    if (ring == nullptr) return;
    const Entry& e = m_entries[key];
    const int64_t layer = layerOf(key);
    Event event{};
    event.timeNs = now;
    event.type = EventType::ExpertLoad;
    event.load.layer = uint16_t(m_shape.layers[size_t(layer)]);
    event.load.expert = uint16_t(key % m_shape.experts);
    event.load.reason = e.reason;
    event.load.failed = !status.ok();
    event.load.fresh = e.fresh;
    event.load.bytes = uint32_t(m_shape.recordBytes[size_t(layer)]);
    event.load.queueNs = e.submittedNs - std::min(e.submittedNs, e.askedNs);
    event.load.readNs = now - std::min(now, e.submittedNs);
    event.load.needNs = e.demanded ? now - std::min(now, e.askedNs) : 0;
    ring->write(event);
}

// ---- the end of a read ----

void StoreCore::finishRead(uint32_t key, const Status& status, uint64_t now) {
    Entry& e = m_entries[key];
    m_link.end(e.transfer, now);
    --(e.demanded ? m_demandReading : m_prefetchReading);
    e.demanded = false;
    // A prefetch asked for before half of its read was done saved little.
    if (std::exchange(e.joined, false)) {
        const uint64_t ahead = e.askedNs - std::min(e.askedNs, e.submittedNs);
        judge(2 * ahead < now - std::min(now, e.submittedNs), ahead);
    }
    if (status.ok())
        keepRecord(key, now);
    else
        loseRecord(key, status);
    if (!m_needSlot.empty()) feedWaiting();
    flushOutcome(now, false);
    if (m_doneWaiters > 0) m_doneCv.notify_all();
    wakePrefetch();
}

void StoreCore::keepRecord(uint32_t key, uint64_t now) {
    Entry& e = m_entries[key];
    const int64_t layer = layerOf(key);
    setState(key, State::Resident);
    e.residentNs = now;
    ++(e.reason == LoadReason::Prefetch    ? m_stats.prefetchLoads
       : e.reason == LoadReason::WarmStart ? m_stats.warmLoads
                                           : m_stats.demandLoads);
    m_stats.bytesLoaded += uint64_t(m_shape.recordBytes[size_t(layer)]);
    if (e.place == Place::Nowhere && e.epoch == m_epochs[size_t(layer)]) {
        e.place = Place::Pending;
        m_pending.push_back(key);
    } else if (e.place == Place::Nowhere) {  // its layer has passed
        e.place = Place::Policy;
        m_policy->insertCold(key);
    }
    if (m_used > m_capacity) trim(m_used - m_capacity);
}

void StoreCore::loseRecord(uint32_t key, const Status& status) {
    Entry& e = m_entries[key];
    ++m_stats.failedReads;
    if (held(e) && !e.retried && !m_stopping) {
        e.retried = true;
        e.reason = LoadReason::Demand;
        setState(key, State::Queued);
        m_demand.insert(m_demand.begin(), key);
        return;
    }
    dropSlot(key);
    if (held(e))
        fail(key, status);
    else
        setState(key, State::OnDisk);
}

void StoreCore::settle() {
    Lock lock(m_mutex);
    ++m_wakes;
    m_prefetchCv.notify_all();
    ++m_doneWaiters;
    m_doneCv.wait(lock, [&] {
        const bool looked = std::all_of(m_workers.begin(), m_workers.end(), [&](const Worker& w) {
            return !w.running || w.seen == m_wakes;
        });
        return looked && !m_warming && m_demand.empty() && m_demandReading + m_prefetchReading == 0;
    });
    --m_doneWaiters;
}

}  // namespace colibri
