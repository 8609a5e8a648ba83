// SPDX-License-Identifier: Apache-2.0
// Reads that nobody waits for: prefetches of hinted experts, and the experts of earlier runs at the
// start. Both use only idle link time.
#include <pthread.h>

#include <algorithm>
#include <cstring>
#include <system_error>
#include <utility>

#include "engine/base/format.h"
#include "engine/store/store_core.h"

namespace colibri {

namespace {

// Prefetch is judged over so many outcomes; after a pause over fewer.
constexpr int64_t kWindow = 400, kProbeWindow = 100;
constexpr size_t kWarmEvents = 1 << 12;
constexpr int64_t kWorstPercent = 75;
constexpr int64_t kAloneReads = 64;  // so many reads weigh in the mean time of a read alone
// Layer requests without prefetch, doubled each time a probe fails.
constexpr int64_t kFirstPause = 2048, kLongestPause = 64 * kFirstPause;

void nameThread(const std::string& name) {
    pthread_setname_np(pthread_self(), name.c_str());
}

}  // namespace

// ---- prefetch threads ----

void StoreCore::prefetchLoop(int index) {
    nameThread("prefetch-" + std::to_string(index));
    Worker& me = m_workers[size_t(index)];
    Lock lock(m_mutex);
    while (!m_stopping && index < m_prefetchThreads) {
        const int64_t key = nextPrefetch();
        if (key >= 0) {
            readHere(lock, uint32_t(key), me.ring);
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
void StoreCore::readHere(Lock& lock, uint32_t key, EventRing* ring) {
    Entry& e = m_entries[key];
    const RecordRead record = begin(key);
    e.onDisk = e.reason == LoadReason::Prefetch;
    if (e.onDisk) m_prefetchDisk.begin(m_parts.clock->now());
    lock.unlock();
    const ReadOutcome outcome = m_parts.queue->read(record);
    lock.lock();
    e.submittedNs = outcome.submittedNs;
    uint64_t now = m_parts.clock->now();
    leaveDisk(e);
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

// ---- prefetch ----

void StoreCore::hint(int64_t moeLayer, std::span<const uint16_t> experts) {
    if (moeLayer < 0 || moeLayer >= moeLayers()) return;
    Lock lock(m_mutex);
    clearHints(moeLayer);
    if (m_source == PrefetchSource::Off || m_depth == 0 || m_prefetchThreads == 0 ||
        m_pauseLeft > 0)
        return;
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
            hints.pop_back();
            --m_hinted;
            if (!absent) continue;
            const Slot slot = slotForPrefetch(key);  // may end in a pause: no hints left
            if (slot.memory == nullptr) {
                hints.push_back(key);
                ++m_hinted;
                return -1;
            }
            e.memory = slot.memory;
            e.fresh = slot.fresh;
            e.reason = LoadReason::Prefetch;
            e.unused = true;
            e.source = m_source;
            e.retried = e.demanded = false;
            e.uses = 0;
            e.epoch = m_epochs[size_t(layer)];
            e.askedNs = m_hintNs[size_t(layer)];
            ++m_unusedPrefetches;
            ++m_prefetchReading;
            count(&PrefetchCounts::issued, e.source);
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
            bindToCore(worker, i);
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
    if (m_source != source || m_depth != state.effective) endPause();
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
    for (size_t source = 0; source < m_outcome.size(); ++source) {
        const PrefetchCounts &total = m_stats.bySource[source], &told = m_outcome[source];
        Event event{};
        event.type = EventType::PrefetchOutcome;
        event.timeNs = now;
        event.prefetch.issued = uint32_t(total.issued - told.issued);
        event.prefetch.useful = uint32_t(total.useful - told.useful);
        event.prefetch.late = uint32_t(total.late - told.late);
        event.prefetch.wasted = uint32_t(total.wasted - told.wasted);
        event.prefetch.source = uint8_t(source);
        const PrefetchEvent& p = event.prefetch;
        if (p.issued + p.useful + p.late + p.wasted == 0) continue;
        if (m_ring->write(event)) m_outcome[source] = total;  // a full ring: told next time
    }
}

// ---- back-off ----

// A prefetch begins while no demand read is under way, but may still be read when one comes: the
// disk then serves both. What that costs is how much longer the demand read took than those that
// met no prefetch; at most the time both were under way. Of demand reads begun together the first
// stands for all, as they wait together. A limited link adds nothing: demand overtakes on it.

void StoreCore::leaveDisk(Entry& e) {
    if (std::exchange(e.onDisk, false)) m_prefetchDisk.end(m_parts.clock->now());
}

void StoreCore::measureDelay(const Entry& e, uint64_t now) {
    if (!e.leads) return;
    const auto took = int64_t(now - std::min(now, e.submittedNs));
    const auto shared = int64_t(m_prefetchDisk.at(now) - e.prefetchNs);
    if (shared == 0) {
        m_alone = std::min(m_alone + 1, kAloneReads);
        m_aloneNs += (took - m_aloneNs) / m_alone;
    } else if (m_alone > 0) {
        m_delayedNs += std::clamp(took - m_aloneNs, -shared, shared);
    }
}

std::string StoreCore::verdict() const {
    const std::string window = " in the last " + formatCount(m_judged);
    if (m_judgedBad * 100 >= m_judged * kWorstPercent) {
        return "backed off: " + formatPercent(double(m_judgedBad) / double(m_judged), 0) +
               " late or wasted" + window;
    }
    if (m_delayedNs <= m_savedNs) return {};
    return "backed off: delayed other reads by " + formatMs(double(m_delayedNs) * 1e-6) +
           " and saved " + formatMs(double(m_savedNs) * 1e-6) + window;
}

void StoreCore::judge(bool bad, uint64_t savedNs) {
    if (m_pauseLeft > 0) return;  // begun before the pause
    ++m_judged;
    m_judgedBad += bad;
    m_savedNs += int64_t(savedNs);
    if (m_judged < m_window) return;
    try {
        m_backOff = verdict();
    } catch (const std::bad_alloc&) {  // judged at the next outcome
        return;
    }
    if (m_backOff.empty()) {
        m_window = kWindow;
        m_nextPause = kFirstPause;
        for (int64_t* sum : {&m_judged, &m_judgedBad, &m_savedNs, &m_delayedNs}) {
            *sum /= 2;  // the window slides by halves
        }
        return;
    }
    m_pauseLeft = m_nextPause;
    m_nextPause = std::min(2 * m_nextPause, kLongestPause);
    for (int64_t layer = 0; layer < moeLayers(); ++layer) clearHints(layer);
    tellPrefetch();
}

void StoreCore::passPause() {
    if (m_pauseLeft == 0 || --m_pauseLeft > 0) return;
    m_window = kProbeWindow;
    m_judged = m_judgedBad = m_savedNs = m_delayedNs = 0;
    m_backOff.clear();
    tellPrefetch();
}

void StoreCore::endPause() {
    m_window = kWindow;
    m_nextPause = kFirstPause;
    m_judged = m_judgedBad = m_savedNs = m_delayedNs = m_pauseLeft = 0;
    m_backOff.clear();
}

KnobState StoreCore::prefetchSourceNow() const {
    const PrefetchSource now = m_pauseLeft > 0 ? PrefetchSource::Off : m_source;
    return {int64_t(m_source), int64_t(now), m_backOff};
}

KnobState StoreCore::prefetchState() {
    Lock lock(m_mutex);
    return prefetchSourceNow();
}

void StoreCore::tellPrefetch() {
    if (m_ring == nullptr) return;
    const KnobState state = prefetchSourceNow();
    Event event{};
    event.type = EventType::KnobChanged;
    event.timeNs = m_parts.clock->now();
    event.knob = {};
    event.knob.knob = uint8_t(KnobId::PrefetchSource);
    event.knob.requested = state.requested;
    event.knob.effective = state.effective;
    std::strncpy(event.knob.reason, state.reason.c_str(), sizeof event.knob.reason - 1);
    m_ring->write(event);
}

// ---- warm start ----

Status StoreCore::warm(std::vector<uint32_t> keys) {
    std::lock_guard start(m_startMutex);
    {
        Lock lock(m_mutex);
        if (m_warming || m_entries.empty()) return {};
        std::erase_if(keys, [&](uint32_t key) { return key >= m_entries.size(); });
        m_warm.assign(keys.rbegin(), keys.rend());
        m_warming = true;
    }
    if (m_warmThread.joinable()) m_warmThread.join();  // it has left its loop
    if (m_warmRing == nullptr && m_telemetry != nullptr)
        m_warmRing = m_telemetry->addRing("expert-warm", kWarmEvents);
    try {
        m_warmThread = std::thread([this] { warmLoop(); });
    } catch (const std::system_error& error) {
        Lock lock(m_mutex);
        m_warming = false;
        return {Code::OutOfMemory, std::string("Cannot start a thread: ") + error.what()};
    }
    return {};
}

bool StoreCore::idle() {
    return m_demand.empty() && m_needSlot.empty() && m_demandReading + m_prefetchReading == 0 &&
           m_link.idle(m_parts.clock->now());
}

// Fills slots that are still free; what is there is never displaced.
void StoreCore::warmLoop() {
    nameThread("expert-warm");
    Lock lock(m_mutex);
    while (!m_stopping && !m_warm.empty() && m_used < m_capacity) {
        if (!idle()) {
            ++m_doneWaiters;
            m_doneCv.wait(lock);
            --m_doneWaiters;
            continue;
        }
        const uint32_t key = m_warm.back();
        m_warm.pop_back();
        Entry& e = m_entries[key];
        if (e.state != State::OnDisk) continue;
        const Slot slot = newSlot();
        if (slot.memory == nullptr) break;
        e.memory = slot.memory;
        e.fresh = slot.fresh;
        e.reason = LoadReason::WarmStart;
        e.unused = e.retried = e.demanded = false;
        e.uses = 0;
        e.epoch = m_epochs[size_t(layerOf(key))] - 1;  // of no layer to come: the coldest
        e.askedNs = m_parts.clock->now();
        ++m_prefetchReading;
        readHere(lock, key, m_warmRing);
    }
    m_warming = false;
    if (m_doneWaiters > 0) m_doneCv.notify_all();
}

std::vector<uint32_t> StoreCore::lookupCounts() {
    Lock lock(m_mutex);
    return m_lookups;
}

}  // namespace colibri
