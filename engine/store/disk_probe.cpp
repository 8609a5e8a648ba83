// SPDX-License-Identifier: Apache-2.0
#include "engine/store/disk_probe.h"

#include <memory>
#include <random>
#include <vector>

#include "engine/base/mutex.h"
#include "engine/store/slot_memory.h"
#include "engine/store/store_factory.h"

namespace colibri {

namespace {

// Keeps reads of random records in flight until the time is over.
class DiskProbe {
public:
    DiskProbe(const ContainerInfo& info, int depth, double seconds, const std::atomic<bool>& stop)
        : m_shape(StoreFactory::shapeOf(info)),
          m_depth(uint32_t(depth)),
          m_ns(uint64_t(seconds * 1e9)),
          m_stop(stop),
          m_sizes(m_depth) {}
    ~DiskProbe() {
        if (m_queue) m_queue->stop();
        for (std::byte* buffer : m_buffers) m_memory.free(buffer, m_bytes);
    }

    Status run(const ContainerInfo& info, DiskRate& out) {
        auto reader = FileReader::open(info);
        if (!reader) return reader.status();
        out.direct = (*reader)->directWorks();
        m_mode = out.direct ? IoMode::Direct : IoMode::Buffered;
        m_bytes = info.expertRecordBytes();
        m_queue = makeReadQueue(std::move(*reader));
        for (uint32_t i = 0; i < m_depth; ++i) {
            m_buffers.push_back(m_memory.allocate(m_bytes));
            if (m_buffers.back() == nullptr)
                return {Code::OutOfMemory, "No memory for the read buffers of the disk probe"};
        }
        COLIBRI_TRY(m_queue->start(m_shape, m_clock, m_depth,
                                   [this](uint32_t i, const ReadOutcome& o) { readEnded(i, o); }));
        MutexLock lock(m_mutex);
        m_startNs = m_clock.now();
        m_reading = m_depth;
        for (uint32_t i = 0; i < m_depth; ++i) submit(i);
        while (m_reading > 0) m_changed.wait(m_mutex);
        COLIBRI_TRY(m_status);
        out.bytesPerSecond = double(m_read) / (double(m_clock.now() - m_startNs) * 1e-9);
        out.reads = m_queue->text();
        return {};
    }

private:
    void submit(uint32_t i) REQUIRES(m_mutex) {
        const int64_t layer = int64_t(m_random() % m_shape.layers.size());
        const auto bytes = size_t(m_shape.recordBytes[size_t(layer)]);
        m_queue->submit({i,
                         layer,
                         int64_t(m_random() % uint64_t(m_shape.experts)),
                         {m_buffers[i], bytes},
                         m_mode});
        m_sizes[i] = bytes;
    }
    void readEnded(uint32_t i, const ReadOutcome& outcome) {
        MutexLock lock(m_mutex);
        if (outcome.status.ok()) m_read += m_sizes[i];
        if (m_status.ok()) m_status = outcome.status;
        const bool over = m_clock.now() - m_startNs > m_ns || m_stop.load() || !m_status.ok();
        if (!over) {
            submit(i);
            return;
        }
        --m_reading;
        m_changed.notifyAll();
    }

    const StoreShape m_shape;
    const uint32_t m_depth;
    const uint64_t m_ns;
    const std::atomic<bool>& m_stop;
    SlotMemory m_memory;
    StoreClock m_clock;
    IoMode m_mode = IoMode::Direct;
    int64_t m_bytes = 0;  // of a buffer
    std::vector<std::byte*> m_buffers;
    std::unique_ptr<ReadQueue> m_queue;
    Mutex m_mutex;
    Condition m_changed;
    std::mt19937_64 m_random GUARDED_BY(m_mutex){1};
    std::vector<size_t> m_sizes GUARDED_BY(m_mutex);
    uint64_t m_startNs GUARDED_BY(m_mutex) = 0, m_read GUARDED_BY(m_mutex) = 0;
    uint32_t m_reading GUARDED_BY(m_mutex) = 0;
    Status m_status GUARDED_BY(m_mutex);
};

}  // namespace

Result<DiskRate> probeDisk(const ContainerInfo& info, int depth, double seconds,
                           const std::atomic<bool>& stop) {
    DiskRate out;
    DiskProbe probe(info, depth, seconds, stop);
    COLIBRI_TRY(probe.run(info, out));
    return out;
}

}  // namespace colibri
