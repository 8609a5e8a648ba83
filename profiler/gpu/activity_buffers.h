// SPDX-License-Identifier: Apache-2.0
// The buffers that CUPTI fills with records. CUPTI's callbacks carry no user data, so one pool at a
// time receives them; a buffer that returns after its pool has gone is freed.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "engine/base/mutex.h"
#include "profiler/gpu/cupti_types.h"

namespace colibri {

struct ActivityBuffer {
    struct Free {
        void operator()(uint8_t* bytes) const;
    };
    std::unique_ptr<uint8_t, Free> bytes;
    size_t validBytes = 0;
};

// Any thread.
class ActivityBuffers {
public:
    // At most `most` buffers of `bufferBytes` each, at least 1 KiB, exist at a time. Beyond that
    // CUPTI gets none and drops records.
    ActivityBuffers(size_t bufferBytes, size_t most);
    ~ActivityBuffers();
    ActivityBuffers(const ActivityBuffers&) = delete;
    ActivityBuffers& operator=(const ActivityBuffers&) = delete;

    // Makes this the pool that the callbacks use. Returns false if another pool is.
    bool install();
    static void requested(uint8_t** buffer, size_t* size, size_t* maxRecords);
    static void completed(cupti::Context context, uint32_t stream, uint8_t* buffer, size_t size,
                          size_t validSize);

    // The completed buffers in the order in which CUPTI returned them.
    std::vector<ActivityBuffer> takeCompleted();
    void recycle(ActivityBuffer buffer);
    uint64_t refused() const;  // requests for a buffer that had to be refused

private:
    uint8_t* give();
    void take(uint8_t* bytes, size_t validBytes);

    const size_t m_bufferBytes, m_most;
    mutable Mutex m_mutex;
    std::vector<ActivityBuffer> m_free GUARDED_BY(m_mutex), m_completed GUARDED_BY(m_mutex);
    size_t m_made GUARDED_BY(m_mutex) = 0;  // exist: with CUPTI, completed or free
    uint64_t m_refused GUARDED_BY(m_mutex) = 0;
};

}  // namespace colibri
