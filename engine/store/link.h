// SPDX-License-Identifier: Apache-2.0
// The link between disk and memory, as fast as link_limit says. A limited link carries one byte
// after another: demand transfers first, in order of arrival, then prefetches. A transfer is over
// when its last byte has passed, so a limited read takes the longer of disk and link, as on a
// slower disk. Idle time is not saved up: the link never runs above its rate.
//
// Pure arithmetic on times handed in (nanoseconds, never going back): exact to the byte, also when
// the rate changes while transfers are under way. Not thread-safe.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace colibri {

class LinkLimiter {
public:
    using Transfer = uint32_t;

    LinkLimiter() { m_entries.reserve(kMostTransfers); }  // none is half begun for want of memory
    // 0: no limit, everything under way is over at once.
    void setRate(int64_t bytesPerSecond, uint64_t now);
    int64_t rate() const { return m_rate; }

    Transfer begin(int64_t bytes, bool demand, uint64_t now);
    // A prefetch that is now waited for goes before other prefetches.
    void promote(Transfer transfer, uint64_t now);
    bool done(Transfer transfer, uint64_t now);
    // When the transfer will be over if nothing else begins; `now` or earlier when it is.
    uint64_t finishAt(Transfer transfer, uint64_t now);
    // Forgets the transfer; what it had left is not carried.
    void end(Transfer transfer, uint64_t now);
    // Nothing under way: a prefetch begun now delays nobody.
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
    std::vector<Entry> m_entries;  // in the order they are carried; few: one per read in flight
};

}  // namespace colibri
