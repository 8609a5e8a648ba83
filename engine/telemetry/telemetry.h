// SPDX-License-Identifier: Apache-2.0
// The event rings. Each engine thread owns one ring and is its only writer. One reader at a time,
// the profiler's recorder, drains all of them. A full ring drops new events and counts them.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "engine/telemetry/events.h"

namespace colibri {

uint64_t monotonicNs();

// Single producer, single consumer, power-of-two capacity.
class EventRing {
public:
    EventRing(std::string threadName, uint8_t id, size_t capacity,
              const std::atomic<bool>* enabled);

    // Producer only. Fills in time (if 0), thread and sequence. False: full; dropped and counted.
    bool write(Event event);
    // Consumer only. Appends at most `max` events to `out`, oldest first. Returns their number.
    size_t drain(std::vector<Event>& out, size_t max);

    uint64_t dropped() const { return m_dropped.load(std::memory_order_relaxed); }
    const std::string& threadName() const { return m_threadName; }

private:
    std::string m_threadName;
    uint8_t m_id;
    const std::atomic<bool>* m_enabled;  // of the Telemetry that owns the ring
    std::vector<Event> m_slots;
    uint32_t m_sequence = 0;                      // producer
    alignas(64) std::atomic<uint64_t> m_head{0};  // next write
    alignas(64) std::atomic<uint64_t> m_tail{0};  // next read
    std::atomic<uint64_t> m_dropped{0};
};

// All rings of one engine. Any thread may call addRing; drain has one caller at a time.
class Telemetry {
public:
    // The ring lives as long as the Telemetry. `capacity`: events.
    EventRing* addRing(const std::string& threadName, size_t capacity = 1 << 14);
    // Drains every ring into `out` (cleared first), sorted by time.
    void drain(std::vector<Event>& out);
    uint64_t dropped() const;
    std::vector<std::string> threadNames() const;  // by Event::thread

    // Enables recording (default) or disables it: then rings ignore events without counting them.
    void setEnabled(bool on) { m_enabled.store(on, std::memory_order_relaxed); }
    bool enabled() const { return m_enabled.load(std::memory_order_relaxed); }

private:
    mutable std::mutex m_mutex;  // guards m_rings (the vector, not the rings)
    std::vector<std::unique_ptr<EventRing>> m_rings;
    std::atomic<bool> m_enabled{true};
};

}  // namespace colibri
