// SPDX-License-Identifier: Apache-2.0
// What each knob does: one row per knob, applied by the scheduler between two steps.
#include <array>
#include <cstring>

#include "engine/base/machine.h"
#include "engine/runtime/engine_impl.h"

namespace colibri {

namespace {

using Impl = Engine::Impl;
using Apply = KnobState (*)(Impl& engine, KnobState state);

// The effective value, and why it differs from the requested one.
KnobState inForce(KnobState state, const KnobState& answer) {
    if (answer.effective == state.effective && answer.reason.empty()) return state;
    return {state.requested, answer.effective, answer.reason};
}

struct Row {
    KnobId id;
    Apply apply;           // nullptr: takes effect when a model is loaded
    bool changes = false;  // its effective value may change afterwards: see ExpertStore::state()
};

constexpr std::array<Row, kKnobCount> kRows{{
    {KnobId::ExpertCacheSize,
     [](Impl& m, KnobState s) { return inForce(s, m.store->setCacheSize(s.effective)); }, true},
    {KnobId::CachePolicy,
     [](Impl& m, KnobState s) {
         m.store->setPolicy(CachePolicyKind(s.effective));
         return s;
     }},
    {KnobId::PrefetchSource,
     [](Impl& m, KnobState s) { return m.applyPrefetch(KnobId::PrefetchSource, s); }, true},
    {KnobId::PrefetchDepth,
     [](Impl& m, KnobState s) { return m.applyPrefetch(KnobId::PrefetchDepth, s); }},
    {KnobId::PrefetchThreads,
     [](Impl& m, KnobState s) {
         s = inForce(s, m.store->setPrefetchThreads(s.effective));
         m.coresChanged = true;
         return m.applyPrefetch(KnobId::PrefetchThreads, s);
     }},
    {KnobId::BatchTimeout,
     [](Impl& m, KnobState s) { return m.applyBatching(KnobId::BatchTimeout, s); }},
    {KnobId::MaxBatch, [](Impl& m, KnobState s) { return m.applyBatching(KnobId::MaxBatch, s); }},
    {KnobId::ComputeThreads,
     [](Impl& m, KnobState s) {
         m.pool->resize(int(s.effective));
         return s;
     }},
    {KnobId::IoMode,
     [](Impl& m, KnobState s) { return inForce(s, m.store->setIoMode(IoMode(s.effective))); }},
    {KnobId::IoDepth,
     [](Impl& m, KnobState s) { return inForce(s, m.store->setIoDepth(s.effective)); }},
    {KnobId::LinkLimit,
     [](Impl& m, KnobState s) {
         m.store->setLinkLimit(s.effective);
         return s;
     }},
    {KnobId::NumaMode, [](Impl& m, KnobState s) { return m.applyNuma(KnobId::NumaMode, s); }, true},
    {KnobId::NumaNode, [](Impl& m, KnobState s) { return m.applyNuma(KnobId::NumaNode, s); }, true},
    {KnobId::PrefillChunk,
     [](Impl& m, KnobState s) { return m.applyBatching(KnobId::PrefillChunk, s); }},
    {KnobId::RouterMode, [](Impl& m, KnobState s) { return m.applyRouter(s); }},
    {KnobId::ContextLength, nullptr},
    {KnobId::KvDtype, nullptr},
    {KnobId::Device, nullptr},
}};

constexpr bool inOrder() {
    for (size_t i = 0; i < kRows.size(); ++i)
        if (kRows[i].id != KnobId(i)) return false;
    return true;
}
static_assert(inOrder(), "a knob of the knob table has no row here, or the order differs");

}  // namespace

std::string Engine::Impl::problem(KnobId id, int64_t value) const {
    const auto ask = [this](KnobId knob) {
        return [this, knob](auto choice) { return store->problem(knob, int64_t(choice)); };
    };
    return colibri::knobProblem(id, value,
                                {info.config.moeLayerCount() > 0, tableWatch != nullptr,
                                 ask(KnobId::NumaMode), ask(KnobId::IoMode)});
}

KnobState Engine::knobState(KnobId id) const {
    KnobState state = m_impl->knobs->state(id);
    if (!kRows[size_t(id)].changes || m_impl->knobs->waiting(id)) return state;
    const KnobState now = m_impl->store->state(id);
    // A prefetch source that works is in force as the engine applied it.
    if (id == KnobId::PrefetchSource && now.effective != int64_t(PrefetchSource::Off)) return state;
    state.effective = now.effective;
    // The reason recorded when the knob was applied may be outdated.
    if (!now.reason.empty() || now.effective == state.requested) state.reason = now.reason;
    return state;
}

KnobState Engine::Impl::applyKnob(KnobId id, KnobState state) {
    const Apply apply = kRows[size_t(id)].apply;
    return apply ? apply(*this, std::move(state)) : state;
}

// For the store, and for what the forward pass may spend on predicting.
KnobState Engine::Impl::applyPrefetch(KnobId id, KnobState state) {
    const auto value = [&](KnobId k) { return k == id ? state.effective : knobs->effective(k); };
    auto source = PrefetchSource(value(KnobId::PrefetchSource));
    const int64_t depth = value(KnobId::PrefetchDepth);
    if (source == PrefetchSource::RouterTable && !table) {
        source = PrefetchSource::Off;
        if (id == KnobId::PrefetchSource) {
            state.effective = int64_t(source);
            state.reason = problem(id, int64_t(PrefetchSource::RouterTable));
        }
    }
    store->setPrefetch(source, depth);
    prefetchNow = store->state(KnobId::PrefetchSource).effective;
    const bool on = source != PrefetchSource::Off && value(KnobId::PrefetchThreads) > 0;
    forward->setPrefetch({source, on ? depth : 0});
    return state;
}

KnobState Engine::Impl::applyNuma(KnobId id, KnobState state) {
    const auto value = [&](KnobId k) { return k == id ? state.effective : knobs->wanted(k); };
    store->setNuma(NumaMode(value(KnobId::NumaMode)), value(KnobId::NumaNode));
    coresChanged = true;
    return inForce(state, store->state(id));
}

KnobState Engine::Impl::applyBatching(KnobId id, KnobState state) {
    if (!scheduler) return state;
    BatchLimits limits = scheduler->batchLimits();
    if (id == KnobId::PrefillChunk) limits.prefillRows = state.effective;
    if (id == KnobId::BatchTimeout) limits.timeoutNs = uint64_t(state.effective) * 1'000'000;
    if (id == KnobId::MaxBatch) limits.requests = size_t(state.effective);
    scheduler->setBatchLimits(limits);
    return state;
}

KnobState Engine::Impl::applyRouter(KnobState state) {
    if (RouterMode(state.effective) == RouterMode::Table && !table) {
        state.effective = int64_t(RouterMode::Exact);
        state.reason = problem(KnobId::RouterMode, int64_t(RouterMode::Table));
    }
    forward->setRouter({table, RouterMode(state.effective) == RouterMode::Table});
    // Keys and values of earlier turns were computed with the other router.
    if (scheduler) scheduler->forgetPrefixes();
    return state;
}

// Off the cores of prefetch threads, and beside the experts when those are all on one node.
void Engine::Impl::placeThreads() {
    const bool bound = NumaMode(store->state(KnobId::NumaMode).effective) == NumaMode::Bind;
    pool->place(bound ? nodeProcessors(int(knobs->wanted(KnobId::NumaNode))) : std::vector<int>(),
                store->boundCores());
}

void Engine::Impl::applyKnobs() {
    if (tableReplaced.exchange(false)) {
        table = tableWatch->table();
        (void)applyRouter(knobs->state(KnobId::RouterMode));
    }
    knobs->applyPending([this](KnobId id, KnobState& state) {
        if (knobRow(id).live) state = applyKnob(id, state);
        writeKnobEvent(id, state);
    });
    if (coresChanged.exchange(false)) placeThreads();
    scratchBytes.store(forward->scratchBytes(), std::memory_order_relaxed);
}

void Engine::Impl::writeKnobEvent(KnobId id, const KnobState& state) {
    Event event{};
    event.type = EventType::KnobChanged;
    event.knob = {};
    event.knob.knob = uint8_t(id);
    event.knob.requested = state.requested;
    event.knob.effective = state.effective;
    std::strncpy(event.knob.reason, state.reason.c_str(), sizeof(event.knob.reason) - 1);
    ring->write(event);
}

// Prefetching pauses and resumes by itself: the effective value changes without a user request.
void Engine::Impl::writePrefetchChange() {
    const KnobState state = store->state(KnobId::PrefetchSource);
    if (state.effective == std::exchange(prefetchNow, state.effective)) return;
    writeKnobEvent(KnobId::PrefetchSource, state);
}

}  // namespace colibri
