// SPDX-License-Identifier: Apache-2.0
// The events of the engine: fixed-size binary records, in one single-producer ring per thread. The
// engine does not depend on their readers. Times are CLOCK_MONOTONIC nanoseconds.
#pragma once

#include <cstdint>

namespace colibri {

enum class EventType : uint8_t {
    RequestArrived,
    RequestAdmitted,
    RequestFirstToken,
    RequestDone,
    Token,
    LayerStep,
    ExpertRead,
    Eviction,
    BatchFormed,
    KnobChanged,
    Note,
    PrefetchOutcome,
    // An admitted request was preempted to free KV blocks or its batch row, and resumed.
    RequestPreempted,
    RequestResumed,
    Step,        // a step of the batch has ended
    StepMember,  // a request that has rows in a step; written before its Step
    Prompt,      // a part of a request's prompt; written in order, after RequestArrived
};

enum class ReadReason : uint8_t { Demand, Prefetch, WarmStart };
// Why waiting requests joined the batch.
enum class JoinReason : uint8_t { BatchFull, Timeout };
enum class StopReason : uint8_t { Eos, MaxTokens, StopString, Cancelled, ContextFull, Error };
const char* stopReasonName(StopReason reason);  // "eos", "length", "stop", "cancelled", ...

constexpr int kEventTokens = 22;   // tokens in one Prompt event
constexpr int kEventExperts = 16;  // experts in one LayerStep event; a larger k needs several

struct RequestEvent {  // all Request* types
    uint64_t request;
    uint32_t promptTokens;
    uint32_t cachedTokens;  // prompt tokens found in the KV cache so far (prefix reuse)
    uint32_t generated;     // so far
    StopReason stop;        // RequestDone
    JoinReason joined;      // RequestAdmitted
    uint32_t preemptions;   // so far
    uint32_t recomputed;    // tokens recomputed after preemptions, so far
    uint64_t preemptedNs;   // RequestDone: sum over its tokens
};
struct TokenEvent {  // one generated token, after sampling
    uint64_t request;
    uint32_t index;  // among the generated tokens, starting at 0
    int32_t token;
    uint64_t stepNs;         // forward and sampling of its step
    uint64_t gapNs;          // since the previous token of the request (ITL); 0 for the first
    uint64_t stallNs;        // part of the step in which compute waited for expert reads
    uint32_t lookups, hits;  // expert lookups of this step's row
    uint64_t preemptedNs;    // part of the gap after a preemption: waiting and recomputing
    uint64_t memoryStallNs;  // part of stallNs: waits for reads into untouched memory
    uint32_t step;           // number of its step
};
// Routing of one row in one MoE layer. A step touches each distinct expert of the layer once, so
// lookups = popcount(firstBits) and hits = popcount(firstBits & hitBits), summed over its rows:
// the same counts as the store's.
struct LayerStepEvent {
    uint64_t request;
    uint32_t position;  // of the row in its sequence
    uint16_t layer;
    uint8_t count;       // number of experts
    uint8_t firstRow;    // 1: first row of the batch, which has the times; in other rows they are 0
    uint16_t rows;       // rows of the batch that share the times
    uint16_t firstBits;  // bit i: first row of the step that uses expert i, which is a lookup
    uint16_t hitBits;    // bit i: expert i was resident at the step's first touch
    uint16_t prefetchBits;  // bit i: expert i was resident because of a prefetch
    uint8_t prefill;        // 1: a prompt row
    uint32_t routerNs, waitNs, computeNs;
    uint32_t step;  // number of the step; 0: not one of the scheduler's
    uint16_t experts[kEventExperts];
};
struct ExpertReadEvent {  // a finished read
    uint16_t layer, expert;
    ReadReason reason;
    uint8_t failed;
    uint8_t fresh;  // read into untouched memory: readNs includes its allocation
    uint8_t late;   // a prefetch that was requested while it was being read
    uint32_t bytes;
    uint32_t step;     // the step that needed it; 0: none did
    uint64_t queueNs;  // from the request to the start of the read
    uint64_t readNs;   // the read itself, including waits for the link limit
    uint64_t linkNs;   // the part of readNs after the disk had read it: the link limit
    uint64_t needNs;   // from the need until usable; 0 for a prefetch in time
};
struct EvictionEvent {
    uint16_t layer, expert;
    uint64_t residentNs;
    uint32_t uses;
};
struct BatchEvent {
    uint16_t rows, requests, prefillRows;
    uint32_t queued;  // waiting requests, including preempted ones
    // KV blocks: held by running requests, kept for reuse, and the maximum.
    uint32_t kvHeld, kvKept, kvBlocks;
};
struct KnobEvent {
    uint8_t knob;
    int64_t requested, effective;
    char reason[80];
};
struct NoteEvent {
    char text[104];
};
struct PrefetchEvent {  // counts since the previous event
    uint32_t issued, useful, late, wasted;
    uint32_t cancelled;  // predicted, but not read before its layer was requested
    uint8_t source;
};
// Where the time of a step went, in nanoseconds. The parts do not overlap; what is missing from
// their sum is the scheduler's own work. `stall` parts: why compute waited for experts.
struct StepEvent {
    uint32_t step;  // its number, from 1
    uint16_t rows, prefillRows, requests;
    float totalNs;      // from the start of the forward pass until all tokens were emitted
    float sinceLastNs;  // between the previous step and this one while requests were in the batch
    float attentionNs, routerNs, expertsNs, denseNs, headNs;
    float sampleNs;         // sampling, text and callbacks
    float stallSlotNs;      // no slot was free, or the queue of reads was full
    float stallDiskNs;      // the disk read it
    float stallLinkNs;      // the link limit
    float stallMemoryNs;    // read into untouched memory, which the system had to allocate
    float stallPrefetchNs;  // a prefetch of it was still being read
    float offCpuNs;         // the engine's thread was neither running nor waiting for experts
    uint32_t minorFaults, majorFaults;  // page faults of the engine's thread
};
struct StepMemberEvent {
    uint64_t request;
    uint32_t step;
    uint16_t rows;
    uint8_t prefill;  // 1: rows of its prompt
};

struct PromptEvent {
    uint64_t request;
    uint32_t first;  // position of the first token
    uint16_t count;
    int32_t tokens[kEventTokens];
};

struct Event {
    uint64_t timeNs;
    EventType type;
    uint8_t thread;     // number of the ring of the writing thread
    uint32_t sequence;  // per ring, to detect gaps
    union {
        RequestEvent request;
        TokenEvent token;
        LayerStepEvent layerStep;
        ExpertReadEvent expertRead;
        EvictionEvent eviction;
        BatchEvent batch;
        KnobEvent knob;
        NoteEvent note;
        PrefetchEvent prefetch;
        StepEvent step;
        StepMemberEvent stepMember;
        PromptEvent prompt;
    };
};
static_assert(sizeof(Event) <= 128);

}  // namespace colibri
