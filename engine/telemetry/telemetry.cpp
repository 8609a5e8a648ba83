// SPDX-License-Identifier: Apache-2.0
#include "engine/telemetry/telemetry.h"

#include <time.h>

#include <algorithm>
#include <bit>

namespace colibri {

const char* stopReasonName(StopReason reason) {
    switch (reason) {
        case StopReason::Eos:
            return "eos";
        case StopReason::MaxTokens:
            return "length";
        case StopReason::StopString:
            return "stop";
        case StopReason::Cancelled:
            return "cancelled";
        case StopReason::ContextFull:
            return "context";
        case StopReason::Error:
            return "error";
    }
    return "error";
}

uint64_t monotonicNs() {
    timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return uint64_t(now.tv_sec) * 1'000'000'000 + uint64_t(now.tv_nsec);
}

EventRing::EventRing(std::string threadName, uint8_t id, size_t capacity,
                     const std::atomic<bool>* enabled)
    : m_threadName(std::move(threadName)),
      m_id(id),
      m_enabled(enabled),
      m_slots(std::bit_ceil(std::max<size_t>(capacity, 2))) {}

bool EventRing::write(Event event) {
    if (!m_enabled->load(std::memory_order_relaxed)) return false;
    const uint64_t head = m_head.load(std::memory_order_relaxed);
    // Acquire: the reader has finished with the slot that this write overwrites.
    if (head - m_tail.load(std::memory_order_acquire) >= m_slots.size()) {
        m_dropped.fetch_add(1, std::memory_order_relaxed);
        return false;
    }
    if (event.timeNs == 0) event.timeNs = monotonicNs();
    event.thread = m_id;
    event.sequence = m_sequence++;
    m_slots[head & (m_slots.size() - 1)] = event;
    // Release: the event is complete before the reader sees the new head.
    m_head.store(head + 1, std::memory_order_release);
    return true;
}

size_t EventRing::drain(std::vector<Event>& out, size_t max) {
    const uint64_t tail = m_tail.load(std::memory_order_relaxed);
    const uint64_t head = m_head.load(std::memory_order_acquire);
    const size_t count = std::min<size_t>(head - tail, max);
    for (size_t i = 0; i < count; ++i) {
        out.push_back(m_slots[(tail + i) & (m_slots.size() - 1)]);
    }
    m_tail.store(tail + count, std::memory_order_release);
    return count;
}

EventRing* Telemetry::addRing(const std::string& threadName, size_t capacity) {
    std::lock_guard lock(m_mutex);
    const uint8_t id = uint8_t(std::min<size_t>(m_rings.size(), 255));
    m_rings.push_back(std::make_unique<EventRing>(threadName, id, capacity, &m_enabled));
    return m_rings.back().get();
}

void Telemetry::drain(std::vector<Event>& out) {
    out.clear();
    std::lock_guard lock(m_mutex);
    for (const auto& ring : m_rings) ring->drain(out, SIZE_MAX);
    std::stable_sort(out.begin(), out.end(),
                     [](const Event& a, const Event& b) { return a.timeNs < b.timeNs; });
}

uint64_t Telemetry::dropped() const {
    std::lock_guard lock(m_mutex);
    uint64_t total = 0;
    for (const auto& ring : m_rings) total += ring->dropped();
    return total;
}

std::vector<std::string> Telemetry::threadNames() const {
    std::lock_guard lock(m_mutex);
    std::vector<std::string> names;
    for (const auto& ring : m_rings) names.push_back(ring->threadName());
    return names;
}

}  // namespace colibri
