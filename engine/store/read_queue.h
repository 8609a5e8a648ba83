// SPDX-License-Identifier: Apache-2.0
// Reads of whole records, several in flight. Two ways to do it, with the same bytes and the same
// errors: io_uring (one ring, one thread) and pread on threads.
//
// submit(), read(), forget() and keepMovable() may be called from any thread. Done runs on a thread
// of the queue that holds no lock of it.
#pragma once

#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <thread>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "engine/store/clock.h"
#include "engine/store/reader.h"
#include "engine/store/ring.h"

namespace colibri {

struct RecordRead {
    uint32_t key = 0;  // handed back
    int64_t moeLayer = 0, expert = 0;
    std::span<std::byte> out;  // the record's memory, the queue's own until the read is done
    IoMode mode = IoMode::Direct;
};

struct ReadOutcome {
    Status status;
    uint64_t submittedNs = 0;  // when the system was asked for the first byte
};

// Follows one record through short reads. Errors name file, expert, layer, byte and reason.
class RecordCursor {
public:
    RecordCursor(const StoreShape& shape, const RecordRead& read) : m_shape(&shape), m_read(read) {}
    int64_t offset() const;             // of the next read in the file
    std::span<std::byte> rest() const;  // what it fills
    // Takes the result of a read at offset(): a count, 0 at the end of the file, or -errno. True
    // when there is nothing more to read: the record is whole or status() says why not.
    bool take(int64_t result);
    const Status& status() const { return m_status; }
    const RecordRead& read() const { return m_read; }

private:
    std::string place(int64_t byte) const;
    const StoreShape* m_shape;
    RecordRead m_read;
    int64_t m_done = 0;  // bytes
    Status m_status;
};

// So short that it allocates nothing: there was no memory for a read or for what was wrong with it.
inline Status outOfMemory() {
    return {Code::OutOfMemory, "out of memory"};
}

class ReadQueue {
public:
    using Done = std::function<void(uint32_t key, const ReadOutcome&)>;
    virtual ~ReadQueue() = default;
    // Room for the reads of all who may ask at once.
    static constexpr size_t kMostReads = 256;

    // Once, before anything else. `shape` and `clock` outlive the queue.
    virtual Status start(const StoreShape& shape, StoreClock& clock, int64_t depth, Done done) = 0;
    // At most this many submitted reads are in flight at once; the caller keeps to it.
    virtual Status setDepth(int64_t depth) = 0;
    virtual void submit(const RecordRead& read) = 0;
    // The same, waited for by the caller; not counted in the depth.
    virtual ReadOutcome read(const RecordRead& read) = 0;
    // The memory is about to be unmapped; no read into it is under way.
    virtual void forget(std::byte* /*memory*/) {}
    // Whether the kernel must be free to move the memory's pages between reads; no read into it is
    // under way. Until said or forgotten it need not.
    virtual void keepMovable(std::byte* /*memory*/, bool /*movable*/) {}
    // Ends the threads. A read under way is waited for, one not begun is dropped.
    virtual void stop() = 0;
    // How reads are done and why, e.g. "io_uring, registered buffers".
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
    std::mutex m_mutex;  // guards the following
    std::condition_variable m_cv;
    std::vector<RecordRead> m_submitted;
    bool m_stopping = false;
    std::vector<std::thread> m_threads;  // of start(), setDepth() and stop(): one at a time
};

// One io_uring and the thread that feeds and empties it. Slots are registered with the kernel at
// their first read, so that later ones need not look their pages up; where the kernel refuses
// (RLIMIT_MEMLOCK, too many), the rest is read unregistered.
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
    void land(const Ring::Landed& landed);
    void end(const Operation& operation, const ReadOutcome& outcome);
    Ring::Read request(uint64_t tag);
    int bufferOf(std::span<std::byte> memory);
    void unregister(std::byte* memory);

    const std::unique_ptr<Reader> m_reader;
    std::unique_ptr<Ring> m_ring;  // gone after stop()
    const StoreShape* m_shape = nullptr;
    StoreClock* m_clock = nullptr;
    Done m_done;
    std::thread m_thread;
    uint64_t m_nextTag = 0;  // of the thread, like the next two
    std::unordered_map<uint64_t, Operation> m_flying;
    std::vector<uint64_t> m_again;  // operations with a part still to read

    mutable std::mutex m_mutex;    // guards the following
    std::condition_variable m_cv;  // read(): a waiter is done
    std::vector<Operation> m_submitted;
    bool m_stopping = false;
    std::unordered_map<std::byte*, int> m_buffers;  // registered: memory -> index
    std::unordered_set<std::byte*> m_movable;       // not to be registered
    std::string m_refusal;                          // why no more memory is registered
};

// io_uring where the machine and the reader offer it, else threads that say why not.
std::unique_ptr<ReadQueue> makeReadQueue(std::unique_ptr<Reader> reader);

}  // namespace colibri
