// SPDX-License-Identifier: Apache-2.0
// A request in the scheduler's hands. Only the scheduler thread touches it after its arrival.
#pragma once

#include <algorithm>
#include <optional>

#include "engine/run/scheduler.h"

namespace colibri {

struct Scheduler::Job {
    Job(Request r, RequestCallbacks c, const KernelSet& kernels)
        : request(std::move(r)),
          callbacks(std::move(c)),
          sampler(request.sampling, request.prompt, kernels),
          text(request.stops) {}

    // Tokens of the prompt that are not computed yet.
    size_t promptLeft() const {
        return request.prompt.size() - std::min(prefilled, request.prompt.size());
    }

    bool scored() const { return bool(callbacks.onLogits); }

    uint64_t id = 0;
    Request request;
    RequestCallbacks callbacks;
    Sampler sampler;
    TextStream text;
    RequestResult result;
    KvSequence sequence;
    int64_t reservedBlocks = 0;
    size_t prefilled = 0;               // prompt tokens whose keys and values are stored
    size_t firstRow = 0, rowCount = 0;  // in the step's batch
    bool cancelled = false;
    std::optional<StopReason> stop;  // decided; finish follows
    Status failure;
    uint64_t arrivedNs = 0, admittedNs = 0, firstTokenNs = 0, lastTokenNs = 0;
    StoreStats storeBefore;
};

}  // namespace colibri
