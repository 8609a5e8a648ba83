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
    // Taken from the logits of tokens that the reply has: once, and for each time.
    float presencePenalty = 0, frequencyPenalty = 0;
    std::vector<std::pair<int32_t, float>> logitBias;  // token, what is added to its logit
};

// What a chat is sampled with where nobody says: the model's generation defaults, and common values
// where it has none. Window and command line begin with the same.
Sampling chatSampling(const ModelConfig& model);
constexpr int kChatMaxTokens = 1024;  // of a reply, then

constexpr int kMaxLogprobs = 20;

struct Request {
    std::vector<int32_t> prompt;
    Sampling sampling;
    int maxTokens = 256;             // 0: only with onLogits, nothing is generated
    std::vector<std::string> stops;  // the text ends before the first of them
    bool ignoreEos = false;
    bool specialText = false;        // special tokens stand in the text: marks between channels
    // Wanted with each token: its own log-probability and those of so many likeliest ones
    // (0..kMaxLogprobs). What the model gives: before penalty, temperature and the cuts.
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
    std::string text;  // whole UTF-8 that became complete with this token
    uint64_t timeNs;   // monotonic, when sampled
    uint64_t gapNs;    // ITL; 0 for the first token
    uint64_t stallNs;      // part of its step in which compute waited for experts
    uint64_t preemptedNs;  // part of the gap since the request was preempted; 0: it was not
    uint32_t lookups, hits;
    // The longest wait of the token: MoE layer's model index, expert and time (0: none).
    uint16_t worstLayer, worstExpert;
    uint64_t worstWaitNs;
    // The token's own, then the likeliest by falling value; empty when not asked for.
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
    // How often it left the batch because KV blocks or its place were needed, the tokens computed
    // again for that, and the time it took, which is part of the gaps or of TTFT.
    uint32_t preemptions = 0, recomputedTokens = 0;
    double preemptedMs = 0;
    double queueMs = 0, ttftMs = 0, promptTokS = 0, decodeTokS = 0;
    std::vector<double> gapsMs;  // every inter-token gap
    std::vector<std::vector<Logprob>> logprobs;  // (tokens) as of GeneratedToken, when asked for
    StoreStats experts;          // difference over the request
};

// Called on the scheduler thread; must not block. onToken returning false cancels the request.
struct RequestCallbacks {
    std::function<bool(const GeneratedToken&)> onToken;
    std::function<void(RequestResult)> onDone;  // exactly once, also after an error
    // Optional. At admission, with the prompt tokens that the KV cache already holds, then after
    // each step with all that are done.
    std::function<void(uint32_t done, uint32_t total)> onPrefill;
    // Optional: the logits (vocab) of every prompt position, in order; valid during the call. Such
    // a request begins with an empty context.
    std::function<void(uint32_t position, std::span<const float> logits)> onLogits;
};

}  // namespace colibri
