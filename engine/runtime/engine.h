// SPDX-License-Identifier: Apache-2.0
// The engine: a loaded model that answers requests. One scheduler thread forms batches and runs
// the forward pass; every function may be called from any thread, and none waits for a token
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
    bool reloadRouterTable = false;     // when its file is replaced; false: only report it
    // Both use files in the user's cache folder. warmStart: preload the most used experts of
    // earlier runs. calibrate: measure the disk and memory rates, once per machine.
    bool warmStart = false, calibrate = false;
};

// How a chat becomes a prompt.
struct ChatOptions {
    // Further variables of the template: an object, e.g. {"enable_thinking": false}, or null.
    nlohmann::ordered_json templateArgs;
    // true: control tokens written in messages are control tokens, as in the reference
    // implementation. false: they are plain text, so no message can end its turn or forge another.
    bool specialInMessages = false;
    // Used instead of the model's own template. nullptr: the model's own, if it has one.
    std::shared_ptr<const ChatTemplate> chatTemplate;
};

struct EngineMemory {  // bytes in use now, in the parts of MemoryEstimate
    MemoryEstimate parts;
    int64_t processRss = 0;
};

struct RouterStats {
    bool table = false;                 // a router table is loaded
    uint64_t compared = 0, agreed = 0;  // choices of the gate; those on which the table agreed
    uint64_t reloads = 0;
    std::string notice;  // about the table's file; "" if none

    double agreement() const {  // NaN: nothing was compared
        return compared ? double(agreed) / double(compared) : std::nan("");
    }
};

class Engine {
public:
    // Reads the model (dense weights now, experts when they are needed) and starts the threads.
    static Result<std::unique_ptr<Engine>> load(const EngineOptions& options,
                                                const ProgressFn& progress,
                                                const CancelFlag* cancel);
    ~Engine();  // cancels all requests, joins every thread

    const ContainerInfo& info() const;
    const Tokenizer* tokenizer() const;        // nullptr: none, or an unsupported one
    const ChatTemplate* chatTemplate() const;  // nullptr: none, or an unsupported one
    const std::string& textReason() const;     // why it is unsupported; "" if the model has none
    Isa isa() const;
    int64_t contextLength() const;
    // Bytes of weights that one decoded token streams from memory (its share of the roofline).
    int64_t bytesPerToken() const;

    // Renders a chat with the template and encodes it. messages: [{"role", "content"}].
    // Errors: Unsupported (no template), InvalidArgument (a template argument is not an object,
    // or sets a variable of the chat), BadInput (the template rejects the messages).
    Result<std::vector<int32_t>> encodeChat(const nlohmann::ordered_json& messages,
                                            const ChatOptions& options = {}) const;

    // Checks the request (ids in range, context limit) before any work. Errors: InvalidArgument,
    // Busy. The id is never 0.
    Result<uint64_t> submit(Request request, RequestCallbacks callbacks);
    void cancel(uint64_t request);  // takes effect within one token
    int activeRequests() const;     // queued and running
    BatchStats batchStats() const;

    // Live knobs are applied between two steps (immediately when idle); knobState and a KnobChanged
    // event report the effective value. The state of other knobs gives the reason.
    KnobLimits knobLimits(KnobId id) const;
    // Why a value in range cannot work with this model on this machine; "" if it can. The window
    // greys such a choice out; setting it anyway is not effective or changes nothing.
    std::string knobProblem(KnobId id, int64_t value) const;
    void setKnob(KnobId id, int64_t value);
    KnobState knobState(KnobId id) const;
    // Sets a knob and waits, for at most one step, until it has been applied.
    KnobState applyKnob(KnobId id, int64_t value);

    // Binds a prefetch thread (from 0) to a processor core, -1: any. Compute threads avoid bound
    // cores while enough others are left. The effective value is what the kernel reports.
    KnobState setPrefetchThreadCore(int thread, int core);

    // The figures of the expert store: hits and reads, warnings, where the experts are.
    const ExpertStore& store() const;
    Calibration calibration() const;  // the measured rates of this machine
    RouterStats routerStats() const;
    EngineMemory memory() const;
    Telemetry& telemetry();

    // One forward pass over `tokens` from an empty context, for the `logits` command and golden
    // tests: logits of every position, and the routing of every MoE layer. Runs alone, on the
    // caller's thread.
    struct LogitsResult {
        std::vector<std::vector<float>> logits;  // (tokens, vocab)
        struct Routing {
            int64_t layer;
            std::vector<std::vector<int>> experts;    // (tokens, k), in order of decreasing weight
            std::vector<std::vector<float>> weights;  // (tokens, k)
        };
        std::vector<Routing> routing;  // one per MoE layer
    };
    Result<LogitsResult> logits(const std::vector<int32_t>& tokens);

    struct Impl;  // engine_impl.h, for the engine's own sources

private:
    friend class EnginePause;
    Engine();
    std::unique_ptr<Impl> m_impl;
};

// Stops the engine before its next step, so that other work can have the machine, until the
// destructor. No time passes meanwhile for the requests that it has: their gaps exclude the pause.
// Requests that arrive, cancellations and knobs wait for its end. Any thread, also in callbacks;
// the constructor waits for the running step. Several pauses may overlap.
class EnginePause {
public:
    explicit EnginePause(Engine& engine);  // must outlive this
    ~EnginePause();
    EnginePause(const EnginePause&) = delete;
    EnginePause& operator=(const EnginePause&) = delete;

private:
    Engine& m_engine;
};

}  // namespace colibri
