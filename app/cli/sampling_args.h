// SPDX-License-Identifier: GPL-3.0-or-later
// Options of the verbs that generate text.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "app/cli/engine_args.h"

namespace colibri::cli {

struct SamplingArgs {
    std::optional<float> temperature, topP, minP, repetitionPenalty;
    std::optional<int> topK;
    std::optional<uint64_t> seed;
    int maxTokens = 256;
    std::vector<std::string> stops;
    bool ignoreEos = false;

    // Of a chat the help says that defaults are the model's.
    void addTo(CLI::App& verb, bool ofChat = false);
    // `defaults`: of what is not given.
    Request request(std::vector<int32_t> prompt, const Sampling& defaults) const;
};

// Options of the verbs that make a prompt from messages.
struct ChatOptionArgs {
    std::vector<std::string> templateArgs;  // "name=JSON"
    std::string reasoningEffort;
    bool specialInMessages = false;

    // With `only`, each needs that option too.
    void addTo(CLI::App& verb, const char* only = nullptr);
    Result<ChatOptions> options() const;  // Errors: InvalidArgument
};

// The "stats" object of a request; loads: of its expert loads.
Json statsJson(const RequestResult& result, const Histogram& loads, const Engine& engine);

// The figures of one request in one line.
std::string statsLine(const RequestResult& result);

}  // namespace colibri::cli
