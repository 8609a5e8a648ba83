// SPDX-License-Identifier: Apache-2.0
// The link between disk and memory, at the rate of the knob link_limit. A limited link carries one
// byte after another: demand transfers first, in order of arrival, then prefetches. A transfer ends
// with its last byte, so a limited read takes the longer of disk and link time, as on a slower
// disk. Idle time does not accumulate: the link never exceeds its rate.
//
// Pure arithmetic on the times that the caller passes (nanoseconds, never decreasing): exact to the
// byte, even if the rate changes during transfers. Not thread-safe.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace colibri {

class LinkLimiter {
public:
    using Transfer = uint32_t;

    LinkLimiter() { m_entries.reserve(kMostTransfers); }  // a transfer never lacks memory
    // 0: no limit; all current transfers end immediately.
    void setRate(int64_t bytesPerSecond, uint64_t now);
    int64_t rate() const { return m_rate; }

    Transfer begin(int64_t bytes, bool demand, uint64_t now);
    // A prefetch that a thread waits for goes before other prefetches.
    void promote(Transfer transfer, uint64_t now);
    // When the transfer will end if no other begins; `now` or earlier if it has ended.
    uint64_t finishAt(Transfer transfer, uint64_t now);
    // Removes the transfer; its remaining bytes are not carried.
    void end(Transfer transfer, uint64_t now);
    // No transfer is active: a prefetch that begins now delays no other read.
    bool idle(uint64_t now);

private:
    // One byte is 10^9 units: a rate in bytes per second is then whole units per nanosecond.
    using Units = unsigned __int128;
    struct Entry {
        Transfer id;
        bool demand;
        Units left;
    };
    static constexpr size_t kMostTransfers = 256;  // reads in flight
    void advance(uint64_t now);
    void insert(const Entry& entry);

    int64_t m_rate = 0;
    uint64_t m_now = 0;
    Transfer m_nextId = 0;
    std::vector<Entry> m_entries;  // in transfer order; few: one per read in flight
};

}  // namespace colibri
