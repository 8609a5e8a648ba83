// SPDX-License-Identifier: Apache-2.0
// The engine's interface of the store: requesting experts, waiting for them, and the figures.
#include "engine/store/expert_store.h"

#include <algorithm>
#include <utility>

#include "engine/base/format.h"
#include "engine/base/thread.h"
#include "engine/store/store_factory.h"

namespace colibri {

namespace {

int64_t largestRecord(const StoreShape& shape) {
    const std::vector<int64_t>& bytes = shape.recordBytes;
    return bytes.empty() ? 0 : *std::max_element(bytes.begin(), bytes.end());
}

}  // namespace

// ---- start and end ----

Result<std::unique_ptr<ExpertStore>> ExpertStore::open(const ContainerInfo& info,
                                                       const StoreOptions& options,
                                                       Telemetry* telemetry) {
    auto reader = FileReader::open(info);
    if (!reader) return reader.status();
    StoreParts parts;
    parts.directWorks = (*reader)->directWorks();
    parts.queue = makeReadQueue(std::move(*reader));
    return StoreFactory::open(StoreFactory::shapeOf(info), options, telemetry, std::move(parts));
}

ExpertStore::ExpertStore(StoreShape shape, const StoreOptions& options, Telemetry* telemetry,
                         StoreParts parts)
    : m_shape(std::move(shape)),
      m_parts(std::move(parts)),
      m_telemetry(telemetry),
      m_residency(m_shape.layers.size() * size_t(m_shape.experts)),
      m_slotBytes(largestRecord(m_shape)),
      m_slots({m_shape, m_residency, *m_parts.memory, *m_parts.queue, *m_parts.clock, m_judge,
               m_counters},
              *m_parts.numa, options),
      m_reads({m_shape, m_slots, *m_parts.queue, *m_parts.clock, m_judge, m_counters, m_conditions},
              options.ioMode, options.ioDepth),
      m_prefetcher({m_shape, m_slots, m_reads, m_judge, m_conditions}, options),
      m_lookups(size_t(m_shape.expertCount())),
      m_workerStates(size_t(knobRow(KnobId::PrefetchThreads).max)),
      m_workers(m_workerStates.size()) {
    sched_getaffinity(0, sizeof m_allowedCores, &m_allowedCores);
    m_reads.setLinkRate(options.linkLimit * 1'000'000, m_parts.clock->now());
}

Status ExpertStore::start() {
    MutexLock start(m_startMutex);
    int64_t threads = 0, depth = 0;
    bool prepares = false;
    {
        MutexLock lock(m_mutex);
        const int64_t free = m_parts.memory->freeBytes(), needed = m_slots.capacity() * m_slotBytes;
        if (free > 0 && needed > free)
            return {Code::OutOfMemory,
                    "The expert cache needs " + formatGiB(double(needed)) + ", " +
                        formatGiB(double(free)) + " are free",
                    "Choose a smaller cache size"};
        if (m_shape.expertCount() == 0) return {};
        if (m_telemetry != nullptr) m_ring = m_telemetry->addRing("expert-store");
        m_slots.setEvents(m_ring);
        threads = m_prefetcher.threads();
        depth = m_reads.depth();
        prepares = m_slots.prepared().enabled();
    }
    const auto done = [this](uint32_t key, const ReadOutcome& outcome) { onRead(key, outcome); };
    COLIBRI_TRY(m_parts.queue->start(m_shape, *m_parts.clock, depth, done));
    COLIBRI_TRY(startThread(m_linkThread, "expert-link", [this] { linkLoop(); }));
    COLIBRI_TRY(openLanes(depth));
    if (prepares)
        COLIBRI_TRY(startThread(m_memoryThread, "expert-memory", [this] { memoryLoop(); }));
    return startWorkers(threads);
}

ExpertStore::~ExpertStore() {
    {
        MutexLock lock(m_mutex);
        m_stopping = true;
        m_reads.stop();
        reportPrefetches(m_parts.clock->now(), true);
        for (Condition* condition :
             {&m_conditions.readEnded, &m_conditions.linkChanged, &m_conditions.prefetchMayBegin,
              &m_conditions.prepareSlots, &m_conditions.moveSlots})
            condition->notifyAll();
    }
    MutexLock start(m_startMutex);
    for (Worker& worker : m_workers)
        if (worker.thread.joinable()) worker.thread.join();
    for (std::thread* thread : {&m_linkThread, &m_memoryThread, &m_moverThread, &m_warmThread})
        if (thread->joinable()) thread->join();
    m_parts.queue->stop();
}

// ---- requests ----

bool ExpertStore::valid(const Ticket& ticket) const {
    return ticket.moeLayer < m_shape.layers.size() && ticket.expert < m_shape.experts;
}

void ExpertStore::request(int64_t moeLayer, std::span<const uint16_t> experts,
                          std::vector<Ticket>& out, uint32_t step) {
    out.clear();
    const uint64_t now = m_parts.clock->now();
    MutexLock lock(m_mutex);
    m_requestNs = now;
    const bool known = moeLayer >= 0 && moeLayer < m_shape.layerCount();
    if (known) {
        m_prefetcher.passLayers(moeLayer);
        m_slots.steps().request(moeLayer);
    }
    m_judge.layerRequested();
    // Find: hold all of them first, so that no miss evicts an expert of the same request.
    for (uint16_t expert : experts) {
        Ticket& ticket = out.emplace_back();
        ticket.moeLayer = uint16_t(known ? moeLayer : UINT16_MAX);
        ticket.expert = expert;
        ticket.requestedNs = now;
        if (!valid(ticket)) continue;
        const uint32_t key = m_shape.keyOf(moeLayer, expert);
        lookUp(key, now, ticket);
        if (!ticket.hit) m_slots[key].neededStep = step;
    }
    if (known) m_slots.order().releaseLayer(moeLayer);
    // Give slots to those that need one, and order the others by this use.
    for (const Ticket& ticket : out) {
        if (!valid(ticket)) continue;
        const uint32_t key = m_shape.keyOf(moeLayer, ticket.expert);
        if (m_slots[key].state == ExpertState::NeedsSlot) {
            m_reads.need(key);
        } else if (m_slots[key].memory != nullptr) {
            m_slots.order().use(key);
        }
    }
    m_reads.startReads();
    reportPrefetches(now, false);
    m_prefetcher.wake();
    freeMemory();
}

void ExpertStore::lookUp(uint32_t key, uint64_t now, Ticket& ticket) {
    ExpertEntry& e = m_slots[key];
    ++m_counters.lookups;
    ++m_lookups[key];
    ++e.uses;
    e.usedStep = m_slots.steps().requestsOf(ticket.moeLayer);
    if (e.tickets++ == 0) e.ticketNumber = ++m_tickets;
    switch (e.state) {
        case ExpertState::Resident:
            ++m_counters.hits;
            ticket.hit = true;
            if (!std::exchange(e.unused, false)) return;
            ticket.byPrefetch = true;
            m_judge.useful(e.source, e.residentNs - std::min(e.residentNs, e.submittedNs));
            m_slots.order().endKeep(key);
            return;
        case ExpertState::Reading:
            m_reads.join(key, now);
            return;
        case ExpertState::OnDisk:
        case ExpertState::Failed:
            e.uses = 1;
            e.requestedNs = now;
            e.reason = ReadReason::Demand;
            m_slots.setState(key, ExpertState::NeedsSlot);
            return;
        case ExpertState::NeedsSlot:
        case ExpertState::Queued:
            return;
    }
}

void ExpertStore::hint(int64_t moeLayer, std::span<const uint16_t> experts) {
    MutexLock lock(m_mutex);
    m_prefetcher.hint(moeLayer, experts, m_parts.clock->now());
}

// ---- waiting ----

bool ExpertStore::ready(const Ticket& ticket) const {
    if (!valid(ticket)) return true;
    MutexLock lock(m_mutex);
    return m_slots[m_shape.keyOf(ticket.moeLayer, ticket.expert)].usable();
}

Result<Pin> ExpertStore::wait(const Ticket& ticket, const std::atomic<bool>* abort) {
    if (!valid(ticket))
        return Status(Code::InvalidArgument, "The store has no expert " +
                                                 formatCount(ticket.expert) + " of MoE layer " +
                                                 formatCount(ticket.moeLayer));
    MutexLock lock(m_mutex);
    const uint32_t key = m_shape.keyOf(ticket.moeLayer, ticket.expert);
    ExpertEntry& e = m_slots[key];
    if (e.tickets == 0)
        return Status(Code::Internal,
                      "A ticket of expert " + formatCount(ticket.expert) + " was waited for twice");
    if (!e.usable()) {
        const uint64_t from = m_parts.clock->now();
        ++e.waiting;
        for (;;) {
            if (e.state == ExpertState::NeedsSlot) m_reads.forceSlot(key);
            if (e.usable() || (abort != nullptr && abort->load())) break;
            m_conditions.waitForRead(m_mutex);
        }
        --e.waiting;
        countStall(e, from);
    }
    if (e.state != ExpertState::Resident) {
        const Status status = m_reads.errorOf(key);
        endTicket(key);
        freeMemory();
        return status;
    }
    --e.tickets;
    ++e.pins;
    Pin pin;
    pin.m_store = this;
    pin.m_record = e.memory;
    pin.m_key = key;
    return pin;
}

// Divides the wait for an expert that began at `from` and ends now among its causes.
void ExpertStore::countStall(const ExpertEntry& e, uint64_t from) {
    const uint64_t now = m_parts.clock->now(), waited = now - from;
    m_counters.stallNs += waited;
    if (e.fresh) {
        m_counters.freshStallNs += waited;
    } else if (e.reason == ReadReason::Prefetch) {
        m_counters.prefetchStallNs += waited;
    } else if (!e.usable()) {  // aborted: its times are not known yet
        m_counters.diskStallNs += waited;
    } else {
        const uint64_t disk = std::clamp(e.submittedNs, from, now);
        const uint64_t link = std::clamp(e.diskEndNs, disk, now);
        m_counters.slotStallNs += disk - from;
        m_counters.diskStallNs += link - disk;
        m_counters.linkStallNs += now - link;
    }
}

void ExpertStore::wakeWaiters() {
    MutexLock lock(m_mutex);
    m_conditions.tellReadEnded();
}

void ExpertStore::drop(const Ticket& ticket) {
    if (!valid(ticket)) return;
    MutexLock lock(m_mutex);
    const uint32_t key = m_shape.keyOf(ticket.moeLayer, ticket.expert);
    if (m_slots[key].tickets > 0) endTicket(key);
    freeMemory();
}

void ExpertStore::endTicket(uint32_t key) {
    --m_slots[key].tickets;
    releaseUnheld(key);
}

void ExpertStore::unpin(uint32_t key) {
    MutexLock lock(m_mutex);
    --m_slots[key].pins;
    releaseUnheld(key);
    freeMemory();
}

void ExpertStore::releaseUnheld(uint32_t key) {
    if (m_slots[key].held()) return;
    m_reads.withdraw(key);
    m_slots.trim();
    m_reads.giveSlots();
    m_reads.startReads();
}

bool ExpertStore::freeMemory() {
    const std::vector<std::byte*> freed = m_slots.takeFreed();
    if (freed.empty()) return false;
    const MutexRelease released(m_mutex);
    for (std::byte* memory : freed) {
        m_parts.queue->forget(memory);
        m_parts.memory->free(memory, m_slotBytes);
    }
    return true;
}

void ExpertStore::settle() {
    MutexLock lock(m_mutex);
    m_prefetcher.wakeAll();
    for (;;) {
        bool looked = true;
        for (const WorkerState& worker : m_workerStates)
            looked = looked && (!worker.running || worker.seen == m_prefetcher.wakes());
        if (looked && !m_warming && m_reads.quiet()) return;
        m_conditions.waitForRead(m_mutex);
    }
}

Pin::Pin(Pin&& other) noexcept
    : m_store(std::exchange(other.m_store, nullptr)),
      m_record(std::exchange(other.m_record, nullptr)),
      m_key(other.m_key) {}

Pin& Pin::operator=(Pin&& other) noexcept {
    if (this == &other) return *this;
    release();
    m_store = std::exchange(other.m_store, nullptr);
    m_record = std::exchange(other.m_record, nullptr);
    m_key = other.m_key;
    return *this;
}

void Pin::release() {
    if (m_store != nullptr) m_store->unpin(m_key);
    m_store = nullptr;
    m_record = nullptr;
}

// ---- figures ----

StoreStats ExpertStore::stats() const {
    MutexLock lock(m_mutex);
    reportPrefetches(m_parts.clock->now(), false);
    StoreStats stats;
    static_cast<StoreCounters&>(stats) = m_counters;
    stats.bySource = m_judge.counts();
    for (const PrefetchCounts& counts : stats.bySource) {
        stats.prefetchIssued += counts.issued;
        stats.prefetchUseful += counts.useful;
        stats.prefetchLate += counts.late;
        stats.prefetchWasted += counts.wasted;
    }
    stats.slotCount = m_slots.capacity();
    stats.slotsUsed = m_slots.used();
    stats.slotsReady = m_slots.prepared().ready();
    stats.slotsToPrepare = m_slots.slotsToPrepare();
    stats.slotBytes = m_slots.bytes();
    return stats;
}

// Reports prefetch outcomes since the last report, at most ten times a second.
void ExpertStore::reportPrefetches(uint64_t now, bool force) const {
    constexpr uint64_t kIntervalNs = 100'000'000;
    if (m_ring == nullptr || (!force && now < m_reportedNs + kIntervalNs)) return;
    m_reportedNs = now;
    for (size_t source = 0; source < m_reported.size(); ++source) {
        const PrefetchCounts& total = m_judge.counts()[source];
        const PrefetchCounts& reported = m_reported[source];
        Event event{};
        event.type = EventType::PrefetchOutcome;
        event.timeNs = now;
        event.prefetch.issued = uint32_t(total.issued - reported.issued);
        event.prefetch.useful = uint32_t(total.useful - reported.useful);
        event.prefetch.late = uint32_t(total.late - reported.late);
        event.prefetch.wasted = uint32_t(total.wasted - reported.wasted);
        event.prefetch.cancelled = uint32_t(total.cancelled - reported.cancelled);
        event.prefetch.source = uint8_t(source);
        const PrefetchEvent& p = event.prefetch;
        if (p.issued + p.useful + p.late + p.wasted + p.cancelled == 0) continue;
        if (m_ring->write(event)) m_reported[source] = total;  // a full ring: next time
    }
}

void ExpertStore::residency(std::vector<Residency>& out) const {
    m_residency.copyTo(out);
}

std::vector<uint32_t> ExpertStore::lookupCounts() const {
    MutexLock lock(m_mutex);
    return m_lookups;
}

std::string ExpertStore::warning() const {
    MutexLock lock(m_mutex);
    const int64_t slots = m_slots.capacity(), token = m_shape.layerCount() * m_shape.topK;
    if (slots >= token) return {};
    return formatCount(slots) + " expert slots hold fewer than the " + formatCount(token) +
           " experts that one token uses (" + formatCount(m_shape.layerCount()) + " layers of " +
           formatCount(m_shape.topK) + "): with lru nearly every lookup misses. " +
           "Choose a cache size of at least " + formatCount(m_shape.topK);
}

std::string ExpertStore::readPath() const {
    MutexLock lock(m_mutex);
    const bool direct = m_reads.mode() == IoMode::Direct;
    const std::string problem = this->problem(KnobId::IoMode, int64_t(IoMode::Direct));
    const std::string why = direct || problem.empty() ? "" : ": " + problem;
    return m_parts.queue->text() + ", " + (direct ? "direct" : "buffered") + why;
}

}  // namespace colibri
