// SPDX-License-Identifier: Apache-2.0
// The engine: a loaded model that answers requests. One scheduler thread forms batches and runs
// the forward pass; everything here may be called from any thread and never waits for a token,
// except load() and the destructor.
#pragma once

#include <cmath>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "engine/base/progress.h"
#include "engine/base/status.h"
#include "engine/knobs/knobs.h"
#include "engine/model/container.h"
#include "engine/runtime/batch_stats.h"
#include "engine/runtime/knob_limits.h"
#include "engine/runtime/request.h"
#include "engine/store/calibration.h"
#include "engine/store/expert_store.h"
#include "engine/telemetry/telemetry.h"
#include "engine/text/chat_template.h"
#include "engine/text/tokenizer.h"
#include "kernels/kernels.h"

namespace colibri {

struct EngineOptions {
    std::filesystem::path model;        // container folder
    KnobValues knobs;                   // requested values; unset = default
    std::optional<Isa> isa;             // forced instruction set; default: the best
    std::filesystem::path routerTable;  // empty: the model's own, if it has one
    bool reloadRouterTable = false;     // when its file is replaced; else that is only reported
    // In the user's cache folder: the experts used most, read ahead of need at the next start, and
    // the rates of disk and memory, measured once per machine.
    bool warmStart = false, calibrate = false;
};

// How a chat becomes a prompt.
struct ChatOptions {
    // Further variables of the template: an object, e.g. {"enable_thinking": false}, or null.
    nlohmann::ordered_json templateArgs;
    // Control tokens written in messages are control tokens, as in the reference implementation;
    // else they are plain text, so that no message can end its turn or write another.
    bool specialInMessages = false;
    // In place of the model's own template, which a model need not have. nullptr: the model's own.
    std::shared_ptr<const ChatTemplate> chatTemplate;
};

struct EngineMemory {  // actual bytes now, by the parts of MemoryEstimate
    MemoryEstimate parts;
    int64_t processRss = 0;
};

struct RouterStats {
    bool table = false;                 // a router table is loaded
    uint64_t compared = 0, agreed = 0;  // the gate's choices so far; those the table names too
    uint64_t reloads = 0;
    std::string notice;  // about the table's file; "": nothing to say

    double agreement() const {  // NaN: nothing compared
        return compared ? double(agreed) / double(compared) : std::nan("");
    }
};

class Engine {
public:
    // Reads the model (dense weights now, experts when they are needed) and starts the threads.
    static Result<std::unique_ptr<Engine>> load(const EngineOptions& options,
                                                const ProgressFn& progress,
                                                const CancelFlag* cancel);
    ~Engine();  // cancels what runs, joins every thread

    const ContainerInfo& info() const;
    const ModelConfig& config() const;
    const Tokenizer* tokenizer() const;        // nullptr: none, or one that is not supported
    const ChatTemplate* chatTemplate() const;  // nullptr: none, or one that is not supported
    const std::string& textReason() const;     // what is not supported; "" when the model has none
    Isa isa() const;
    int64_t contextLength() const;
    // Bytes of weights that one decoded token streams from memory (its share of the roofline).
    int64_t bytesPerToken() const;

    // Renders a chat with the template and encodes it. messages: [{"role", "content"}].
    // Errors: Unsupported (no template), InvalidArgument (a template argument that is no object,
    // or sets what the chat sets), BadInput (the template refuses the messages).
    Result<std::vector<int32_t>> encodeChat(const nlohmann::ordered_json& messages,
                                            const ChatOptions& options = {}) const;

    // Checks the request (ids in range, context limit) before any work. Errors: InvalidArgument,
    // Busy. The id is never 0.
    Result<uint64_t> submit(Request request, RequestCallbacks callbacks);
    void cancel(uint64_t request);  // takes effect within one token
    int activeRequests() const;     // queued and running
    BatchStats batchStats() const;
    KvStats kvStats() const;

    // Knobs. Live ones are applied between two steps (at once when idle); the effective value
    // comes back by knobState and as a KnobChanged event. Others answer with the reason.
    KnobLimits knobLimits(KnobId id) const;
    // Why a value in range cannot work with this model on this machine, "" when it can: such a
    // choice is offered greyed, and set all the same it is not effective or changes nothing.
    std::string knobProblem(KnobId id, int64_t value) const;
    void setKnob(KnobId id, int64_t value);
    KnobState knobState(KnobId id) const;
    // Sets a knob and waits, for at most one step, until it has been applied.
    KnobState applyKnob(KnobId id, int64_t value);

    // Binds a prefetch thread (from 0) to a processor core, -1: any. Compute threads are kept off
    // such cores while enough others are left for them. Effective: as the kernel answers.
    KnobState setPrefetchThreadCore(int thread, int core);
    KnobState prefetchThreadCore(int thread) const;

    StoreStats storeStats() const;
    std::string storeWarning() const;     // ExpertStore::warning(), e.g. a cache that is too small
    Calibration calibration() const;      // how fast this machine could read
    std::string readPath() const;  // how experts are read and why (ExpertStore::readPath)
    RouterStats routerStats() const;
    void residency(std::vector<Residency>& out) const;
    EngineMemory memory() const;
    Telemetry& telemetry();

    // One forward over `tokens` from an empty context, for the `logits` command and golden tests:
    // logits of every position, and the routing of every MoE layer. Runs alone, on the caller.
    struct LogitsResult {
        std::vector<std::vector<float>> logits;  // (tokens, vocab)
        struct Routing {
            int64_t layer;
            std::vector<std::vector<int>> experts;    // (tokens, k), by falling weight
            std::vector<std::vector<float>> weights;  // (tokens, k)
        };
        std::vector<Routing> routing;  // one per MoE layer
    };
    Result<LogitsResult> logits(const std::vector<int32_t>& tokens);

    struct Impl;  // engine_impl.h, for the engine's own sources

private:
    Engine();
    std::unique_ptr<Impl> m_impl;
};

}  // namespace colibri
