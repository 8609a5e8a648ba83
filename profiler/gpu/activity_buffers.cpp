// SPDX-License-Identifier: Apache-2.0
#include "profiler/gpu/activity_buffers.h"

#include <algorithm>
#include <cstdlib>
#include <utility>

namespace colibri {
namespace {

constexpr size_t kRecordAlignment = 8, kLeastBufferBytes = 1024;

// Held while a pool receives a callback, so that it cannot go meanwhile.
Mutex g_installedMutex;
ActivityBuffers* g_installed GUARDED_BY(g_installedMutex) = nullptr;

}  // namespace

void ActivityBuffer::Free::operator()(uint8_t* bytes) const {
    std::free(bytes);
}

ActivityBuffers::ActivityBuffers(size_t bufferBytes, size_t most)
    : m_bufferBytes(std::max(bufferBytes, kLeastBufferBytes) / kRecordAlignment * kRecordAlignment),
      m_most(most) {}

ActivityBuffers::~ActivityBuffers() {
    MutexLock lock(g_installedMutex);
    if (g_installed == this) g_installed = nullptr;
}

bool ActivityBuffers::install() {
    MutexLock lock(g_installedMutex);
    if (g_installed) return g_installed == this;
    g_installed = this;
    return true;
}

void ActivityBuffers::requested(uint8_t** buffer, size_t* size, size_t* maxRecords) {
    MutexLock lock(g_installedMutex);
    *maxRecords = 0;  // as many as fit
    *buffer = g_installed ? g_installed->give() : nullptr;
    *size = *buffer ? g_installed->m_bufferBytes : 0;
}

void ActivityBuffers::completed(cupti::Context, uint32_t, uint8_t* buffer, size_t size,
                                size_t validSize) {
    MutexLock lock(g_installedMutex);
    if (g_installed && size == g_installed->m_bufferBytes) {
        g_installed->take(buffer, std::min(size, validSize));
    } else {  // of a pool that has gone
        std::free(buffer);
    }
}

uint8_t* ActivityBuffers::give() {
    MutexLock lock(m_mutex);
    if (!m_free.empty()) {
        uint8_t* bytes = m_free.back().bytes.release();
        m_free.pop_back();
        return bytes;
    }
    void* bytes = nullptr;
    if (m_made < m_most) bytes = std::aligned_alloc(kRecordAlignment, m_bufferBytes);
    ++(bytes ? m_made : m_refused);
    return static_cast<uint8_t*>(bytes);
}

void ActivityBuffers::take(uint8_t* bytes, size_t validBytes) {
    if (!bytes) return;
    MutexLock lock(m_mutex);
    ActivityBuffer buffer;
    buffer.bytes.reset(bytes);
    buffer.validBytes = validBytes;
    (validBytes ? m_completed : m_free).push_back(std::move(buffer));
}

std::vector<ActivityBuffer> ActivityBuffers::takeCompleted() {
    MutexLock lock(m_mutex);
    return std::exchange(m_completed, {});
}

void ActivityBuffers::recycle(ActivityBuffer buffer) {
    MutexLock lock(m_mutex);
    buffer.validBytes = 0;
    m_free.push_back(std::move(buffer));
}

uint64_t ActivityBuffers::refused() const {
    MutexLock lock(m_mutex);
    return m_refused;
}

}  // namespace colibri
