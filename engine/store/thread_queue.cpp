// SPDX-License-Identifier: Apache-2.0
#include <pthread.h>

#include <cstring>
#include <system_error>

#include "engine/base/format.h"
#include "engine/store/read_queue.h"

namespace colibri {

// ---- RecordCursor ----

int64_t RecordCursor::offset() const {
    return m_read.expert * int64_t(m_read.out.size()) + m_done;
}

std::span<std::byte> RecordCursor::rest() const {
    return m_read.out.subspan(size_t(m_done));
}

std::string RecordCursor::positionText(int64_t byte) const {
    const auto layer = size_t(m_read.moeLayer);
    return m_shape->files[layer] + ": expert " + formatCount(m_read.expert) + " of layer " +
           formatCount(m_shape->layers[layer]) + " could not be read at byte " + formatCount(byte);
}

bool RecordCursor::take(int64_t result) {
    if (result < 0) {
        m_status = {Code::IoError, positionText(offset()) + ": " + std::strerror(int(-result)),
                    "Check the disk and the system log"};
        return true;
    }
    const auto size = int64_t(m_read.out.size());
    const int64_t reached = m_done + result;
    // A direct read that ends inside a block continues from the block's start.
    const int64_t next = m_read.mode == IoMode::Direct && reached < size
                             ? reached / kRecordAlign * kRecordAlign
                             : reached;
    if (next <= m_done) {
        m_status = {Code::BadInput, positionText(offset() + result) + ": the file ends there",
                    "The file was truncated; copy or convert the model again"};
        return true;
    }
    m_done = next;
    return m_done == size;
}

// ---- ThreadQueue ----

Status ThreadQueue::start(const StoreShape& shape, StoreClock& clock, int64_t depth, Done done) {
    m_shape = &shape;
    m_clock = &clock;
    m_done = std::move(done);
    {
        MutexLock lock(m_mutex);
        m_submitted.reserve(kMostReads);
    }
    return setDepth(depth);
}

Status ThreadQueue::setDepth(int64_t depth) {
    try {
        while (int64_t(m_threads.size()) < depth) {
            const int index = int(m_threads.size());
            m_threads.emplace_back([this, index] { loop(index); });
        }
    } catch (const std::system_error& error) {
        return {Code::OutOfMemory, std::string("Cannot start a thread: ") + error.what()};
    }
    return {};
}

void ThreadQueue::submit(const RecordRead& read) {
    {
        MutexLock lock(m_mutex);
        m_submitted.push_back(read);
    }
    m_changed.notifyOne();
}

void ThreadQueue::loop(int index) {
    pthread_setname_np(pthread_self(), ("expert-io-" + std::to_string(index)).c_str());
    for (;;) {
        RecordRead next;
        {
            MutexLock lock(m_mutex);
            while (!m_stopping && m_submitted.empty()) m_changed.wait(m_mutex);
            if (m_stopping) return;
            next = m_submitted.front();
            m_submitted.erase(m_submitted.begin());
        }
        m_done(next.key, read(next));
    }
}

ReadOutcome ThreadQueue::read(const RecordRead& read) {
    const uint64_t begin = m_clock->now();
    RecordCursor cursor(*m_shape, read);
    try {
        while (!cursor.take(
            m_reader->readAt(read.moeLayer, cursor.offset(), cursor.rest(), read.mode))) {
        }
        return {cursor.status(), begin};
    } catch (const std::bad_alloc&) {
        return {outOfMemory(), begin};
    }
}

void ThreadQueue::stop() {
    {
        MutexLock lock(m_mutex);
        m_stopping = true;
    }
    m_changed.notifyAll();
    for (std::thread& thread : m_threads) thread.join();
    m_threads.clear();
}

std::string ThreadQueue::text() const {
    return "pread on threads" + (m_why.empty() ? "" : " (no io_uring: " + m_why + ")");
}

}  // namespace colibri
