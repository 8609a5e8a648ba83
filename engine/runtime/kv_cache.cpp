// SPDX-License-Identifier: Apache-2.0
#include "engine/runtime/kv_cache.h"

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
KvCache::KvCache(const KvShape& shape, int64_t maxBlocks) : m_shape(shape), m_maxBlocks(maxBlocks) {
    const int64_t bytes = shape.blockBytes();
    m_alignment = bytes >= kHugePage ? kHugePage : kPage;
    m_blockBytes = roundUp(bytes, bytes >= 4 * kHugePage ? kHugePage : kPage);
}

KvCache::~KvCache() {
    for (const std::unique_ptr<KvBlock>& block : m_all) std::free(block->data);
}

// --- memory ----------------------------------------------------------------------------------

KvBlock* KvCache::allocate() {
    m_all.push_back(std::make_unique<KvBlock>());
    // aligned_alloc needs a multiple of the alignment; the memory after the block is not used.
    void* memory =
        std::aligned_alloc(size_t(m_alignment), size_t(roundUp(m_blockBytes, m_alignment)));
    if (!memory) {
        m_all.pop_back();
        return nullptr;
    }
    if (m_alignment == kHugePage) {
        (void)madvise(memory, size_t(m_blockBytes / kHugePage * kHugePage), MADV_HUGEPAGE);
    }
    // Attention may load whole vectors past the last written position of a page.
    std::memset(memory, 0, size_t(m_blockBytes));
    m_allocated.fetch_add(m_blockBytes, std::memory_order_relaxed);
    m_all.back()->data = static_cast<std::byte*>(memory);
    return m_all.back().get();
}

// A block for one holder, outside the tree. nullptr: there is none.
KvBlock* KvCache::take() {
    if (m_free.empty() && int64_t(m_all.size()) < m_maxBlocks) {
        if (KvBlock* const fresh = allocate()) m_free.push_back(fresh);
    }
    if (m_free.empty() && !m_kept.empty()) remove(*m_kept.front());
    if (m_free.empty()) return nullptr;
    KvBlock* const block = m_free.back();
    m_free.pop_back();
    block->holders = 1;
    return block;
}

int64_t KvCache::available() const {
    return m_maxBlocks - int64_t(m_all.size()) + int64_t(m_free.size() + m_kept.size());
}

KvCounts KvCache::counts() const {
    const auto kept = int64_t(m_kept.size());
    return {int64_t(m_all.size() - m_free.size()) - kept, kept, m_maxBlocks};
}

bool KvCache::grow(KvSequence& sequence, int64_t positions) {
    if (sequence.blocks.empty()) sequence.generation = m_generation;
    const auto needed = size_t(kvBlocksFor(positions));
    while (sequence.blocks.size() < needed) {
        KvBlock* const block = take();
        if (!block) return false;
        sequence.blocks.push_back(block);
    }
    return true;
}

// --- the tree --------------------------------------------------------------------------------

KvCache::Match KvCache::bestChild(const KvBlock& parent, std::span<const int32_t> tokens) {
    Match best;
    for (KvBlock* const child : parent.children) {
        const auto end =
            std::mismatch(child->tokens.begin(), child->tokens.end(), tokens.begin(), tokens.end());
        const auto same = int64_t(end.first - child->tokens.begin());
        if (same > best.tokens) best = {child, same};
    }
    return best;
}

KvBlock* KvCache::blockBefore(const KvSequence& sequence, int64_t index) {
    return index > 0 ? sequence.blocks[size_t(index - 1)] : &m_root;
}

// Kept blocks that are prefixes of the new one are no longer needed.
void KvCache::insert(KvBlock& parent, KvBlock& block, std::span<const int32_t> tokens) {
    const std::vector<KvBlock*> siblings = parent.children;
    for (KvBlock* const sibling : siblings) {
        const std::vector<int32_t>& less = sibling->tokens;
        if (sibling->holders == 0 && less.size() < tokens.size() &&
            std::equal(less.begin(), less.end(), tokens.begin())) {
            remove(*sibling);
        }
    }
    block.tokens.assign(tokens.begin(), tokens.end());
    block.parent = &parent;
    parent.children.push_back(&block);
}

// Frees a kept block. REQUIRES: it has no children.
void KvCache::remove(KvBlock& block) {
    std::erase(block.parent->children, &block);
    m_kept.erase(block.place);
    block.tokens.clear();
    block.parent = nullptr;
    m_free.push_back(&block);
}

void KvCache::hold(KvBlock& block) {
    if (block.holders++ == 0) m_kept.erase(block.place);
}

