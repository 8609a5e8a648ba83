// SPDX-License-Identifier: Apache-2.0
// A request to the engine, what it reports while it runs, and its result.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "engine/base/status.h"
#include "engine/store/store_stats.h"
#include "engine/telemetry/events.h"

namespace colibri {

struct ModelConfig;

struct Sampling {
    float temperature = 0;  // 0 = greedy
    int topK = 0;           // 0 = off
    float topP = 1, minP = 0;
    float repetitionPenalty = 1;
    uint64_t seed = 0;
    // Subtracted from the logits of tokens in the reply: once, and for each occurrence.
    float presencePenalty = 0, frequencyPenalty = 0;
    std::vector<std::pair<int32_t, float>> logitBias;  // token, amount added to its logit
};

// The default sampling of a chat: the model's generation defaults, and common values where it has
// none. The window and the command line share it.
Sampling chatSampling(const ModelConfig& model);
constexpr int kChatMaxTokens = 1024;  // the default limit of a reply

constexpr int kMaxLogprobs = 20;

struct Request {
    std::vector<int32_t> prompt;
    Sampling sampling;
    int maxTokens = 256;             // 0: generate nothing; only with onLogits
    std::vector<std::string> stops;  // generation stops before the first match
    bool ignoreEos = false;
    // The first tokens of the reply, computed as if the sampler had chosen them; it chooses those
    // after them. Lets two runs do the same work.
    std::vector<int32_t> forced;
    bool specialText = false;  // include special tokens in the text: marks between channels
    // If set, each token comes with its log-probability and those of this many most likely tokens
    // (0..kMaxLogprobs): the model's values, before penalties, temperature and the sampling cuts.
    std::optional<int> logprobs;
};

struct Logprob {
    int32_t id;
    float value;  // natural logarithm; -inf: the logit is not finite
};

struct GeneratedToken {
    uint64_t request;
    uint32_t index;
    int32_t id;
    std::string text;      // the UTF-8 text that this token completes
    uint64_t timeNs;       // monotonic, when sampled
    uint64_t gapNs;        // ITL; 0 for the first token
    uint64_t stallNs;      // time of its step in which compute waited for experts
    uint64_t preemptedNs;  // part of the gap spent preempted; 0: not preempted
    uint32_t lookups, hits;
    // The longest wait of the token: MoE layer's model index, expert and time (0: none).
    uint16_t worstLayer, worstExpert;
    uint64_t worstWaitNs;
    // The token's own, then the most likely in decreasing order; empty if not requested.
    std::vector<Logprob> logprobs;
};

struct RequestResult {
    uint64_t request = 0;
    Status status;  // not ok: the request ended with an error
    StopReason stop = StopReason::Error;
    std::vector<int32_t> tokens;
    std::string text;
    uint32_t promptTokens = 0;
    uint32_t cachedTokens = 0;  // of the prompt, found in the KV cache instead of computed
    // How often the request was preempted to free KV blocks or its batch row, the tokens recomputed
    // because of that, and the time it took, which is part of the gaps or of TTFT.
    uint32_t preemptions = 0, recomputedTokens = 0;
    double preemptedMs = 0;
    double queueMs = 0, ttftMs = 0, promptTokS = 0, decodeTokS = 0;
    std::vector<double> gapsMs;                  // every inter-token gap
    std::vector<std::vector<Logprob>> logprobs;  // (tokens), as in GeneratedToken, if requested
    StoreStats experts;                          // difference over the request
};

// Called on the scheduler thread: a callback must not block, nor call Engine::logits() or
// applyKnob(), which wait for that thread. onToken returning false cancels the request.
struct RequestCallbacks {
    std::function<bool(const GeneratedToken&)> onToken;
    std::function<void(RequestResult)> onDone;  // exactly once, also after an error
    // Optional. Called at admission with the number of prompt tokens already in the KV cache, then
    // after each step with the number computed so far.
    std::function<void(uint32_t done, uint32_t total)> onPrefill;
    // Optional: the logits (vocab) of every prompt position, in order; valid during the call. Such
    // a request starts from an empty context.
    std::function<void(uint32_t position, std::span<const float> logits)> onLogits;
};

}  // namespace colibri
