// SPDX-License-Identifier: GPL-3.0-or-later
// Faults for both ways of reading real files: a reader for pread on threads and a ring for io_uring
// that shorten, fail or hold reads.
#pragma once

#include <atomic>
#include <condition_variable>
#include <mutex>
#include <set>

#include "store_fixture.h"

namespace colibri::test {

class Faults {
public:
    void hold() {
        set([&] { m_hold = true; });
    }
    // Reads held now stay held, and new reads pass.
    void holdOnlyThese() {
        set([&] { m_hold = false; });
    }
    void letGo() {
        set([&] {
            m_hold = false;
            ++m_generation;
        });
    }
    void shortReads(int64_t most) {
        set([&] { m_most = most; });
    }
    void failNext(int error, int times) {
        set([&] {
            m_error = error;
            m_failures = times;
        });
    }
    void waitHeld(int reads) {
        std::unique_lock lock(m_mutex);
        m_cv.wait(lock, [&] { return m_held >= reads; });
    }
    int held() {
        std::lock_guard lock(m_mutex);
        return m_held;
    }

    std::atomic<int> m_registered{0};  // slots registered with the kernel

    // Called at the start of a read. Returns the number of bytes that may be read.
    int64_t most(int64_t bytes) {
        std::lock_guard lock(m_mutex);
        return m_most > 0 ? std::min(bytes, m_most) : bytes;
    }
    int64_t changed(int64_t result) {
        std::lock_guard lock(m_mutex);
        if (m_failures <= 0) return result;
        --m_failures;
        return -m_error;
    }
    // Blocks while reads are held.
    void pass() {
        std::unique_lock lock(m_mutex);
        if (!m_hold) return;
        const int generation = m_generation;
        ++m_held;
        m_cv.notify_all();
        m_cv.wait(lock, [&] { return m_generation != generation; });
        --m_held;
    }
    // The same without blocking. True: the caller must keep the read until freed().
    bool keep() {
        std::lock_guard lock(m_mutex);
        if (m_hold) ++m_held;
        m_cv.notify_all();
        return m_hold;
    }
    int generation() {
        std::lock_guard lock(m_mutex);
        return m_generation;
    }
    void freed(int reads) {
        std::lock_guard lock(m_mutex);
        m_held -= reads;
    }
    std::function<void()> onChange;  // set before use

private:
    template <typename F>
    void set(F change) {
        {
            std::lock_guard lock(m_mutex);
            change();
        }
        m_cv.notify_all();
        if (onChange) onChange();
    }
    std::mutex m_mutex;
    std::condition_variable m_cv;
    bool m_hold = false;
    int m_held = 0, m_generation = 0, m_error = 0, m_failures = 0;
    int64_t m_most = 0;
};

class FaultyReader final : public Reader {
public:
    FaultyReader(std::unique_ptr<Reader> files, std::shared_ptr<Faults> faults, bool descriptors)
        : m_files(std::move(files)), m_faults(std::move(faults)), m_descriptors(descriptors) {}
    int64_t readAt(int64_t layer, int64_t offset, std::span<std::byte> out, IoMode mode) override {
        m_faults->pass();
        const int64_t most = m_faults->most(int64_t(out.size()));
        // Direct reads are whole blocks. The store gets the shorter count.
        return m_faults->changed(std::min(most, m_files->readAt(layer, offset, out, mode)));
    }
    int descriptor(int64_t layer, IoMode mode) const override {
        return m_descriptors ? m_files->descriptor(layer, mode) : -1;
    }

private:
    const std::unique_ptr<Reader> m_files;
    const std::shared_ptr<Faults> m_faults;
    const bool m_descriptors;
};

class FaultyRing final : public Ring {
public:
    FaultyRing(std::unique_ptr<Ring> ring, std::shared_ptr<Faults> faults)
        : m_ring(std::move(ring)), m_faults(std::move(faults)) {
        m_faults->onChange = [this] { m_ring->wake(); };
    }
    ~FaultyRing() override { m_faults->onChange = nullptr; }

    void submit(std::span<const Read> reads) override {
        for (const Read& read : reads) m_sizes[read.tag] = int64_t(read.out.size());
        m_ring->submit(reads);
    }
    void wait(std::vector<Completion>& completions) override {
        std::vector<Completion> arrived;
        m_ring->wait(arrived);
        if (const int now = m_faults->generation(); now != m_generation) {
            m_generation = now;
            m_faults->freed(int(m_kept.size()));
            completions.insert(completions.end(), m_kept.begin(), m_kept.end());
            m_kept.clear();
        }
        for (Completion one : arrived) {
            one.result = m_faults->changed(std::min(one.result, m_faults->most(m_sizes[one.tag])));
            if (m_faults->keep())
                m_kept.push_back(one);
            else
                completions.push_back(one);
        }
    }
    void wake() override { m_ring->wake(); }
    int addBuffer(std::span<std::byte> memory) override {
        const int index = m_ring->addBuffer(memory);
        if (index >= 0) ++m_faults->m_registered;
        return index;
    }
    void removeBuffer(int index) override {
        m_ring->removeBuffer(index);
        --m_faults->m_registered;
    }

private:
    const std::unique_ptr<Ring> m_ring;
    const std::shared_ptr<Faults> m_faults;
    std::map<uint64_t, int64_t> m_sizes;
    std::vector<Completion> m_kept;
    int m_generation = 0;
};

// nullptr: io_uring is required but not available.
inline std::unique_ptr<ReadQueue> faultyQueue(const ExpertFolder& folder, bool uring,
                                              std::shared_ptr<Faults> faults) {
    auto files = FileReader::open(folder.info);
    if (!files) return nullptr;
    auto reader = std::make_unique<FaultyReader>(std::move(*files), faults, uring);
    if (!uring) return std::make_unique<ThreadQueue>(std::move(reader), "");
    auto ring = Ring::open();
    if (!ring) return nullptr;
    return std::make_unique<UringQueue>(
        std::move(reader), std::make_unique<FaultyRing>(std::move(*ring), std::move(faults)));
}

}  // namespace colibri::test
