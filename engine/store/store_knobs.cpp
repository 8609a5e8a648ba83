// SPDX-License-Identifier: Apache-2.0
// The store's knobs. The knob table defines the ranges; this file checks what the machine allows.
#include <algorithm>

#include "engine/base/thread.h"
#include "engine/store/expert_store.h"

namespace colibri {

namespace {

constexpr int64_t kTrimBatch = 8;  // slots released per hold of the lock

}  // namespace

KnobState ExpertStore::setCacheSize(int64_t expertsPerLayer) {
    const int64_t free = m_parts.memory->freeBytes();  // asks the system: not under the lock
    MutexLock lock(m_mutex);
    m_slots.setSize(expertsPerLayer, free);
    m_conditions.prepareSlots.notifyAll();
    // In small steps: unmapping gigabytes at once would delay a token.
    do {
        m_slots.trim(kTrimBatch);
    } while (freeMemory());
    m_reads.giveSlots();
    m_reads.startReads();
    m_prefetcher.wake();
    const KnobState state = m_slots.sizeState();
    freeMemory();
    return state;
}

void ExpertStore::setPolicy(CachePolicyKind policy) {
    MutexLock lock(m_mutex);
    m_slots.order().setPolicy(policy);
}

void ExpertStore::setPrefetch(PrefetchSource source, int64_t depth) {
    MutexLock lock(m_mutex);
    reportPrefetches(m_parts.clock->now(), true);
    m_prefetcher.set(source, depth);
}

KnobState ExpertStore::setPrefetchThreads(int64_t threads) {
    MutexLock start(m_startMutex);
    {
        MutexLock lock(m_mutex);
        m_prefetcher.setThreads(threads);
    }
    const Status status = startWorkers(threads);
    MutexLock lock(m_mutex);
    return {threads, m_prefetcher.threads(), status.ok() ? std::string() : status.message()};
}

KnobState ExpertStore::setIoMode(IoMode mode) {
    KnobState state{int64_t(mode), int64_t(mode), problem(KnobId::IoMode, int64_t(mode))};
    if (!state.reason.empty()) state.effective = int64_t(IoMode::Buffered);
    MutexLock lock(m_mutex);
    m_reads.setMode(IoMode(state.effective));
    return state;
}

KnobState ExpertStore::setIoDepth(int64_t reads) {
    MutexLock start(m_startMutex);
    KnobState state{reads, reads, {}};
    if (m_residency.empty()) return state;
    const Status status = openLanes(reads);
    MutexLock lock(m_mutex);
    if (status.ok()) {
        m_reads.setDepth(reads);
    } else {
        state.effective = m_reads.depth();
        state.reason = status.message();
    }
    m_reads.startReads();
    return state;
}

void ExpertStore::setLinkLimit(int64_t megabytesPerSecond) {
    MutexLock lock(m_mutex);
    m_reads.setLinkRate(megabytesPerSecond * 1'000'000, m_parts.clock->now());
    m_prefetcher.wake();
}

void ExpertStore::setNuma(NumaMode mode, int64_t node) {
    MutexLock start(m_startMutex);
    {
        MutexLock lock(m_mutex);
        if (!m_slots.mover().setPlace(mode, node)) return;
        m_slots.dropPrepared(0);  // new ones are prepared on the new node
        m_conditions.prepareSlots.notifyAll();
        m_conditions.moveSlots.notifyAll();
        freeMemory();
    }
    if (m_moverThread.joinable() || m_residency.empty()) return;
    const Status status = startThread(m_moverThread, "expert-numa", [this] { moverLoop(); });
    if (status.ok()) return;
    MutexLock lock(m_mutex);
    m_slots.mover().fail(status.message());
}

KnobState ExpertStore::state(KnobId knob) const {
    SlotMover::Question question;
    {
        MutexLock lock(m_mutex);
        if (knob == KnobId::ExpertCacheSize) return m_slots.sizeState();
        if (knob == KnobId::PrefetchSource) return m_prefetcher.sourceState();
        const SlotMover& mover = m_slots.mover();
        question = knob == KnobId::NumaMode ? mover.modeQuestion() : mover.nodeQuestion();
    }
    return knob == KnobId::NumaMode ? SlotMover::answerMode(*m_parts.numa, question)
                                    : SlotMover::answerNode(*m_parts.numa, question);
}

std::string ExpertStore::problem(KnobId knob, int64_t value) const {
    if (knob == KnobId::IoMode && IoMode(value) == IoMode::Direct && !m_parts.directWorks)
        return "the file system does not support direct reads";
    if (knob == KnobId::NumaMode && NumaMode(value) != NumaMode::Off) {
        const int nodes = m_parts.numa->nodes();
        return nodes > 1 ? m_parts.numa->refusal() : numaNodesText(nodes);
    }
    return {};
}

}  // namespace colibri
