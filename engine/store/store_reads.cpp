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

void nameThread(const std::string& name) {
    pthread_setname_np(pthread_self(), name.c_str());
}

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
        m_demand.pop_front();
        Entry& e = m_entries[key];
        e.demanded = true;
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
    if (outcome.status.ok() && !m_link.done(e.transfer, m_parts.clock->now())) {
        m_landed.push_back(key);
        m_linkCv.notify_all();
        return;
    }
    endDemand(lock, key, outcome.status);
}

void StoreCore::linkLoop() {
    nameThread("expert-link");
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
    event.load.reason = e.byPrefetch ? LoadReason::Prefetch : LoadReason::Demand;
    event.load.failed = !status.ok();
    event.load.bytes = uint32_t(m_shape.recordBytes[size_t(layer)]);
    event.load.queueNs = e.submittedNs - std::min(e.submittedNs, e.askedNs);
    event.load.readNs = now - std::min(now, e.submittedNs);
    event.load.needNs = e.demanded ? now - std::min(now, e.askedNs) : 0;
    ring->write(event);
}

// ---- prefetch threads ----

void StoreCore::prefetchLoop(int index) {
    nameThread("prefetch-" + std::to_string(index));
    Worker& me = m_workers[size_t(index)];
    Lock lock(m_mutex);
    while (!m_stopping && index < m_prefetchThreads) {
        const int64_t key = nextPrefetch();
        if (key >= 0) {
            prefetch(lock, uint32_t(key), me.ring);
            continue;
        }
        me.seen = m_wakes;
        if (m_doneWaiters > 0) m_doneCv.notify_all();
        m_prefetchCv.wait(lock);
    }
    me.running = false;
    if (m_doneWaiters > 0) m_doneCv.notify_all();
}

// Reads one record on this thread; holds the lock before and after, not between.
void StoreCore::prefetch(Lock& lock, uint32_t key, EventRing* ring) {
    Entry& e = m_entries[key];
    const RecordRead record = begin(key);
    lock.unlock();
    const ReadOutcome outcome = m_parts.queue->read(record);
    lock.lock();
    e.submittedNs = outcome.submittedNs;
    uint64_t now = m_parts.clock->now();
    while (outcome.status.ok() && !m_stopping && !m_link.done(e.transfer, now)) {
        m_parts.clock->waitUntil(m_linkCv, lock, m_link.finishAt(e.transfer, now));
        now = m_parts.clock->now();
    }
    report(key, outcome.status, now, ring);
    finishRead(key, outcome.status, now);
    startReads();
    if (m_freed.empty()) return;
    unlockAndFree(lock);
    lock.lock();
}

// ---- the end of a read ----

void StoreCore::finishRead(uint32_t key, const Status& status, uint64_t now) {
    Entry& e = m_entries[key];
    m_link.end(e.transfer, now);
    --(e.demanded ? m_demandReading : m_prefetchReading);
    e.demanded = false;
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
    ++(e.byPrefetch ? m_stats.prefetchLoads : m_stats.demandLoads);
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
        e.byPrefetch = false;
        setState(key, State::Queued);
        m_demand.push_front(key);
        return;
    }
    dropSlot(key);
    if (held(e))
        fail(key, status);
    else
        setState(key, State::OnDisk);
}

// ---- prefetch ----

void StoreCore::hint(int64_t moeLayer, std::span<const uint16_t> experts) {
    if (moeLayer < 0 || moeLayer >= moeLayers()) return;
    Lock lock(m_mutex);
    clearHints(moeLayer);
    if (m_source == PrefetchSource::Off || m_depth == 0 || m_prefetchThreads == 0) return;
    std::vector<uint32_t>& hints = m_hints[size_t(moeLayer)];
    for (auto expert = experts.rbegin(); expert != experts.rend(); ++expert) {
        if (*expert >= m_shape.experts) continue;
        const uint32_t key = keyOf(moeLayer, *expert);
        if (m_entries[key].state == State::OnDisk) hints.push_back(key);
    }
    m_hinted += int64_t(hints.size());
    m_hintNs[size_t(moeLayer)] = hints.empty() ? 0 : m_parts.clock->now();
    wakePrefetch();
}

bool StoreCore::mayPrefetch(uint64_t now) {
    return m_hinted > 0 && m_demand.empty() && m_demandReading == 0 && m_needSlot.empty() &&
           m_prefetchReading < m_ioDepth && m_unusedPrefetches < m_capacity / 4 && m_link.idle(now);
}

