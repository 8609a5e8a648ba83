// SPDX-License-Identifier: Apache-2.0
#include "engine/store/ring.h"

#include <cerrno>
#include <cstring>
#include <string>

#ifdef COLIBRI_HAVE_URING

#include <liburing.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <chrono>
#include <thread>

#include "engine/base/mutex.h"

namespace colibri {

namespace {

constexpr unsigned kBuffers = 1 << 14;  // the most the kernel takes
constexpr uint64_t kWakeTag = UINT64_MAX;

class KernelRing final : public Ring {
public:
    ~KernelRing() override {
        if (m_open) io_uring_queue_exit(&m_ring);
        if (m_event >= 0) ::close(m_event);
    }

    Status open() {
        m_event = eventfd(0, EFD_CLOEXEC);
        if (m_event < 0) return failed("eventfd", errno);
        const int error = io_uring_queue_init(kInFlight, &m_ring, 0);
        if (error < 0) return failed("io_uring_setup", -error);
        m_open = true;
        m_sparse = io_uring_register_buffers_sparse(&m_ring, kBuffers);
        return {};
    }

    void submit(std::span<const Read> reads) override {
        for (const Read& read : reads) {
            io_uring_sqe* const sqe = next();
            if (read.buffer >= 0)
                io_uring_prep_read_fixed(sqe, read.fd, read.out.data(), unsigned(read.out.size()),
                                         uint64_t(read.offset), read.buffer);
            else
                io_uring_prep_read(sqe, read.fd, read.out.data(), unsigned(read.out.size()),
                                   uint64_t(read.offset));
            sqe->user_data = read.tag;
        }
        if (!reads.empty()) flush(0);
    }

    void wait(std::vector<Completion>& completions) override {
        if (!m_armed) {
            io_uring_sqe* const sqe = next();
            io_uring_prep_read(sqe, m_event, &m_count, sizeof m_count, 0);
            sqe->user_data = kWakeTag;
            m_armed = true;
        }
        if (io_uring_cq_ready(&m_ring) == 0) flush(1);
        io_uring_cqe* cqes[32];
        unsigned n = 0;
        while ((n = io_uring_peek_batch_cqe(&m_ring, cqes, 32)) > 0) {
            for (unsigned i = 0; i < n; ++i) {
                if (cqes[i]->user_data == kWakeTag)
                    m_armed = false;
                else
                    completions.push_back({cqes[i]->user_data, cqes[i]->res});
            }
            io_uring_cq_advance(&m_ring, n);
        }
    }

    void wake() override {
        const uint64_t one = 1;
        while (::write(m_event, &one, sizeof one) < 0 && errno == EINTR) {
        }
    }

    int addBuffer(std::span<std::byte> memory) override {
        if (m_sparse < 0) return m_sparse;
        MutexLock lock(m_mutex);
        if (m_free.empty() && m_used == kBuffers) return -ENOSPC;
        const unsigned index = m_free.empty() ? m_used : m_free.back();
        if (const int error = update(index, memory.data(), memory.size()); error < 0) return error;
        if (m_free.empty())
            ++m_used;
        else
            m_free.pop_back();
        return int(index);
    }

    void removeBuffer(int index) override {
        MutexLock lock(m_mutex);
        update(unsigned(index), nullptr, 0);
        m_free.push_back(unsigned(index));
    }

private:
    static Status failed(const char* what, int error) {
        return {Code::Unsupported, std::string(what) + ": " + std::strerror(error)};
    }
    int update(unsigned index, std::byte* memory, size_t bytes) {
        const iovec part{memory, bytes};
        const __u64 tag = 0;
        const int n = io_uring_register_buffers_update_tag(&m_ring, index, &part, &tag, 1);
        return n < 0 ? n : 0;
    }
    io_uring_sqe* next() {
        io_uring_sqe* sqe = io_uring_get_sqe(&m_ring);
        while (sqe == nullptr) {
            flush(0);
            sqe = io_uring_get_sqe(&m_ring);
        }
        return sqe;
    }
    // Submits requests to the kernel and waits for `wanted` results. Requests that the kernel
    // cannot accept now stay queued for the next call.
    void flush(unsigned wanted) {
        const int n =
            wanted > 0 ? io_uring_submit_and_wait(&m_ring, wanted) : io_uring_submit(&m_ring);
        if (n == -EAGAIN || n == -EBUSY || n == -ENOMEM)  // the kernel is short of memory
            std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }

    io_uring m_ring{};
    bool m_open = false, m_armed = false;
    int m_sparse = -1;     // 0: buffers can be registered; else why not
    int m_event = -1;      // wake()
    uint64_t m_count = 0;  // what a read of m_event returns
    Mutex m_mutex;
    unsigned m_used GUARDED_BY(m_mutex) = 0;           // indices assigned so far
    std::vector<unsigned> m_free GUARDED_BY(m_mutex);  // indices returned
};

}  // namespace

Result<std::unique_ptr<Ring>> Ring::open() {
    auto ring = std::make_unique<KernelRing>();
    COLIBRI_TRY(ring->open());
    return std::unique_ptr<Ring>(std::move(ring));
}

}  // namespace colibri

#else

namespace colibri {

Result<std::unique_ptr<Ring>> Ring::open() {
    return Status(Code::Unsupported, "this program was built without liburing");
}

}  // namespace colibri

#endif
