// SPDX-License-Identifier: Apache-2.0
#include <pthread.h>
#include <sys/resource.h>

#include <cerrno>
#include <cstring>
#include <system_error>

#include "engine/base/format.h"
#include "engine/store/read_queue.h"

namespace colibri {

namespace {

// Why the kernel does not register more memory.
std::string refusalText(int error) {
    rlimit limit{};
    if (error == ENOMEM && getrlimit(RLIMIT_MEMLOCK, &limit) == 0 &&
        limit.rlim_cur != RLIM_INFINITY)
        return "RLIMIT_MEMLOCK is " + formatGiB(double(limit.rlim_cur));
    if (error == ENOSPC) return "the kernel registers no more than 16,384";
    return std::strerror(error);
}

}  // namespace

Status UringQueue::start(const StoreShape& shape, StoreClock& clock, int64_t /*depth*/, Done done) {
    m_shape = &shape;
    m_clock = &clock;
    m_done = std::move(done);
    {
        MutexLock lock(m_mutex);
        m_submitted.reserve(kMostReads);
    }
    m_unfinished.reserve(kMostReads);
    try {
        m_thread = std::thread([this] { loop(); });
    } catch (const std::system_error& error) {
        return {Code::OutOfMemory, std::string("Cannot start a thread: ") + error.what()};
    }
    return {};
}

void UringQueue::enqueue(const RecordRead& read, Waiter* waiter) {
    bool wake = false;
    {
        MutexLock lock(m_mutex);
        wake = m_submitted.empty();  // else the thread was already woken and has not checked yet
        m_submitted.push_back({RecordCursor(*m_shape, read), waiter});
    }
    if (wake) m_ring->wake();
}

void UringQueue::submit(const RecordRead& read) {
    enqueue(read, nullptr);
}

ReadOutcome UringQueue::read(const RecordRead& read) {
    Waiter waiter;
    enqueue(read, &waiter);
    MutexLock lock(m_mutex);
    while (!waiter.done) m_readDone.wait(m_mutex);
    return std::move(waiter.outcome);
}

void UringQueue::loop() {
    pthread_setname_np(pthread_self(), "expert-io");
    std::vector<Operation> fresh;
    std::vector<Ring::Read> reads;
    std::vector<Ring::Completion> completions;
    fresh.reserve(kMostReads);
    reads.reserve(kMostReads);
    completions.reserve(kMostReads);
    for (;;) {
        bool stopping = false;
        {
            MutexLock lock(m_mutex);
            fresh.swap(m_submitted);
            stopping = m_stopping;
        }
        reads.clear();
        for (const uint64_t tag : m_unfinished) reads.push_back(request(tag));
        m_unfinished.clear();
        for (Operation& operation : fresh) {
            if (stopping && operation.waiter == nullptr) continue;
            begin(operation, reads);
        }
        fresh.clear();
        m_ring->submit(reads);
        if (stopping && m_inFlight.empty()) return;
        completions.clear();
        m_ring->wait(completions);
        for (const Ring::Completion& completion : completions) complete(completion);
    }
}

void UringQueue::begin(Operation& operation, std::vector<Ring::Read>& reads) {
    operation.submittedNs = m_clock->now();
    try {
        m_inFlight.emplace(m_nextTag, operation);
    } catch (const std::bad_alloc&) {
        end(operation, {outOfMemory(), operation.submittedNs});
        return;
    }
    reads.push_back(request(m_nextTag++));
}

Ring::Read UringQueue::request(uint64_t tag) {
    const RecordCursor& cursor = m_inFlight.at(tag).cursor;
    const RecordRead& read = cursor.read();
    return {m_reader->descriptor(read.moeLayer, read.mode), cursor.offset(), cursor.rest(), tag,
            bufferOf(read.out)};
}

void UringQueue::complete(const Ring::Completion& completion) {
    const auto it = m_inFlight.find(completion.tag);
    const bool again = completion.result == -EINTR || completion.result == -EAGAIN;
    ReadOutcome outcome{{}, it->second.submittedNs};
    try {
        if (again || !it->second.cursor.take(completion.result)) {
            m_unfinished.push_back(completion.tag);
            return;
        }
        outcome.status = it->second.cursor.status();
    } catch (const std::bad_alloc&) {
        outcome.status = outOfMemory();
    }
    const auto operation = m_inFlight.extract(it);
    end(operation.mapped(), outcome);
}

void UringQueue::end(const Operation& operation, const ReadOutcome& outcome) {
    Waiter* const waiter = operation.waiter;
    if (waiter == nullptr) {
        m_done(operation.cursor.read().key, outcome);
        return;
    }
    MutexLock lock(m_mutex);
    try {
        waiter->outcome = outcome;
    } catch (const std::bad_alloc&) {
        waiter->outcome = {outOfMemory(), outcome.submittedNs};
    }
    waiter->done = true;
    m_readDone.notifyAll();
}

// Registers the memory at its first read. Registration allocates its pages, as the read would do
// otherwise.
int UringQueue::bufferOf(std::span<std::byte> memory) {
    {
        MutexLock lock(m_mutex);
        if (const auto it = m_buffers.find(memory.data()); it != m_buffers.end()) return it->second;
        if (!m_refusal.empty() || m_movable.contains(memory.data())) return -1;
    }
    const int index = m_ring->addBuffer(memory);
    try {
        MutexLock lock(m_mutex);
        if (index >= 0)
            m_buffers.emplace(memory.data(), index);
        else
            m_refusal = refusalText(-index);
        return std::max(index, -1);
    } catch (const std::bad_alloc&) {  // read unregistered
        if (index >= 0) m_ring->removeBuffer(index);
        return -1;
    }
}

void UringQueue::forget(std::byte* memory) {
    unregister(memory);
    MutexLock lock(m_mutex);
    m_movable.erase(memory);
}

// The kernel does not move registered pages. Older ones (6.1) hold them for a second or more after
// that has ended, so the memory must not be registered again by a read meanwhile.
void UringQueue::keepMovable(std::byte* memory, bool movable) {
    {
        MutexLock lock(m_mutex);
        if (movable)
            m_movable.insert(memory);
        else
            m_movable.erase(memory);
    }
    if (movable) unregister(memory);
}

void UringQueue::unregister(std::byte* memory) {
    int index = -1;
    {
        MutexLock lock(m_mutex);
        const auto it = m_buffers.find(memory);
        if (it == m_buffers.end()) return;
        index = it->second;
        m_buffers.erase(it);
    }
    m_ring->removeBuffer(index);
}

void UringQueue::stop() {
    if (!m_thread.joinable()) return;
    {
        MutexLock lock(m_mutex);
        m_stopping = true;
    }
    m_ring->wake();
    m_thread.join();
}

std::string UringQueue::text() const {
    MutexLock lock(m_mutex);
    if (m_refusal.empty()) return "io_uring, registered buffers";
    return "io_uring, " +
           (m_buffers.empty() ? "unregistered buffers"
                              : formatCount(int64_t(m_buffers.size())) + " registered buffers") +
           " (" + m_refusal + ")";
}

std::unique_ptr<ReadQueue> makeReadQueue(std::unique_ptr<Reader> reader) {
    if (reader->descriptor(0, IoMode::Direct) < 0)
        return std::make_unique<ThreadQueue>(std::move(reader), "");
    auto ring = Ring::open();
    if (!ring) return std::make_unique<ThreadQueue>(std::move(reader), ring.status().message());
    return std::make_unique<UringQueue>(std::move(reader), std::move(*ring));
}

}  // namespace colibri
