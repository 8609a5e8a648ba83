// SPDX-License-Identifier: Apache-2.0
#include "engine/store/prefetcher.h"

#include <algorithm>

namespace colibri {

Prefetcher::Prefetcher(const Parts& parts, const StoreOptions& options)
    : m_parts(parts),
      m_source(options.prefetchSource),
      m_depth(options.prefetchDepth),
      m_threads(options.prefetchThreads),
      m_hints(size_t(parts.shape.layerCount())),
      m_hintNs(m_hints.size()) {
    for (std::vector<uint32_t>& hints : m_hints) hints.reserve(size_t(parts.shape.experts));
}

void Prefetcher::hint(int64_t moeLayer, std::span<const uint16_t> experts, uint64_t now) {
    if (moeLayer < 0 || moeLayer >= m_parts.shape.layerCount()) return;
    clear(moeLayer);
    if (!on() || m_parts.judge.paused()) return;
    std::vector<uint32_t>& hints = m_hints[size_t(moeLayer)];
    for (auto expert = experts.rbegin(); expert != experts.rend(); ++expert) {
        if (*expert >= m_parts.shape.experts) continue;
        const uint32_t key = m_parts.shape.keyOf(moeLayer, *expert);
        if (m_parts.table[key].state == ExpertState::OnDisk) hints.push_back(key);
    }
    m_hinted += int64_t(hints.size());
    m_hintNs[size_t(moeLayer)] = hints.empty() ? 0 : now;
    wake();
}

void Prefetcher::clear(int64_t moeLayer) {
    std::vector<uint32_t>& hints = m_hints[size_t(moeLayer)];
    m_hinted -= int64_t(hints.size());
    hints.clear();
}

void Prefetcher::clearAll() {
    for (int64_t layer = 0; layer < m_parts.shape.layerCount(); ++layer) clear(layer);
}

void Prefetcher::passLayers(int64_t moeLayer) {
    const int64_t before = m_hinted;
    if (m_hinted > 0) {
        for (int64_t layer = m_parts.table.steps().current(); layer != moeLayer;) {
            layer = (layer + 1) % m_parts.shape.layerCount();
            clear(layer);
        }
    }
    clear(moeLayer);
    m_parts.judge.cancelled(m_source, size_t(before - m_hinted));
}

// Unread or unused prefetches hold at most a quarter of the slots.
bool Prefetcher::mayRead(uint64_t now) const {
    ExpertReads& reads = m_parts.reads;
    return !reads.demandWaits() && reads.prefetchesReading() < reads.depth() &&
           m_parts.judge.open() < m_parts.table.capacity() / 4 && reads.linkIdle(now);
}

int64_t Prefetcher::next(uint64_t now) {
    if (m_hinted == 0) return -1;
    if (m_parts.judge.paused()) {
        clearAll();
        return -1;
    }
    if (!mayRead(now)) return -1;
    SlotTable& slots = m_parts.table;
    const int64_t layers = m_parts.shape.layerCount();
    for (int64_t step = 1; step <= std::min(m_depth, layers); ++step) {
        const int64_t layer = (slots.steps().current() + step) % layers;
        std::vector<uint32_t>& hints = m_hints[size_t(layer)];
        while (!hints.empty()) {
            const uint32_t key = hints.back();
            hints.pop_back();
            --m_hinted;
            if (slots[key].state != ExpertState::OnDisk) continue;
            const Slot slot = slots.slotForPrefetch(layer);
            if (!slot) {
                hints.push_back(key);
                ++m_hinted;
                return -1;
            }
            take(key, slot);
            return key;
        }
    }
    return -1;
}

void Prefetcher::take(uint32_t key, const Slot& slot) {
    SlotTable& slots = m_parts.table;
    const int64_t layer = m_parts.shape.layerOf(key);
    slots.fill(key, slot);
    ExpertEntry& e = slots[key];
    e.reason = ReadReason::Prefetch;
    e.source = m_source;
    e.unused = true;
    e.retried = e.demanded = false;
    e.uses = 0;
    e.prefetchStep = slots.steps().requestsOf(layer);
    e.requestedNs = m_hintNs[size_t(layer)];
    m_parts.judge.issued(e.source);
}

void Prefetcher::set(PrefetchSource source, int64_t depth) {
    if (m_source != source || m_depth != depth) m_parts.judge.restart();
    m_source = source;
    m_depth = depth;
    if (!on()) clearAll();
    wake();
}

void Prefetcher::setThreads(int64_t threads) {
    m_threads = threads;
    if (!on()) clearAll();
    m_parts.conditions.prefetchMayBegin.notifyAll();
}

KnobState Prefetcher::sourceState() const {
    const PrefetchSource now = m_parts.judge.paused() ? PrefetchSource::Off : m_source;
    return {int64_t(m_source), int64_t(now), m_parts.judge.reason()};
}

void Prefetcher::wake() {
    if (m_hinted > 0 && m_threads > 0) wakeAll();
}

uint64_t Prefetcher::wakeAll() {
    m_parts.conditions.prefetchMayBegin.notifyAll();
    return ++m_wakes;
}

}  // namespace colibri
