// SPDX-License-Identifier: Apache-2.0
#include "engine/run/kv_cache.h"

#include <sys/mman.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>

namespace colibri {

namespace {

constexpr int64_t kPage = 4096;
constexpr int64_t kHugePage = 2 << 20;

constexpr int64_t roundUp(int64_t n, int64_t unit) {
    return (n + unit - 1) / unit * unit;
}

}  // namespace

// Blocks of large models lie in huge pages: attention reads many short runs, and would otherwise
// spend its time on TLB misses.
KvPool::KvPool(const KvShape& shape, int64_t maxBlocks) : m_shape(shape), m_maxBlocks(maxBlocks) {
    const int64_t bytes = shape.blockBytes();
    m_alignment = bytes >= kHugePage ? kHugePage : kPage;
    m_blockBytes = roundUp(bytes, bytes >= 4 * kHugePage ? kHugePage : kPage);
}

KvPool::~KvPool() {
    for (std::byte* block : m_all) std::free(block);
}

std::byte* KvPool::allocate() {
    // aligned_alloc wants a multiple of the alignment; what lies behind the block is not touched.
    void* memory =
        std::aligned_alloc(size_t(m_alignment), size_t(roundUp(m_blockBytes, m_alignment)));
    if (!memory) return nullptr;
    if (m_alignment == kHugePage) {
        (void)madvise(memory, size_t(m_blockBytes / kHugePage * kHugePage), MADV_HUGEPAGE);
    }
    // Attention may load whole vectors past the last written position of a page.
    std::memset(memory, 0, size_t(m_blockBytes));
    m_allocated.fetch_add(m_blockBytes, std::memory_order_relaxed);
    m_all.push_back(static_cast<std::byte*>(memory));
    return m_all.back();
}

bool KvPool::grow(KvSequence& sequence, int64_t positions) {
    const auto needed = size_t(kvBlocksFor(positions));
    while (sequence.blocks.size() < needed) {
        if (m_free.empty()) {
            std::byte* const block = allocate();
            if (!block) return false;
            m_free.push_back(block);
        }
        sequence.blocks.push_back(m_free.back());
        m_free.pop_back();
    }
    return true;
}

void KvPool::truncate(KvSequence& sequence, int64_t length) {
    if (length < sequence.length()) {
        sequence.tokens.resize(size_t(length));
        sequence.lastExperts.clear();
    }
    const auto needed = size_t(kvBlocksFor(length));
    while (sequence.blocks.size() > needed) {
        m_free.push_back(sequence.blocks.back());
        sequence.blocks.pop_back();
    }
}

KvSequence PrefixCache::take(const std::vector<int32_t>& prompt) {
    size_t best = m_entries.size(), bestLength = 0;
    for (size_t i = 0; i < m_entries.size(); ++i) {
        const std::vector<int32_t>& have = m_entries[i].tokens;
        const size_t limit = std::min(have.size(), prompt.size() - 1);
        size_t n = 0;
        while (n < limit && have[n] == prompt[n]) ++n;
        if (n > bestLength) {
            bestLength = n;
            best = i;
        }
    }
    if (best == m_entries.size()) return {};
    KvSequence found = std::move(m_entries[best]);
    m_entries.erase(m_entries.begin() + std::ptrdiff_t(best));
    m_pool.truncate(found, int64_t(bestLength));
    return found;
}

void PrefixCache::put(KvSequence&& sequence) {
    m_pool.truncate(sequence, sequence.length());
    if (sequence.length() == 0) return;
    m_entries.push_back(std::move(sequence));
}

bool PrefixCache::evictOldest() {
    if (m_entries.empty()) return false;
    m_pool.release(m_entries.front());
    m_entries.erase(m_entries.begin());
    return true;
}

void PrefixCache::clear() {
    while (evictOldest()) {
    }
}

int64_t PrefixCache::blocks() const {
    int64_t n = 0;
    for (const KvSequence& s : m_entries) n += int64_t(s.blocks.size());
    return n;
}

}  // namespace colibri
