// SPDX-License-Identifier: Apache-2.0
// The inside of Engine, shared by its sources: engine.cpp (loading, requests, figures) and
// engine_apply.cpp (what each knob does).
#pragma once

#include <atomic>
#include <memory>
#include <string>
#include <vector>

#include "engine/runtime/engine.h"
#include "engine/runtime/engine_knobs.h"
#include "engine/runtime/forward.h"
#include "engine/runtime/scheduler.h"
#include "engine/runtime/start_work.h"
#include "engine/runtime/table_watch.h"

namespace colibri {

// Members are declared in order of dependence: the scheduler is destroyed first.
struct Engine::Impl {
    ContainerInfo info;
    std::unique_ptr<EngineKnobs> knobs;
    Telemetry telemetry;
    EventRing* ring = nullptr;
    std::unique_ptr<DenseWeights> dense;
    ModelWeights weights;
    std::unique_ptr<ExpertStore> store;
    std::unique_ptr<Tokenizer> tokenizer;
    std::unique_ptr<ChatTemplate> chatTemplate;
    std::string textReason;  // why one of them is missing
    const KernelSet* kernels = nullptr;
    int64_t contextLength = 0;
    std::unique_ptr<ThreadPool> pool;
    std::unique_ptr<Forward> forward;
    std::atomic<int64_t> scratchBytes{0};
    std::atomic<bool> coresChanged{false};  // compute threads may have to move to other cores
    int64_t prefetchNow = -1;               // the PrefetchSource of the last event
    std::unique_ptr<StartWork> startWork;
    std::shared_ptr<const RouterTable> table;  // the forward pass uses it; nullptr: none
    std::atomic<bool> tableReplaced{false};
    std::unique_ptr<Scheduler> scheduler;
    std::unique_ptr<TableWatch> tableWatch;  // with a table; wakes the scheduler

    Status loadText();
    Status openRouterTable(const EngineOptions& options);
    Status openStore();
    void startThreads();
    void note(const std::string& text);
    void applyKnobs();
    void placeThreads();
    // Scheduler thread, between two steps. `state.effective` comes in range; returned as in force.
    KnobState applyKnob(KnobId id, KnobState state);
    KnobState applyPrefetch(KnobId id, KnobState state);
    KnobState applyNuma(KnobId id, KnobState state);
    KnobState applyBatching(KnobId id, KnobState state);
    KnobState applyRouter(KnobState state);
    void writeKnobEvent(KnobId id, const KnobState& state);
    void writePrefetchChange();
    std::string problem(KnobId id, int64_t value) const;
    Result<LogitsResult> logits(const std::vector<int32_t>& tokens);
};

}  // namespace colibri
