// SPDX-License-Identifier: Apache-2.0
// Where slots live. Each slot is its own mapping, so that giving one back really returns its
// memory to the system. Tests replace it to make allocations fail.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>

namespace colibri {

class SlotMemory {
public:
    virtual ~SlotMemory() = default;
    // `bytes` of zeroed memory aligned to 4096 (2 MiB for large slots); nullptr when there is
    // none. Pages are taken from the system at first use. Large slots begin at addresses that
    // take turns in the nodes over which the kernel interleaves huge pages.
    virtual std::byte* allocate(int64_t bytes);
    // Has the system give all pages of fresh memory now, step by step while `goOn` says so. False:
    // it was stopped, or there is not enough. Any thread.
    virtual bool populate(std::byte* memory, int64_t bytes, const std::function<bool()>& goOn);
    virtual void free(std::byte* memory, int64_t bytes);
    // Bytes this process may still take; 0: not known.
    virtual int64_t freeBytes();

private:
    std::atomic<size_t> m_large{0};  // slots mapped so far
};

}  // namespace colibri