void KvCache::drop(KvBlock& block) {
    if (--block.holders > 0) return;
    if (block.inTree()) {
        block.place = m_kept.insert(m_kept.end(), &block);
    } else {
        m_free.push_back(&block);
    }
}

int64_t KvCache::find(KvSequence& sequence, std::span<const int32_t> tokens) {
    if (sequence.blocks.empty()) sequence.generation = m_generation;
    if (sequence.generation != m_generation) return 0;
    if (sequence.shared * kPageTokens != sequence.length()) return 0;
    const int64_t before = sequence.length();
    while (true) {
        const std::span<const int32_t> rest = tokens.subspan(size_t(sequence.length()));
        const Match match = bestChild(*blockBefore(sequence, sequence.shared), rest);
        if (match.tokens == 0) break;
        const bool whole = match.tokens == kPageTokens;
        if (whole) {
            hold(*match.block);
            const auto at = size_t(sequence.shared++);
            if (at < sequence.blocks.size()) {
                drop(*sequence.blocks[at]);
                sequence.blocks[at] = match.block;
            } else {
                sequence.blocks.push_back(match.block);
            }
        } else if (!copyInto(sequence, match)) {
            break;
        }
        const auto found = rest.first(size_t(match.tokens));
        sequence.tokens.insert(sequence.tokens.end(), found.begin(), found.end());
        if (!whole) break;
    }
    if (sequence.length() > before) sequence.lastExperts.clear();
    return sequence.length() - before;
}

// A block of the tree into the sequence's next one.
bool KvCache::copyInto(KvSequence& sequence, const Match& match) {
    hold(*match.block);  // else its memory could be reused
    const auto at = size_t(sequence.shared);
    KvBlock* const own = at < sequence.blocks.size() ? sequence.blocks[at] : take();
    if (own) {
        std::memcpy(own->data, match.block->data, size_t(m_shape.blockBytes()));
        if (at == sequence.blocks.size()) sequence.blocks.push_back(own);
    }
    drop(*match.block);
    return own != nullptr;
}

int64_t KvCache::missing(std::span<const int32_t> tokens, int64_t positions) const {
    const KvBlock* at = &m_root;
    int64_t found = 0, kept = 0;
    for (Match match = bestChild(*at, tokens); match.tokens == kPageTokens;
         match = bestChild(*at, tokens.subspan(size_t(found * kPageTokens)))) {
        at = match.block;
        ++found;
        kept += at->holders == 0 ? 1 : 0;
    }
    return std::max<int64_t>(0, kvBlocksFor(positions) - found - (available() - kept));
}

void KvCache::share(KvSequence& sequence) {
    if (sequence.generation != m_generation) return;
    for (; (sequence.shared + 1) * kPageTokens <= sequence.length(); ++sequence.shared) {
        KvBlock& parent = *blockBefore(sequence, sequence.shared);
        KvBlock*& own = sequence.blocks[size_t(sequence.shared)];
        const auto tokens = std::span<const int32_t>(sequence.tokens)
                                .subspan(size_t(sequence.shared * kPageTokens), kPageTokens);
        const Match same = bestChild(parent, tokens);
        if (same.tokens == kPageTokens) {  // another sequence has stored the same tokens
            hold(*same.block);
            drop(*own);
            own = same.block;
        } else {
            insert(parent, *own, tokens);
        }
    }
}

void KvCache::keep(KvSequence& sequence) {
    share(sequence);
    const auto rest =
        std::span<const int32_t>(sequence.tokens).subspan(size_t(sequence.shared * kPageTokens));
    if (sequence.generation == m_generation && !rest.empty()) {
        KvBlock& parent = *blockBefore(sequence, sequence.shared);
        if (bestChild(parent, rest).tokens < int64_t(rest.size())) {
            insert(parent, *sequence.blocks[size_t(sequence.shared)], rest);
        }
    }
    release(sequence);
}

void KvCache::release(KvSequence& sequence) {
    for (auto block = sequence.blocks.rbegin(); block != sequence.blocks.rend(); ++block) {
        drop(**block);
    }
    sequence = {};
}

int64_t KvCache::heldAlone(const KvSequence& sequence) const {
    return std::count_if(sequence.blocks.begin(), sequence.blocks.end(),
                         [](const KvBlock* block) { return block->holders == 1; });
}

void KvCache::forget() {
    ++m_generation;
    while (!m_kept.empty()) remove(*m_kept.front());
    m_root.children.clear();
    for (const std::unique_ptr<KvBlock>& block : m_all) {
        block->tokens.clear();
        block->children.clear();
        block->parent = nullptr;
    }
}

}  // namespace colibri
