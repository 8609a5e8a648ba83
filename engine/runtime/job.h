// SPDX-License-Identifier: Apache-2.0
// A request in the scheduler. After arrival only the scheduler thread accesses it.
#pragma once

#include <optional>
#include <span>
#include <vector>

#include "engine/runtime/scheduler.h"

namespace colibri {

struct Scheduler::Job {
    Job(Request r, RequestCallbacks c, const KernelSet& kernels)
        : request(std::move(r)),
          callbacks(std::move(c)),
          sampler(request.sampling, request.prompt, kernels),
          text(request.stops),
          input(request.prompt) {}

    bool scored() const { return bool(callbacks.onLogits); }
    int64_t promptTokens() const { return int64_t(request.prompt.size()); }
    // Tokens whose keys and values are not stored yet; the last one gives the next token.
    int64_t left() const { return int64_t(input.size()) - sequence.length(); }
    // Computes its prompt, or after a preemption all its tokens again.
    bool reads() const { return sequence.length() < readTo; }
    // The tokens that may come from the cache: the last token must be computed for its logits, and
    // a request for all logits must be computed completely.
    std::span<const int32_t> reusable() const {
        return std::span(input).first(scored() ? 0 : input.size() - 1);
    }

    uint64_t id = 0;
    Request request;
    RequestCallbacks callbacks;
    Sampler sampler;
    TextStream text;
    RequestResult result;
    std::vector<int32_t> input;  // prompt and generated tokens
    KvSequence sequence;
    int64_t readTo = 0;                 // length of the input when it was admitted (again)
    int64_t reached = 0;                // maximum number of input tokens ever stored
    uint64_t admission = 0;             // number of its latest admission; 0: waiting
    size_t turnStart = 0;               // generated tokens at that time
    size_t firstRow = 0, rowCount = 0;  // in the step's batch
    JoinReason joined = JoinReason::Timeout;
    bool cancelled = false;
    std::optional<StopReason> stop;  // set when the request has ended; finish follows
    Status failure;
    bool outOfMemory = false;  // its step ran out of memory
    bool ended = false;        // the caller knows that it has ended
    uint64_t arrivedNs = 0, admittedNs = 0, firstTokenNs = 0, lastTokenNs = 0;
    uint64_t preemptedAtNs = 0;  // since its latest token; 0: not preempted
    uint64_t preemptedNs = 0;    // total
    StoreStats storeBefore;
};

}  // namespace colibri
