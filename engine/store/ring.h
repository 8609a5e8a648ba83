// SPDX-License-Identifier: Apache-2.0
// The kernel's read ring (io_uring) as UringQueue needs it: takes read requests and returns results
// in any order. Tests wrap it in another ring that changes results.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "engine/base/status.h"

namespace colibri {

class Ring {
public:
    struct Read {
        int fd = -1;
        int64_t offset = 0;
        std::span<std::byte> out;
        uint64_t tag = 0;  // returned unchanged
        int buffer = -1;   // index from addBuffer() of the buffer with `out`; -1: none
    };
    struct Completion {
        uint64_t tag = 0;
        int64_t result = 0;  // bytes, 0 at the end of the file, -errno
    };

    virtual ~Ring() = default;
    // One thread calls submit() and wait(). At most kInFlight reads are in flight at once.
    virtual void submit(std::span<const Read> reads) = 0;
    // Appends the completed reads; blocks until there is one or wake() is called.
    virtual void wait(std::vector<Completion>& completions) = 0;
    // Any thread. If no thread is waiting, the next wait() returns immediately.
    virtual void wake() = 0;
    // Registers memory and returns its index, or -errno. Any thread.
    virtual int addBuffer(std::span<std::byte> memory) = 0;
    virtual void removeBuffer(int index) = 0;

    static constexpr int kInFlight = 256;
    // Returns Unsupported with the reason if the kernel, a sandbox or this build lacks io_uring.
    static Result<std::unique_ptr<Ring>> open();
};

}  // namespace colibri
