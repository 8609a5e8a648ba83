// SPDX-License-Identifier: Apache-2.0
// Memory that only grows: aligned, uninitialised, reused. Large buffers use huge pages if the
// system has them.
#pragma once

#include <sys/mman.h>

#include <cstddef>
#include <cstdint>
#include <new>
#include <utility>

namespace colibri {

class ScratchBuffer {
public:
    ScratchBuffer() = default;
    ScratchBuffer(ScratchBuffer&& other) noexcept
        : m_data(std::exchange(other.m_data, nullptr)), m_bytes(std::exchange(other.m_bytes, 0)) {}
    ScratchBuffer& operator=(ScratchBuffer&&) = delete;
    ~ScratchBuffer() { release(); }

    // At least `count` values of T; growing discards the old content.
    template <typename T>
    T* as(int64_t count) {
        const int64_t bytes = count * int64_t(sizeof(T));
        if (bytes > m_bytes) grow(bytes);
        return static_cast<T*>(m_data);
    }
    void* data() const { return m_data; }
    int64_t bytes() const { return m_bytes; }

private:
    static constexpr int64_t kPage = 4096, kHugePage = 2 << 20;

    std::align_val_t alignment() const {
        return std::align_val_t(m_bytes >= kHugePage ? kHugePage : kPage);
    }
    void grow(int64_t bytes) {
        release();
        m_bytes = (bytes + kPage - 1) / kPage * kPage;
        m_data = ::operator new(size_t(m_bytes), alignment(), std::nothrow);
        if (!m_data) {
            m_bytes = 0;
            throw std::bad_alloc();
        }
        if (m_bytes >= kHugePage) (void)madvise(m_data, size_t(m_bytes), MADV_HUGEPAGE);
    }
    void release() {
        if (m_data) ::operator delete(m_data, alignment());
        m_data = nullptr;
        m_bytes = 0;
    }

    void* m_data = nullptr;
    int64_t m_bytes = 0;
};

}  // namespace colibri
