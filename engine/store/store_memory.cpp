// SPDX-License-Identifier: Apache-2.0
// Slots whose memory the system has given before anybody needs them. A page comes into being at its
// first touch; on a virtual machine that takes up to several milliseconds per 2 MiB, longer than
// the read of an expert. One thread does it ahead of need: as fast as it can while nothing is
// computed, else for a small share of the time.
#include <pthread.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <system_error>

#include "engine/base/format.h"
#include "engine/store/store_core.h"

namespace colibri {

namespace {

// While tokens are computed the thread rests so many times as long as it works.
constexpr uint64_t kRests = 3;
// Without a request for so long nothing is computed.
constexpr uint64_t kIdleNs = 100'000'000;
constexpr int kNice = 10;
constexpr double kToldSeconds = 0.1;  // a phase that was shorter is not worth a note
// Smaller slots share what a huge page takes: touching one is no great matter.
constexpr int64_t kLargeSlot = 2 << 20;
// Touching memory must have paid off after so many steps.
constexpr int64_t kPayback = 64;

// The mean of the last few.
void blend(int64_t& mean, int64_t value) {
    mean = mean == 0 ? value : mean + (value - mean) / 8;
}

}  // namespace

Status StoreCore::startMemoryThread() {
    try {
        m_memoryThread = std::thread([this] { memoryLoop(); });
    } catch (const std::system_error& error) {
        return {Code::OutOfMemory, std::string("Cannot start a thread: ") + error.what()};
    }
    return {};
}

int64_t StoreCore::slotsToPrepare() const {
    const auto all = int64_t(m_entries.size());  // more are never used
    return std::max<int64_t>(0, std::min(m_capacity, all) - m_used - int64_t(m_ready.size()));
}

bool StoreCore::computing(uint64_t now) const {
    return !m_demand.empty() || !m_needSlot.empty() || m_demandReading > 0 ||
           now < m_requestNs + kIdleNs;
}

void StoreCore::memoryLoop() {
    pthread_setname_np(pthread_self(), "expert-memory");
    setpriority(PRIO_PROCESS, id_t(gettid()), kNice);  // of this thread; refused: as it is
    Lock lock(m_mutex);
    while (!m_stopping) {
        if (slotsToPrepare() == 0 || m_memoryFull) {
            tellPrepared();
            m_memoryCv.wait(lock);
            continue;
        }
        const uint64_t from = m_parts.clock->now();
        if (from < m_restUntilNs && computing(from)) {
            m_parts.clock->waitUntil(m_memoryCv, lock, m_restUntilNs);
            continue;
        }
        if (m_prepareFromNs == 0) m_prepareFromNs = from;
        try {
            prepareSlot(lock);
        } catch (const std::bad_alloc&) {
            if (!lock.owns_lock()) lock.lock();
            m_preparing = 0;
            m_memoryFull = true;
        }
        const uint64_t now = m_parts.clock->now();
        m_restUntilNs = now + kRests * (now - from);
    }
}

// One more slot, with the lock held before and after, not between.
void StoreCore::prepareSlot(Lock& lock) {
    const NumaPlace place = m_place;
    const uint32_t serial = m_placeSerial;
    m_preparing = 1;
    lock.unlock();
    const uint64_t from = m_parts.clock->now();
    const auto release = [this](std::byte* slot) { m_parts.memory->free(slot, m_slotBytes); };
    std::unique_ptr<std::byte, decltype(release)> slot(m_parts.memory->allocate(m_slotBytes),
                                                       release);
    std::byte* const memory = slot.get();
    std::string refusal;
    bool wanted = true, whole = memory != nullptr;
    if (whole && place.mode != NumaMode::Off) {
        const auto placed = m_parts.numa->place({memory, size_t(m_slotBytes)}, place);
        if (!placed.ok()) refusal = placed.status().message();
    }
    if (whole) {
        whole = m_parts.memory->populate(memory, m_slotBytes, [&] {
            Lock look(m_mutex);
            wanted = !m_stopping && serial == m_placeSerial && slotsToPrepare() > 0;
            return wanted;
        });
    }
    const auto took = int64_t(m_parts.clock->now() - from);
    lock.lock();
    m_preparing = 0;
    if (!refusal.empty()) m_numaReason = refusal;
    if (memory != nullptr && whole && serial == m_placeSerial && slotsToPrepare() > 0) {
        m_placed[memory] = serial;
        m_ready.push_back(slot.release());
        ++m_stats.slotsPrepared;
        m_stats.prepareNs += uint64_t(took);
        ++m_preparedNow;
        blend(m_touchNs, took);
        return;
    }
    m_memoryFull = !whole && wanted;  // what is there must do until the size is set anew
    lock.unlock();
    slot.reset();
    lock.lock();
}

// The phase has ended: a note says what it was, unless nobody could have felt it.
void StoreCore::tellPrepared() {
    if (m_prepareFromNs == 0) return;
    const uint64_t now = m_parts.clock->now();
    const double seconds = double(now - std::exchange(m_prepareFromNs, 0)) * 1e-9;
    const int64_t slots = std::exchange(m_preparedNow, 0);
    if (slots == 0 || seconds < kToldSeconds || m_ring == nullptr) return;
    Event event{};
    event.type = EventType::Note;
    event.timeNs = now;
    event.note = {};
    try {
        const std::string text = "memory for " + formatCount(slots) + " experts (" +
                                 formatGiB(double(slots * m_slotBytes)) + ") prepared in " +
                                 formatFixed(seconds, 1) + " s";
        text.copy(event.note.text, sizeof event.note.text - 1);
    } catch (const std::bad_alloc&) {  // then it is not told
        return;
    }
    m_ring->write(event);
}

// Prepared slots that the cache may not have any more, or that lie where none should be.
void StoreCore::dropReady(int64_t keep) {
    while (int64_t(m_ready.size()) > keep) {
        std::byte* const memory = m_ready.back();
        m_ready.pop_back();
        m_placed.erase(memory);
        freeLater(memory);
    }
}

std::byte* StoreCore::readySlot() {
    if (m_ready.empty()) return nullptr;
    std::byte* const memory = m_ready.back();
    m_ready.pop_back();
    ++m_used;
    return memory;
}

// Whether the coldest record had better give its slot than that new memory is touched for it, while
// the thread has yet to prepare some. A record that was not used for so many steps would be read
// about once in as many: keeping it saves that much, and the touch costs its time once.
bool StoreCore::reuseFirst(uint32_t coldest) const {
    if (!m_prepares || m_memoryFull || m_slotBytes < kLargeSlot) return false;
    if (m_readNs == 0 || m_touchNs <= m_readNs) return false;
    const int64_t age = m_epochs[size_t(layerOf(coldest))] - m_entries[coldest].usedEpoch;
    return age * m_touchNs > kPayback * m_readNs;
}

void StoreCore::measureRead(const Entry& e, uint64_t now) {
    const auto took = int64_t(now - std::min(now, e.submittedNs));
    if (e.fresh) {
        ++m_stats.freshLoads;
    } else {
        blend(m_readNs, took);
    }
}

}  // namespace colibri
