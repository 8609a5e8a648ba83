// SPDX-License-Identifier: Apache-2.0
// The kernel's read ring (io_uring) as UringQueue needs it: read requests go in, results come out
// in any order. Tests put another ring around it that changes results.
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
        uint64_t tag = 0;  // handed back
        int buffer = -1;   // of addBuffer(), which holds `out`; -1: none
    };
    struct Landed {
        uint64_t tag = 0;
        int64_t result = 0;  // bytes, 0 at the end of the file, -errno
    };

    virtual ~Ring() = default;
    // One thread calls submit() and wait(). At most kInFlight reads are under way at once.
    virtual void submit(std::span<const Read> reads) = 0;
    // Appends what has landed; blocks until something has or wake() was called.
    virtual void wait(std::vector<Landed>& landed) = 0;
    // Any thread. Not lost when nobody waits: the next wait() returns at once.
    virtual void wake() = 0;
    // Registers memory: an index, or -errno. Any thread.
    virtual int addBuffer(std::span<std::byte> memory) = 0;
    virtual void removeBuffer(int index) = 0;

    static constexpr int kInFlight = 256;
    // Unsupported with the reason when the kernel, a sandbox or this build has no io_uring.
    static Result<std::unique_ptr<Ring>> open();
};

}  // namespace colibri
