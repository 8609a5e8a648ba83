// SPDX-License-Identifier: Apache-2.0
// Reads the routing of a recorded session as a stream: one layer request after the other, in the
// order in which the engine made them.
#pragma once

#include <atomic>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "engine/base/progress.h"
#include "engine/base/status.h"

namespace colibri {

// One MoE layer of one step of the batch.
struct RoutedLayer {
    struct Row {
        uint64_t request = 0;
        uint32_t position = 0;
        size_t begin = 0, end = 0;  // its experts in `experts`, most important first
    };
    double t = 0;                   // seconds since the session began
    int64_t moeLayer = 0;           // counted among the MoE layers
    bool newStep = false;           // the first layer of a step
    bool prefill = false;           // the step's first row belongs to a prompt
    uint64_t computeNs = 0;         // computing, from the request of the experts on
    uint64_t waitNs = 0;            // compute waited for experts
    int64_t hits = 0;               // lookups that were resident
    int64_t prefetched = 0;         // hits because of a prefetch
    std::vector<uint16_t> lookups;  // distinct experts, in order of first use
    std::vector<Row> rows;
    std::vector<uint16_t> experts;  // of all rows
};

// A generated token, by time.
struct TokenTimes {
    double t = 0;              // seconds since the session began
    uint64_t gapNs = 0;        // since the previous token of its request; 0: the first
    uint64_t stallNs = 0;      // part of it in which compute waited for experts
    uint64_t preemptedNs = 0;  // part of it in which the request was preempted
};

// What the session tells besides its routing.
struct RoutingFacts {
    std::string path;
    std::map<std::string, std::string> meta;
    std::vector<int64_t> moeLayers;  // model layers
    int64_t experts = 0, topK = 0;   // experts per layer, chosen per token
    int64_t lookups = 0, hits = 0, prefetched = 0;
    // Knobs at the start, by name, and how often the cache's knobs changed later.
    std::map<std::string, std::string> knobs;
    int64_t cacheChanges = 0;
    std::vector<TokenTimes> tokens;  // by time
    // Experts that were preloaded (warm start).
    struct Preloaded {
        double t = 0;
        int64_t moeLayer = 0, expert = 0;
    };
    std::vector<Preloaded> preloaded;  // by time
    // Successful demand reads: their number and mean duration.
    int64_t demandReads = 0;
    double meanReadNs = 0, meanNeedNs = 0;
};

// Errors: those of readSessionSummary(); BadInput if the session has no routing; Unsupported if its
// model is dense.
Result<RoutingFacts> readRoutingFacts(const std::filesystem::path& path);

// Calls `take` for every layer of every step. `take` must not keep a reference to its argument.
// Errors: those of readSessionSummary(); BadInput (with the row, if the routing is damaged);
// Cancelled.
Status readRouting(const RoutingFacts& facts, const std::function<void(const RoutedLayer&)>& take,
                   const ProgressFn& progress = {}, const CancelFlag* cancel = nullptr);

}  // namespace colibri
