// SPDX-License-Identifier: Apache-2.0
// The store's threads: what runs when the read queue has read a record, the link, the prefetch
// threads and the cores they are bound to, and the three background jobs: warming the cache,
// preparing memory, moving slots.
#include <pthread.h>
#include <sched.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <new>
#include <utility>

#include "engine/base/thread.h"
#include "engine/store/expert_store.h"

namespace colibri {

namespace {

constexpr size_t kLaneEvents = 1 << 12, kWarmEvents = 1 << 12;
constexpr int kMostCores = 1024;  // what a cpu_set_t holds
// If there is no request for this long, nothing is being computed.
constexpr uint64_t kIdleNs = 100'000'000;
constexpr int kMemoryNice = 10;
// How often and how long the move of a slot is retried: kernel 6.1 holds pages that io_uring no
// longer needs for a second or two.
constexpr int64_t kMoveRounds = 50;
constexpr std::chrono::milliseconds kMovePause{100}, kReadPause{1};

}  // namespace

// ---- demand reads and the link ----

Status ExpertStore::openLanes(int64_t depth) {
    COLIBRI_TRY(m_parts.queue->setDepth(depth));
    for (;;) {
        int64_t lane = 0;
        {
            MutexLock lock(m_mutex);
            lane = m_reads.lanes();
        }
        if (lane >= depth) return {};
        EventRing* const ring =
            m_telemetry == nullptr
                ? nullptr
                : m_telemetry->addRing("expert-io-" + std::to_string(lane), kLaneEvents);
        MutexLock lock(m_mutex);
        m_reads.addLane(ring);
    }
}

void ExpertStore::onRead(uint32_t key, const ReadOutcome& outcome) {
    MutexLock lock(m_mutex);
    m_reads.endDiskRead(key, outcome);
    afterRead();
}

void ExpertStore::afterRead() {
    m_reads.startReads();
    reportPrefetches(m_parts.clock->now(), false);
    m_prefetcher.wake();
    freeMemory();
}

// Ends demand reads when the link has carried them.
void ExpertStore::linkLoop() {
    MutexLock lock(m_mutex);
    while (!m_stopping) {
        const uint64_t now = m_parts.clock->now();
        const int64_t key = m_reads.nextOnLink(now);
        if (key < 0) {
            m_conditions.linkChanged.wait(m_mutex);
        } else if (const uint64_t at = m_reads.carriedAt(uint32_t(key), now); at > now) {
            m_parts.clock->waitUntil(m_conditions.linkChanged, m_mutex, at);
        } else {
            m_reads.finish(uint32_t(key), {});
            afterRead();
        }
    }
}

// ---- prefetch threads ----

Status ExpertStore::startWorkers(int64_t threads) {
    for (int64_t i = 0; i < threads; ++i) {
        Worker& worker = m_workers[size_t(i)];
        {
            MutexLock lock(m_mutex);
            if (std::exchange(m_workerStates[size_t(i)].running, true)) continue;
        }
        if (worker.thread.joinable()) worker.thread.join();  // it has left its loop
        const std::string name = "prefetch-" + std::to_string(i);
        if (worker.ring == nullptr && m_telemetry != nullptr)
            worker.ring = m_telemetry->addRing(name);
        const Status status = startThread(
            worker.thread, name, [this, i, ring = worker.ring] { prefetchLoop(size_t(i), ring); });
        if (!status.ok()) {
            MutexLock lock(m_mutex);
            m_workerStates[size_t(i)].running = false;
            m_prefetcher.setThreads(i);
            return status;
        }
        bindToCore(i);
    }
    return {};
}

void ExpertStore::prefetchLoop(size_t index, EventRing* ring) {
    MutexLock lock(m_mutex);
    WorkerState& me = m_workerStates[index];
    while (!m_stopping && int64_t(index) < m_prefetcher.threads()) {
        const int64_t key = m_prefetcher.next(m_parts.clock->now());
        if (key >= 0) {
            readHere(uint32_t(key), ring);
            continue;
        }
        me.seen = m_prefetcher.wakes();
        m_conditions.tellReadEnded();
        m_conditions.prefetchMayBegin.wait(m_mutex);
    }
    me.running = false;
    m_conditions.tellReadEnded();
}

void ExpertStore::readHere(uint32_t key, EventRing* ring) {
    ExpertEntry& e = m_slots[key];
    const RecordRead record = m_reads.beginPrefetch(key);
    e.prefetchOnDisk = e.reason == ReadReason::Prefetch;
    if (e.prefetchOnDisk) m_judge.diskReadBegins(m_parts.clock->now());
    ReadOutcome outcome;
    {
        const MutexRelease released(m_mutex);
        outcome = m_parts.queue->read(record);
    }
    e.submittedNs = outcome.submittedNs;
    e.diskEndNs = m_parts.clock->now();
    m_reads.leaveDisk(key);
    while (outcome.status.ok() && !m_stopping) {
        const uint64_t now = m_parts.clock->now(), at = m_reads.carriedAt(key, now);
        if (at <= now) break;
        m_parts.clock->waitUntil(m_conditions.linkChanged, m_mutex, at);
    }
    m_reads.finish(key, outcome.status, ring);
    afterRead();
}

// ---- the cores of prefetch threads ----

void ExpertStore::bindToCore(int64_t thread) {
    Worker& worker = m_workers[size_t(thread)];
    worker.coreReason.clear();
    cpu_set_t set = m_allowedCores;
    if (worker.core >= 0) {
        CPU_ZERO(&set);
        CPU_SET(size_t(worker.core), &set);
    }
    const int error = pthread_setaffinity_np(worker.thread.native_handle(), sizeof set, &set);
    if (error != 0)
        worker.coreReason = "prefetch thread " + std::to_string(thread) + ", core " +
                            std::to_string(worker.core) + ": " + std::strerror(error);
}

KnobState ExpertStore::setPrefetchThreadCore(int64_t thread, int64_t core) {
    MutexLock start(m_startMutex);
    if (thread < 0 || thread >= int64_t(m_workers.size()))
        return {core, -1,
                "prefetch threads are numbered 0 to " + std::to_string(m_workers.size() - 1)};
    if (core < -1 || core >= kMostCores)
        return {core, -1, "cores are numbered from 0; -1 allows any core"};
    m_workers[size_t(thread)].core = int(core);
    bool running = false;
    {
        MutexLock lock(m_mutex);
        running = m_workerStates[size_t(thread)].running;
    }
    if (running) bindToCore(thread);
    return coreState(thread);
}

KnobState ExpertStore::coreState(int64_t thread) const {
    Worker& worker = m_workers[size_t(thread)];
    KnobState state{worker.core, -1, worker.coreReason};
    {
        MutexLock lock(m_mutex);
        if (!m_workerStates[size_t(thread)].running) {
            if (worker.core >= 0)
                state.reason = "the thread is not running: prefetch_threads is " +
                               std::to_string(m_prefetcher.threads());
            return state;
        }
    }
    // Read back from the kernel.
    cpu_set_t set;
    CPU_ZERO(&set);
    if (pthread_getaffinity_np(worker.thread.native_handle(), sizeof set, &set) != 0 ||
        CPU_COUNT(&set) != 1)
        return state;
    for (int core = 0; core < CPU_SETSIZE; ++core)
        if (CPU_ISSET(size_t(core), &set) && worker.core >= 0) state.effective = core;
    return state;
}

KnobState ExpertStore::prefetchThreadCore(int64_t thread) const {
    MutexLock start(m_startMutex);
    if (thread < 0 || thread >= int64_t(m_workers.size())) return {-1, -1, "no such thread"};
    return coreState(thread);
}

std::vector<int> ExpertStore::boundCores() const {
    MutexLock start(m_startMutex);
    std::vector<int> cores;
    for (size_t i = 0; i < m_workers.size(); ++i) {
        if (m_workers[i].core < 0) continue;
        const KnobState state = coreState(int64_t(i));
        if (state.effective >= 0) cores.push_back(int(state.effective));
    }
    std::sort(cores.begin(), cores.end());
    cores.erase(std::unique(cores.begin(), cores.end()), cores.end());
    return cores;
}

// ---- warm start ----

Status ExpertStore::warm(std::vector<uint32_t> keys) {
    MutexLock start(m_startMutex);
    {
        MutexLock lock(m_mutex);
        if (m_warming || m_shape.expertCount() == 0) return {};
        std::erase_if(keys, [all = m_shape.expertCount()](uint32_t key) { return key >= all; });
        m_warm.assign(keys.rbegin(), keys.rend());
        m_warming = true;
    }
    if (m_warmThread.joinable()) m_warmThread.join();  // it has left its loop
    if (m_warmRing == nullptr && m_telemetry != nullptr)
        m_warmRing = m_telemetry->addRing("expert-warm", kWarmEvents);
    Status status =
        startThread(m_warmThread, "expert-warm", [this, ring = m_warmRing] { warmLoop(ring); });
    if (status.ok()) return status;
    MutexLock lock(m_mutex);
    m_warming = false;
    return status;
}

bool ExpertStore::idle() {
    return !m_reads.demandWaits() && m_reads.quiet() && m_reads.linkIdle(m_parts.clock->now());
}

// Fills slots that are still free; nothing is evicted.
void ExpertStore::warmLoop(EventRing* ring) {
    MutexLock lock(m_mutex);
    while (!m_stopping && !m_warm.empty() && m_slots.used() < m_slots.capacity()) {
        if (!idle()) {
            m_conditions.waitForRead(m_mutex);
            continue;
        }
        const uint32_t key = m_warm.back();
        m_warm.pop_back();
        ExpertEntry& e = m_slots[key];
        if (e.state != ExpertState::OnDisk) continue;
        const Slot slot = m_slots.newSlot();
        if (!slot) break;
        m_slots.fill(key, slot);
        e.reason = ReadReason::WarmStart;
        e.unused = e.retried = e.demanded = false;
        e.uses = 0;
        e.prefetchStep =
            m_slots.steps().requestsOf(m_shape.layerOf(key)) - 1;  // its layer has passed
        e.requestedNs = m_parts.clock->now();
        readHere(key, ring);
    }
    m_warming = false;
    m_conditions.tellReadEnded();
}

// ---- memory ahead of need ----

bool ExpertStore::computing(uint64_t now) {
    return m_reads.demandWaits() || now < m_requestNs + kIdleNs;
}

void ExpertStore::memoryLoop() {
    setpriority(PRIO_PROCESS, id_t(gettid()), kMemoryNice);  // of this thread; may be refused
    MutexLock lock(m_mutex);
    PreparedSlots& prepared = m_slots.prepared();
    while (!m_stopping) {
        const uint64_t now = m_parts.clock->now();
        if (m_slots.slotsToPrepare() == 0) {
            noteEndOfPhase();
            m_conditions.prepareSlots.wait(m_mutex);
        } else if (now < prepared.restUntilNs() && computing(now)) {
            m_parts.clock->waitUntil(m_conditions.prepareSlots, m_mutex, prepared.restUntilNs());
        } else {
            prepareSlot();
        }
    }
}

// Prepares one more slot. Releases the lock while it does so.
void ExpertStore::prepareSlot() {
    PreparedSlots& prepared = m_slots.prepared();
    const NumaPlace place = m_slots.mover().place();
    const uint32_t serial = m_slots.mover().serial();
    const uint64_t from = m_parts.clock->now();
    prepared.beginWork(from);
    std::byte* memory = nullptr;
    std::string refusal;
    bool wanted = true, whole = false;
    {
        const MutexRelease released(m_mutex);
        const auto goOn = [&] {
            MutexLock look(m_mutex);
            wanted =
                !m_stopping && serial == m_slots.mover().serial() && m_slots.slotsToPrepare() > 0;
            return wanted;
        };
        try {
            memory = m_parts.memory->allocate(m_slotBytes);
            if (memory != nullptr && place.mode != NumaMode::Off) {
                const auto placed = m_parts.numa->place({memory, size_t(m_slotBytes)}, place);
                if (!placed.ok()) refusal = placed.status().message();
            }
            whole = memory != nullptr && m_parts.memory->populate(memory, m_slotBytes, goOn);
        } catch (const std::bad_alloc&) {
        }
    }
    const uint64_t now = m_parts.clock->now();
    prepared.endWork(now);
    if (!refusal.empty()) m_slots.mover().fail(refusal);
    if (whole && serial == m_slots.mover().serial() && m_slots.slotsToPrepare() > 0) {
        try {
            m_slots.addPrepared(memory, now - from);
            return;
        } catch (const std::bad_alloc&) {
            whole = false;
        }
    }
    prepared.setFull(!whole && wanted);  // until the size is set again
    if (memory == nullptr) return;
    const MutexRelease released(m_mutex);
    m_parts.memory->free(memory, m_slotBytes);
}

void ExpertStore::noteEndOfPhase() {
    const uint64_t now = m_parts.clock->now();
    try {
        const std::string text = m_slots.prepared().endPhase(now);
        if (text.empty() || m_ring == nullptr) return;
        Event event{};
        event.type = EventType::Note;
        event.timeNs = now;
        event.note = {};
        text.copy(event.note.text, sizeof event.note.text - 1);
        m_ring->write(event);
    } catch (const std::bad_alloc&) {  // then there is no note
    }
}

// ---- moving slots ----

// Moves slots in the background, one at a time: a slot is pinned while it moves, and its readers
// are not disturbed. A record that is being read waits for its turn. A slot that the kernel
// cannot move now is retried, as long as that helps.
void ExpertStore::moverLoop() {
    MutexLock lock(m_mutex);
    const SlotMover& mover = m_slots.mover();
    size_t from = 0;
    uint32_t serial = mover.serial();
    int64_t unmoved = 0, rounds = 0;  // slots in a row that did not move; rounds of nothing else
    while (!m_stopping) {
        if (serial != mover.serial()) unmoved = rounds = 0;
        serial = mover.serial();
        if (unmoved > 0 && unmoved >= mover.misplaced()) {
            unmoved = 0;
            ++rounds;
            m_conditions.moveSlots.waitFor(m_mutex, kMovePause);
            continue;
        }
        const int64_t key = m_slots.nextMisplaced(from);
        if (key >= 0) {
            const bool moved = moveSlot(uint32_t(key), rounds == kMoveRounds);
            unmoved = moved ? 0 : unmoved + 1;
            if (moved && rounds < kMoveRounds) rounds = 0;
        } else if (mover.misplaced() > 0) {
            m_conditions.moveSlots.waitFor(m_mutex, kReadPause);  // the others are being read
        } else {
            m_conditions.moveSlots.wait(m_mutex);
        }
    }
}

// False: the kernel cannot move it now. Releases the lock while it works.
bool ExpertStore::moveSlot(uint32_t key, bool lastTry) {
    SlotMover& mover = m_slots.mover();
    ExpertEntry& e = m_slots[key];
    std::byte* const memory = e.memory;
    const NumaPlace place = mover.place();
    const uint32_t serial = mover.serial();
    ++e.pins;
    Result<bool> moved = false;
    bool done = false;
    {
        const MutexRelease released(m_mutex);
        m_parts.queue->keepMovable(memory, true);
        try {
            moved = m_parts.numa->place({memory, size_t(m_slotBytes)}, place);
        } catch (const std::bad_alloc&) {  // it is tried again
        }
        done = !moved.ok() || *moved || lastTry;
        if (done) m_parts.queue->keepMovable(memory, false);
    }
    if (done) mover.endMove(memory, serial);
    if (!moved.ok()) {
        mover.fail(moved.status().message());
    } else if (done && !*moved) {
        mover.fail("the kernel did not move some pages");
    }
    --e.pins;
    releaseUnheld(key);
    freeMemory();
    return done;
}

}  // namespace colibri
