// SPDX-License-Identifier: Apache-2.0
// Reads of whole records, several in flight. There are two implementations with identical results
// and errors: io_uring (one ring, one thread) and pread on threads.
//
// submit(), read(), forget() and keepMovable() may be called from any thread. Done runs on a thread
// of the queue that holds none of its locks.
#pragma once

#include <functional>
#include <memory>
#include <span>
#include <string>
#include <thread>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "engine/base/mutex.h"
#include "engine/store/clock.h"
#include "engine/store/reader.h"
#include "engine/store/ring.h"

namespace colibri {

struct RecordRead {
    uint32_t key = 0;  // returned unchanged
    int64_t moeLayer = 0, expert = 0;
    std::span<std::byte> out;  // the record's memory; the queue owns it until the read ends
    IoMode mode = IoMode::Direct;
};

struct ReadOutcome {
    Status status;
    uint64_t submittedNs = 0;  // when the first read was submitted to the system
};

// Follows one record through short reads. Errors name file, expert, layer, byte and reason.
class RecordCursor {
public:
    RecordCursor(const StoreShape& shape, const RecordRead& read) : m_shape(&shape), m_read(read) {}
    int64_t offset() const;             // of the next read, in the file
    std::span<std::byte> rest() const;  // the memory it fills
    // Takes the result of a read at offset(): a count, 0 at the end of the file, or -errno. True
    // if there is nothing more to read: the record is complete, or status() gives the error.
    bool take(int64_t result);
    const Status& status() const { return m_status; }
    const RecordRead& read() const { return m_read; }

private:
    std::string positionText(int64_t byte) const;
    const StoreShape* m_shape;
    RecordRead m_read;
    int64_t m_done = 0;  // bytes
    Status m_status;
};

// Short enough to need no allocation: there was no memory for a read or for its error message.
inline Status outOfMemory() {
    return {Code::OutOfMemory, "out of memory"};
}

class ReadQueue {
public:
    using Done = std::function<void(uint32_t key, const ReadOutcome&)>;
    virtual ~ReadQueue() = default;
    // Reserves room for the maximum number of concurrent reads.
    static constexpr size_t kMostReads = 256;

    // Called once, before all other functions. `shape` and `clock` must outlive the queue.
    virtual Status start(const StoreShape& shape, StoreClock& clock, int64_t depth, Done done) = 0;
    // The maximum number of submitted reads in flight; the caller must not exceed it.
    virtual Status setDepth(int64_t depth) = 0;
    virtual void submit(const RecordRead& read) = 0;
    // The same, but blocks the caller; not counted in the depth.
    virtual ReadOutcome read(const RecordRead& read) = 0;
    // The memory is about to be unmapped. REQUIRES: no read into it is in flight.
    virtual void forget(std::byte* /*memory*/) {}
    // Whether the kernel must be able to move the memory's pages between reads (default: no). Valid
    // until forget(). REQUIRES: no read into it is in flight.
    virtual void keepMovable(std::byte* /*memory*/, bool /*movable*/) {}
    // Stops the threads. Waits for reads in flight and drops those that have not begun.
    virtual void stop() = 0;
    // How experts are read and why, e.g. "io_uring, registered buffers".
    virtual std::string text() const = 0;
};

// pread on threads, one per read in flight. `why`: reason for not using io_uring, or "".
class ThreadQueue final : public ReadQueue {
public:
    ThreadQueue(std::unique_ptr<Reader> reader, std::string why)
        : m_reader(std::move(reader)), m_why(std::move(why)) {}
    ~ThreadQueue() override { stop(); }
    Status start(const StoreShape& shape, StoreClock& clock, int64_t depth, Done done) override;
    Status setDepth(int64_t depth) override;
    void submit(const RecordRead& read) override;
    ReadOutcome read(const RecordRead& read) override;
    void stop() override;
    std::string text() const override;

private:
    void loop(int index);
    const std::unique_ptr<Reader> m_reader;
    const std::string m_why;
    const StoreShape* m_shape = nullptr;
    StoreClock* m_clock = nullptr;
    Done m_done;
    Mutex m_mutex;
    Condition m_changed;
    std::vector<RecordRead> m_submitted GUARDED_BY(m_mutex);
    bool m_stopping GUARDED_BY(m_mutex) = false;
    std::vector<std::thread> m_threads;  // changed by start(), setDepth() and stop(), one at a time
};

// One io_uring and the thread that feeds and empties it. Slots are registered with the kernel at
// their first read, so that later reads need no page lookup; if the kernel refuses (RLIMIT_MEMLOCK,
// too many), the remaining slots are read unregistered.
class UringQueue final : public ReadQueue {
public:
    UringQueue(std::unique_ptr<Reader> reader, std::unique_ptr<Ring> ring)
        : m_reader(std::move(reader)), m_ring(std::move(ring)) {}
    ~UringQueue() override { stop(); }
    Status start(const StoreShape& shape, StoreClock& clock, int64_t depth, Done done) override;
    Status setDepth(int64_t) override { return {}; }
    void submit(const RecordRead& read) override;
    ReadOutcome read(const RecordRead& read) override;
    void forget(std::byte* memory) override;
    void keepMovable(std::byte* memory, bool movable) override;
    void stop() override;
    std::string text() const override;

private:
    struct Waiter {  // a thread in read()
        ReadOutcome outcome;
        bool done = false;
    };
    struct Operation {
        RecordCursor cursor;
        Waiter* waiter;
        uint64_t submittedNs = 0;
    };
    void enqueue(const RecordRead& read, Waiter* waiter);
    void loop();
    void begin(Operation& operation, std::vector<Ring::Read>& reads);
    void complete(const Ring::Completion& completion);
    void end(const Operation& operation, const ReadOutcome& outcome);
    Ring::Read request(uint64_t tag);
    int bufferOf(std::span<std::byte> memory);
    void unregister(std::byte* memory);

    const std::unique_ptr<Reader> m_reader;
    std::unique_ptr<Ring> m_ring;  // nullptr after stop()
    const StoreShape* m_shape = nullptr;
    StoreClock* m_clock = nullptr;
    Done m_done;
    std::thread m_thread;
    uint64_t m_nextTag = 0;  // used by the thread only, like the next two
    std::unordered_map<uint64_t, Operation> m_inFlight;
    std::vector<uint64_t> m_unfinished;  // tags of operations with a part still to read

    mutable Mutex m_mutex;
    Condition m_readDone;  // of a thread in read()
    std::vector<Operation> m_submitted GUARDED_BY(m_mutex);
    bool m_stopping GUARDED_BY(m_mutex) = false;
    std::unordered_map<std::byte*, int> m_buffers GUARDED_BY(m_mutex);  // memory -> its index
    std::unordered_set<std::byte*> m_movable GUARDED_BY(m_mutex);       // must not be registered
    std::string m_refusal GUARDED_BY(m_mutex);  // why no more memory is registered
};

// io_uring if the machine and the reader support it, else threads with the reason.
std::unique_ptr<ReadQueue> makeReadQueue(std::unique_ptr<Reader> reader);

}  // namespace colibri
