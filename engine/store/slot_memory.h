// SPDX-License-Identifier: Apache-2.0
// The memory of slots. Each slot is a mapping of its own, so that freeing one returns its memory to
// the system. Tests replace it to make allocations fail.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>

namespace colibri {

class SlotMemory {
public:
    virtual ~SlotMemory() = default;
    // `bytes` of zeroed memory aligned to 4096 (2 MiB for large slots); nullptr if there is
    // none. The system allocates pages at first use. The addresses of large slots alternate between
    // the nodes over which the kernel interleaves huge pages.
    virtual std::byte* allocate(int64_t bytes);
    // Makes the system allocate all pages of fresh memory now, step by step while `goOn` returns
    // true. False: it was stopped, or there is not enough memory. Any thread.
    virtual bool populate(std::byte* memory, int64_t bytes, const std::function<bool()>& goOn);
    virtual void free(std::byte* memory, int64_t bytes);
    // Bytes that this process may still allocate; 0: unknown.
    virtual int64_t freeBytes();

private:
    std::atomic<size_t> m_large{0};  // slots mapped so far
};

}  // namespace colibri
