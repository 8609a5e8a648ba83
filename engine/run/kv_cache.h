// SPDX-License-Identifier: Apache-2.0
// Paged key/value memory. A block holds kPageTokens positions of one sequence for all layers and
// KV heads; inside it lie the pages of kernels.h, one per (layer, KV head). Blocks are allocated
// when first needed and kept for reuse. Owned and used by one thread; allocatedBytes() by any.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "kernels/kernels.h"

namespace colibri {

struct KvShape {
    int64_t layers = 0, kvHeads = 0, headDim = 0;
    KvType type = KvType::F16;
    int64_t latentDim = 0;      // above 0: values are that much of the keys (kernels.h)
    int64_t contextLength = 0;  // the most positions a sequence may have

    int64_t rowsBytes() const { return kvRowsBytes(type, headDim); }  // K of a page, or V
    int64_t pageBytes() const { return (latentDim > 0 ? 1 : 2) * rowsBytes(); }
    int64_t blockBytes() const { return layers * kvHeads * pageBytes(); }
};

constexpr int64_t kvBlocksFor(int64_t positions) {
    return (positions + kPageTokens - 1) / kPageTokens;
}

// The stored part of one conversation: tokens whose keys and values are in the blocks.
struct KvSequence {
    std::vector<int32_t> tokens;
    std::vector<std::byte*> blocks;
    std::vector<uint16_t> lastExperts;  // (MoE layers, k) of the newest token; empty at first

    int64_t length() const { return int64_t(tokens.size()); }
};

class KvPool {
public:
    KvPool(const KvShape& shape, int64_t maxBlocks);
    ~KvPool();
    KvPool(const KvPool&) = delete;
    KvPool& operator=(const KvPool&) = delete;

    const KvShape& shape() const { return m_shape; }
    int64_t maxBlocks() const { return m_maxBlocks; }

    // Gives the sequence blocks for `positions` positions. False: the system has no memory.
    bool grow(KvSequence& sequence, int64_t positions);
    // Keeps the first `length` tokens and the blocks they need.
    void truncate(KvSequence& sequence, int64_t length);
    void release(KvSequence& sequence) { truncate(sequence, 0); }

    int64_t allocatedBytes() const { return m_allocated.load(std::memory_order_relaxed); }

private:
    std::byte* allocate();

    KvShape m_shape;
    int64_t m_maxBlocks;
    int64_t m_blockBytes, m_alignment;
    std::vector<std::byte*> m_free;
    std::vector<std::byte*> m_all;
    std::atomic<int64_t> m_allocated{0};
};

// Finished sequences kept for the next turn of their conversation, oldest first.
class PrefixCache {
public:
    explicit PrefixCache(KvPool& pool) : m_pool(pool) {}
    ~PrefixCache() { clear(); }

    // Removes and returns the sequence that shares the most leading tokens with `prompt`, cut to
    // that part and to at most prompt - 1 tokens (the last one must be computed for its logits).
    KvSequence take(const std::vector<int32_t>& prompt);
    void put(KvSequence&& sequence);
    bool evictOldest();  // false: empty
    void clear();
    int64_t blocks() const;

private:
    KvPool& m_pool;
    std::vector<KvSequence> m_entries;
};

}  // namespace colibri
