// SPDX-License-Identifier: Apache-2.0
// Where slots lie (NUMA) and where prefetch threads run.
#include <pthread.h>
#include <sched.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstring>
#include <system_error>

#include "engine/base/format.h"
#include "engine/store/store_core.h"

namespace colibri {

namespace {

constexpr int kMostCores = 1024;  // what a cpu_set_t holds
constexpr size_t kNumaModes = 3;
constexpr size_t kSampledSlots = 256;  // asked of the kernel at once
// How often and how long slots that do not move are tried again: kernel 6.1 holds pages that
// io_uring no longer needs for a second or two.
constexpr int64_t kMoveRounds = 50;
constexpr std::chrono::milliseconds kMovePause{100};

}  // namespace

// ---- NUMA ----

void StoreCore::setNuma(NumaMode mode, int64_t node) {
    std::lock_guard start(m_startMutex);
    const int nodes = m_parts.numa->nodes();
    {
        Lock lock(m_mutex);
        m_numaRequested = {mode, int(std::clamp<int64_t>(node, 0, INT16_MAX))};
        m_numaReason = m_parts.numa->refusal();
        if (mode == NumaMode::Off) m_numaReason.clear();
        if (m_numaReason.empty() && mode == NumaMode::Bind && m_numaRequested.node >= nodes)
            m_numaReason = numaNodesText(nodes);
        const NumaPlace wanted = m_numaReason.empty() ? m_numaRequested : NumaPlace{};
        if (wanted == m_place) return;
        m_place = wanted;
        ++m_placeSerial;
        dropReady(0);  // to be prepared anew, where they belong
        m_memoryCv.notify_all();
        m_misplaced = int64_t(m_placed.size());
        m_moverCv.notify_all();
        unlockAndFree(lock);
    }
    if (m_moverThread.joinable() || m_entries.empty()) return;
    try {
        m_moverThread = std::thread([this] { moverLoop(); });
    } catch (const std::system_error& error) {
        Lock lock(m_mutex);
        m_numaReason = std::string("cannot start a thread: ") + error.what();
    }
    return;
}

void StoreCore::placeNew(std::byte* memory) {
    m_placed[memory] = m_placeSerial;
    if (m_place.mode == NumaMode::Off) return;
    const auto placed = m_parts.numa->place({memory, size_t(m_slotBytes)}, m_place);
    if (!placed.ok()) m_numaReason = placed.status().message();
}

// A slot that lies where an earlier setting wanted it, looked for from `from` on; -1: none can be
// moved now.
int64_t StoreCore::misplaced(size_t& from) const {
    for (size_t i = 0; m_misplaced > 0 && i < m_entries.size(); ++i) {
        from = (from + 1) % m_entries.size();
        const Entry& e = m_entries[from];
        if (e.state == State::Resident && m_placed.at(e.memory) != m_placeSerial)
            return int64_t(from);
    }
    return -1;
}

// Moves slots in the background, one at a time: a slot is pinned while it moves, and its readers
// are not disturbed. A record being read cannot be moved: it waits for its turn. One that the
// kernel will not move now is tried again, as long as that helps.
void StoreCore::moverLoop() {
    pthread_setname_np(pthread_self(), "expert-numa");
    Lock lock(m_mutex);
    size_t from = 0;
    uint32_t serial = m_placeSerial;
    int64_t inVain = 0, rounds = 0;  // slots in a row that did not move; rounds of nothing else
    while (!m_stopping) {
        if (serial != m_placeSerial) inVain = rounds = 0;
        serial = m_placeSerial;
        if (inVain > 0 && inVain >= m_misplaced) {
            inVain = 0;
            ++rounds;
            m_moverCv.wait_for(lock, kMovePause);
            continue;
        }
        const int64_t key = misplaced(from);
        if (key < 0) {
            if (m_misplaced > 0)  // all that is left is being read
                m_moverCv.wait_for(lock, std::chrono::milliseconds(1));
            else
                m_moverCv.wait(lock);
            continue;
        }
        Entry& e = m_entries[size_t(key)];
        std::byte* const memory = e.memory;
        const NumaPlace place = m_place;
        ++e.pins;
        lock.unlock();
        m_parts.queue->keepMovable(memory, true);
        const auto moved = [&]() -> Result<bool> {
            try {
                return m_parts.numa->place({memory, size_t(m_slotBytes)}, place);
            } catch (const std::bad_alloc&) {  // later
                return false;
            }
        }();
        const bool done = !moved.ok() || *moved || rounds == kMoveRounds;
        if (done) m_parts.queue->keepMovable(memory, false);
        lock.lock();
        if (done) {
            m_placed[memory] = serial;
            if (serial == m_placeSerial) --m_misplaced;
            inVain = 0;
            if (rounds < kMoveRounds) rounds = 0;
        } else {
            ++inVain;
        }
        if (!moved.ok())
            m_numaReason = moved.status().message();
        else if (done && !*moved)
            m_numaReason = "the kernel keeps some pages where they are";
        --e.pins;
        if (!held(e)) letGo(uint32_t(key));
        unlockAndFree(lock);
        lock.lock();
    }
}

std::string StoreCore::numaModeProblem(NumaMode mode) const {
    if (mode == NumaMode::Off) return {};
    const int nodes = m_parts.numa->nodes();
    return nodes > 1 ? m_parts.numa->refusal() : numaNodesText(nodes);
}

KnobState StoreCore::numaModeState() {
    KnobState state;
    std::vector<std::byte*> slots;
    {
        Lock lock(m_mutex);
        state = {int64_t(m_numaRequested.mode), int64_t(m_place.mode), m_numaReason};
        if (m_misplaced > 0) {
            state.reason = movedText();
            return state;
        }
        slots = someSlots();
    }
    // What the kernel says of most slots goes before what it was told. It may say so of one that
    // has been given back meanwhile; then that one does not count.
    std::array<int, kNumaModes> counts{};
    for (const std::byte* slot : slots)
        if (const auto place = m_parts.numa->placeOf(slot)) ++counts[size_t(place->mode)];
    const auto most = std::max_element(counts.begin(), counts.end());
    if (*most > 0) state.effective = most - counts.begin();
    return state;
}

std::string StoreCore::movedText() const {
    const auto all = int64_t(m_placed.size());
    return formatCount(all - m_misplaced) + " of " + formatCount(all) + " slots moved";
}

// Evenly over all, as many as can be asked after at once.
std::vector<std::byte*> StoreCore::someSlots() const {
    std::vector<std::byte*> slots;
    const size_t step = std::max<size_t>(1, m_placed.size() / kSampledSlots);
    size_t i = 0;
    for (const auto& [memory, serial] : m_placed)
        if (i++ % step == 0) slots.push_back(memory);
    return slots;
}

KnobState StoreCore::numaNodeState() {
    const int nodes = m_parts.numa->nodes();
    KnobState state;
    std::string reason;
    std::vector<std::byte*> slots;
    {
        Lock lock(m_mutex);
        state.requested = state.effective = m_numaRequested.node;
        reason = m_numaReason;
        if (m_place.mode == NumaMode::Bind && m_misplaced > 0) {
            state.reason = movedText();
            return state;
        }
        if (m_place.mode == NumaMode::Bind) slots = someSlots();
    }
    if (state.requested >= nodes) {
        state.effective = nodes - 1;
        state.reason = numaNodesText(nodes);
    }
    // The node on which most of the slots really lie.
    std::vector<int> counts(size_t(nodes), 0);
    int known = 0;
    for (const int node : m_parts.numa->nodesOf(slots)) {
        if (node < 0 || node >= nodes) continue;
        ++counts[size_t(node)];
        ++known;
    }
    if (known == 0) return state;
    const auto most = std::max_element(counts.begin(), counts.end());
    state.effective = most - counts.begin();
    if (*most < known)
        state.reason = formatCount(*most) + " of " + formatCount(known) +
                       " slots looked at are on node " + std::to_string(state.effective);
    else if (state.effective != state.requested)
        state.reason = reason.empty() ? "the kernel keeps the memory there" : reason;
    return state;
}

// ---- cores ----

void StoreCore::bindToCore(Worker& worker, int64_t index) {
    worker.coreReason.clear();
    cpu_set_t set = m_allowedCores;
    if (worker.core >= 0) {
        CPU_ZERO(&set);
        CPU_SET(size_t(worker.core), &set);
    }
    const int error = pthread_setaffinity_np(worker.thread.native_handle(), sizeof set, &set);
    if (error != 0)
        worker.coreReason = "prefetch thread " + std::to_string(index) + ", core " +
                            std::to_string(worker.core) + ": " + std::strerror(error);
}

KnobState StoreCore::setPrefetchThreadCore(int64_t thread, int64_t core) {
    std::lock_guard start(m_startMutex);
    if (thread < 0 || thread >= kMaxPrefetchThreads)
        return {core, -1,
                "prefetch threads are numbered 0 to " + std::to_string(kMaxPrefetchThreads - 1)};
    if (core < -1 || core >= kMostCores)
        return {core, -1, "cores are numbered from 0; -1 lets the thread run on any"};
    Worker& worker = m_workers[size_t(thread)];
    worker.core = int(core);
    bool running = false;
    {
        Lock lock(m_mutex);
        running = worker.running;
    }
    if (running) bindToCore(worker, thread);
    return coreState(thread);
}

KnobState StoreCore::coreState(int64_t thread) {
    Worker& worker = m_workers[size_t(thread)];
    KnobState state{worker.core, -1, worker.coreReason};
    {
        Lock lock(m_mutex);
        if (!worker.running) {
            if (worker.core >= 0)
                state.reason = "the thread does not run: prefetch_threads is " +
                               std::to_string(m_prefetchThreads);
            return state;
        }
    }
    // As the kernel has it, read back.
    cpu_set_t set;
    CPU_ZERO(&set);
    if (pthread_getaffinity_np(worker.thread.native_handle(), sizeof set, &set) != 0 ||
        CPU_COUNT(&set) != 1)
        return state;
    for (int core = 0; core < CPU_SETSIZE; ++core)
        if (CPU_ISSET(size_t(core), &set) && worker.core >= 0) state.effective = core;
    return state;
}

KnobState StoreCore::prefetchThreadCore(int64_t thread) {
    std::lock_guard start(m_startMutex);
    if (thread < 0 || thread >= kMaxPrefetchThreads) return {-1, -1, "there is no such thread"};
    return coreState(thread);
}

std::vector<int> StoreCore::boundCores() {
    std::lock_guard start(m_startMutex);
    std::vector<int> cores;
    for (int64_t i = 0; i < kMaxPrefetchThreads; ++i)
        if (m_workers[size_t(i)].core >= 0)
            if (const KnobState state = coreState(i); state.effective >= 0)
                cores.push_back(int(state.effective));
    std::sort(cores.begin(), cores.end());
    cores.erase(std::unique(cores.begin(), cores.end()), cores.end());
    return cores;
}

}  // namespace colibri
