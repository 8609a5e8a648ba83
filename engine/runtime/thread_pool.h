// SPDX-License-Identifier: Apache-2.0
// Persistent worker threads of the forward pass. One parallel region at a time; workers spin
// briefly between regions, then sleep. A region never waits for a worker that has not taken work,
// so a sleeping or preempted worker costs parallelism, not time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

namespace colibri {

class ThreadPool {
public:
    explicit ThreadPool(int threads);  // >= 1; includes the caller
    ~ThreadPool();

    int threads() const;
    void resize(int threads);  // between regions, from the calling thread

    // Sets where all threads run: on the cores of `home` ({}: all that this process may use)
    // without those of `avoided`. If there are fewer cores than threads, home is ignored; if there
    // are still too few, avoided is ignored too. Between regions, from the calling thread.
    void place(const std::vector<int>& home, const std::vector<int>& avoided);

    // Runs body(begin, end) over [0, items) in chunks of at least `grain`, handed out dynamically;
    // returns when all are done. Called from one thread at a time; not reentrant.
    void parallelFor(int64_t items, int64_t grain,
                     const std::function<void(int64_t, int64_t)>& body);

    // The same with the index of the running thread, 0 (the caller) .. threads() - 1, for scratch
    // memory that each thread owns.
    using IndexedBody = std::function<void(int thread, int64_t begin, int64_t end)>;
    void parallelForIndexed(int64_t items, int64_t grain, const IndexedBody& body);

    // First item of a region's chunk `index`: with the chunks handed out in order, where thread
    // `index` most likely starts.
    int64_t chunkBegin(int64_t items, int64_t grain, int index) const;
    // The memory that a thread (from 1) reads first in the next region. Workers that are idle while
    // the caller is busy between regions fetch it into their caches; warmed() allows them to.
    void warm(int thread, const std::byte* stream);
    void warmed();

private:
    struct Impl;
    std::unique_ptr<Impl> m_impl;
};

}  // namespace colibri