int64_t StoreCore::nextPrefetch() {
    if (m_hinted == 0 || !mayPrefetch(m_parts.clock->now())) return -1;
    for (int64_t step = 1; step <= std::min(m_depth, moeLayers()); ++step) {
        const int64_t layer = (m_layer + step) % moeLayers();
        std::vector<uint32_t>& hints = m_hints[size_t(layer)];
        while (!hints.empty()) {
            const uint32_t key = hints.back();
            Entry& e = m_entries[key];
            const bool absent = e.state == State::OnDisk;
            std::byte* const memory = absent ? slotForPrefetch(key) : nullptr;
            if (absent && memory == nullptr) return -1;
            hints.pop_back();
            --m_hinted;
            if (!absent) continue;
            e.memory = memory;
            e.byPrefetch = e.unused = true;
            e.retried = e.demanded = false;
            e.uses = 0;
            e.epoch = m_epochs[size_t(layer)];
            e.askedNs = m_hintNs[size_t(layer)];
            ++m_unusedPrefetches;
            ++m_prefetchReading;
            ++m_stats.prefetchIssued;
            return key;
        }
    }
    return -1;
}

void StoreCore::wakePrefetch() {
    if (m_hinted == 0 || m_prefetchThreads == 0) return;
    ++m_wakes;
    m_prefetchCv.notify_all();
}

Status StoreCore::startWorkers(int64_t threads) {
    for (int64_t i = 0; i < threads; ++i) {
        Worker& worker = m_workers[size_t(i)];
        {
            Lock lock(m_mutex);
            if (std::exchange(worker.running, true)) continue;
        }
        if (worker.thread.joinable()) worker.thread.join();  // it has left its loop
        if (worker.ring == nullptr && m_telemetry != nullptr)
            worker.ring = m_telemetry->addRing("prefetch-" + std::to_string(i));
        try {
            worker.thread = std::thread([this, i] { prefetchLoop(int(i)); });
        } catch (const std::system_error& error) {
            Lock lock(m_mutex);
            worker.running = false;
            m_prefetchThreads = i;
            return {Code::OutOfMemory, std::string("Cannot start a thread: ") + error.what()};
        }
    }
    return {};
}

KnobState StoreCore::setPrefetchThreads(int64_t threads) {
    std::lock_guard start(m_startMutex);
    KnobState state{threads, std::clamp<int64_t>(threads, 0, kMaxPrefetchThreads), {}};
    if (state.effective != threads)
        state.reason = "the range is 0 to " + std::to_string(kMaxPrefetchThreads) + " threads";
    {
        Lock lock(m_mutex);
        m_prefetchThreads = state.effective;
        if (m_prefetchThreads == 0)
            for (int64_t layer = 0; layer < moeLayers(); ++layer) clearHints(layer);
        m_prefetchCv.notify_all();
    }
    if (Status status = startWorkers(state.effective); !status.ok()) {
        Lock lock(m_mutex);
        state.effective = m_prefetchThreads;
        state.reason = status.message();
    }
    return state;
}

KnobState StoreCore::setPrefetch(PrefetchSource source, int64_t depth) {
    KnobState state{depth, std::clamp<int64_t>(depth, 0, 4), {}};
    if (state.effective != depth) state.reason = "the range is 0 to 4 layers";
    Lock lock(m_mutex);
    flushOutcome(m_parts.clock->now(), true);  // counted for the source they came from
    m_source = source;
    m_depth = state.effective;
    if (m_source == PrefetchSource::Off || m_depth == 0)
        for (int64_t layer = 0; layer < moeLayers(); ++layer) clearHints(layer);
    wakePrefetch();
    return state;
}

void StoreCore::flushOutcome(uint64_t now, bool force) {
    constexpr uint64_t kIntervalNs = 100'000'000;
    if (m_ring == nullptr || (!force && now < m_outcomeNs + kIntervalNs)) return;
    m_outcomeNs = now;
    Event event{};
    event.type = EventType::PrefetchOutcome;
    event.timeNs = now;
    event.prefetch.issued = uint32_t(m_stats.prefetchIssued - m_outcome.prefetchIssued);
    event.prefetch.useful = uint32_t(m_stats.prefetchUseful - m_outcome.prefetchUseful);
    event.prefetch.late = uint32_t(m_stats.prefetchLate - m_outcome.prefetchLate);
    event.prefetch.wasted = uint32_t(m_stats.prefetchWasted - m_outcome.prefetchWasted);
    event.prefetch.source = uint8_t(m_source);
    const PrefetchEvent& p = event.prefetch;
    if (p.issued + p.useful + p.late + p.wasted == 0) return;
    if (m_ring->write(event)) m_outcome = m_stats;  // a full ring: told next time
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
        return looked && m_demand.empty() && m_demandReading + m_prefetchReading == 0;
    });
    --m_doneWaiters;
}

}  // namespace colibri
