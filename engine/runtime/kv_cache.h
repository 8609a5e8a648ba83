// SPDX-License-Identifier: Apache-2.0
// Paged key/value memory that sequences share by content.
//
// A block holds kPageTokens positions for all layers and KV heads. It contains the pages of
// kernels.h, one per (layer, KV head). The keys and values of a position depend only on the tokens
// up to it, so sequences that begin with the same tokens can use the same blocks.
//
// A block is in one of four states:
//   free    nobody uses it
//   own     one sequence holds it and may write to it
//   shared  its contents are complete and it is in the tree; one or more sequences hold it
//   kept    it is in the tree, but no sequence holds it; its memory may be reused at any time
// In the tree, a block is the child of the block before it, and the path from the root spells the
// tokens. Full blocks enter the tree as soon as they are complete (share), so that sequences that
// run at the same time share them too. A last block that is only partly filled enters when its
// sequence ends (keep). Blocks in the tree are never written to: a sequence that needs only the
// first positions of one gets a copy (find).
//
// When memory is needed, the least recently used kept block is evicted first. A sequence releases
// its last block before the ones in front of it, so a child is always evicted before its parent.
//
// Owned and used by one thread; only allocatedBytes() may be called from any thread.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <list>
#include <memory>
#include <span>
#include <vector>

#include "kernels/kernels.h"

namespace colibri {

struct KvShape {
    int64_t layers = 0, kvHeads = 0, headDim = 0;
    KvType type = KvType::F16;
    int64_t latentDim = 0;      // above 0: values are this part of the keys (kernels.h)
    int64_t contextLength = 0;  // maximum positions of a sequence

    int64_t rowsBytes() const { return kvRowsBytes(type, headDim); }  // K of a page, or V
    int64_t pageBytes() const { return (latentDim > 0 ? 1 : 2) * rowsBytes(); }
    int64_t blockBytes() const { return layers * kvHeads * pageBytes(); }
};

constexpr int64_t kvBlocksFor(int64_t positions) {
    return (positions + kPageTokens - 1) / kPageTokens;
}

struct KvBlock {
    std::byte* data = nullptr;
    int64_t holders = 0;          // sequences that hold it
    std::vector<int32_t> tokens;  // of its positions; empty: not in the tree
    KvBlock* parent = nullptr;
    std::vector<KvBlock*> children;
    std::list<KvBlock*>::iterator place;  // in order of use, while it is kept

    bool inTree() const { return !tokens.empty(); }
};

// The tokens whose keys and values are stored, and the blocks that contain them. Further blocks are
// reserved for the next tokens.
struct KvSequence {
    std::vector<int32_t> tokens;
    std::vector<KvBlock*> blocks;
    int64_t shared = 0;                 // leading blocks that are in the tree
    uint64_t generation = 0;            // of the cache when the sequence began
    std::vector<uint16_t> lastExperts;  // (MoE layers, k) of the newest token; empty at first

    int64_t length() const { return int64_t(tokens.size()); }
};

// Blocks by state; free ones that were never allocated count as free.
struct KvCounts {
    int64_t held = 0;  // own and shared
    int64_t kept = 0;
    int64_t all = 0;
};

class KvCache {
public:
    KvCache(const KvShape& shape, int64_t maxBlocks);
    ~KvCache();
    KvCache(const KvCache&) = delete;
    KvCache& operator=(const KvCache&) = delete;

    const KvShape& shape() const { return m_shape; }

    // Appends the tokens that follow the sequence's own and are in the tree, and returns how many
    // there were. The last few may be in a copied block; without a free block for the copy they
    // are left out. Finds nothing unless all of the sequence's blocks are shared.
    // REQUIRES: tokens begins with the sequence's tokens.
    int64_t find(KvSequence& sequence, std::span<const int32_t> tokens);
    // How many more free blocks a new sequence would need to find(tokens) and then grow to
    // `positions`, reusing kept blocks. 0: there is room.
    int64_t missing(std::span<const int32_t> tokens, int64_t positions) const;
    // Gives the sequence blocks for `positions` positions, evicting kept blocks if there is no free
    // one. False: every block is held, or the system has no memory.
    bool grow(KvSequence& sequence, int64_t positions);
    // Lets other sequences find the full blocks of this one. REQUIRES: their contents are complete.
    void share(KvSequence& sequence);
    // Ends a sequence. Its blocks can be found until their memory is needed.
    void keep(KvSequence& sequence);
    // Ends a sequence. Blocks that are not shared become free.
    void release(KvSequence& sequence);
    // Blocks that only this sequence holds: the number that its end would make available.
    int64_t heldAlone(const KvSequence& sequence) const;
    // Nothing stored so far can be found any more. Running sequences continue, but are never
    // shared.
    void forget();

    KvCounts counts() const;
    int64_t allocatedBytes() const { return m_allocated.load(std::memory_order_relaxed); }

private:
    struct Match {
        KvBlock* block = nullptr;
        int64_t tokens = 0;  // number of equal leading tokens
    };
    static Match bestChild(const KvBlock& parent, std::span<const int32_t> tokens);
    KvBlock* blockBefore(const KvSequence& sequence, int64_t index);
    int64_t available() const;
    KvBlock* allocate();
    KvBlock* take();
    void insert(KvBlock& parent, KvBlock& block, std::span<const int32_t> tokens);
    void remove(KvBlock& block);
    void hold(KvBlock& block);
    void drop(KvBlock& block);
    bool copyInto(KvSequence& sequence, const Match& match);

    KvShape m_shape;
    int64_t m_maxBlocks;
    int64_t m_blockBytes, m_alignment;
    KvBlock m_root;
    std::vector<std::unique_ptr<KvBlock>> m_all;
    std::vector<KvBlock*> m_free;
    std::list<KvBlock*> m_kept;  // least recently used first
    uint64_t m_generation = 0;   // raised by forget()
    std::atomic<int64_t> m_allocated{0};
};

}  // namespace colibri
