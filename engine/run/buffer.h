// SPDX-License-Identifier: Apache-2.0
// Scratch memory that only grows: 64-byte aligned, uninitialised, reused from step to step.
#pragma once

#include <cstddef>
#include <cstdint>
#include <new>

namespace colibri {

class ScratchBuffer {
public:
    ScratchBuffer() = default;
    ScratchBuffer(ScratchBuffer&& other) noexcept : m_data(other.m_data), m_bytes(other.m_bytes) {
        other.m_data = nullptr;
        other.m_bytes = 0;
    }
    ScratchBuffer& operator=(ScratchBuffer&&) = delete;
    ~ScratchBuffer() { ::operator delete(m_data, kAlign); }

    // At least `count` values of T; the old content is lost when it grows.
    template <typename T>
    T* as(int64_t count) {
        const int64_t bytes = count * int64_t(sizeof(T));
        if (bytes > m_bytes) {
            ::operator delete(m_data, kAlign);
            m_data = nullptr;
            m_bytes = 0;
            const int64_t rounded = (bytes + 4095) / 4096 * 4096;
            m_data = ::operator new(size_t(rounded), kAlign);
            m_bytes = rounded;
        }
        return static_cast<T*>(m_data);
    }
    void* data() const { return m_data; }
    int64_t bytes() const { return m_bytes; }

private:
    static constexpr std::align_val_t kAlign{64};
    void* m_data = nullptr;
    int64_t m_bytes = 0;
};

}  // namespace colibri
