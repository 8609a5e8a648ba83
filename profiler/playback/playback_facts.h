// SPDX-License-Identifier: Apache-2.0
// What a recorded session tells besides its series: the model, requests, knobs and markers. Small
// tables, so they are read as a whole when the session is opened.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "profiler/metrics/snapshot.h"
#include "profiler/session/session_db.h"

namespace colibri {

struct RecordedRequest {
    uint64_t id = 0;
    // Seconds; NaN: it did not happen. A request that the recording left running ends with it.
    double arrived = 0, admitted = 0, firstToken = 0, done = 0;
    bool ended = false;  // `done` was recorded
    int64_t promptTokens = 0, cachedTokens = 0, generated = 0;
    std::string stop;  // "eos", "length", ...
    bool ranAt(double t) const { return admitted <= t && t < done; }
};

struct RecordedKnob {
    double t = 0;
    KnobId knob = KnobId::Count;
    KnobState state;
};

struct PlaybackFacts {
    double duration = 0;  // seconds
    int64_t layers = 0, experts = 0, topK = 0, expertBytes = 0, contextLength = 0, cores = 0;
    std::vector<int64_t> moeLayers;                           // model layers
    double diskBytesPerSecond = 0, memoryBytesPerSecond = 0;  // 0: unknown
    double detailFrom = 0, tokensFrom = 0;                    // rows before were thinned; 0: none
    std::vector<RecordedRequest> requests;                    // by the time of their admission
    std::vector<RecordedKnob> knobs;                          // by time
    std::vector<Marker> markers;                              // by time
    // Parts of a damaged file that could not be read.
    std::vector<Status> problems;

    size_t cells() const { return moeLayers.size() * size_t(experts); }
    // The index of an expert in residency and heat; -1: the model has no such expert.
    int64_t cellOf(int64_t layer, int64_t expert) const;
    int turnsAt(double t) const;           // requests admitted until t
    int runningAt(double t) const;         // requests that ran at t
    double lastRanBefore(double t) const;  // t while one ran, else the end of the last; NaN: none
    std::array<KnobState, kKnobCount> knobsAt(double t) const;
};

// Errors of single tables are in `problems`.
PlaybackFacts readPlaybackFacts(const SessionDb& db);

}  // namespace colibri
