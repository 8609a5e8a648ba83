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

    // `ofChat`: the help says that the model defines the defaults.
    void addTo(CLI::App& verb, bool ofChat = false);
    // `defaults`: values of options that are not set.
    Request request(std::vector<int32_t> prompt, const Sampling& defaults) const;
};

// Options of the verbs that make a prompt from messages.
struct ChatOptionArgs {
    std::vector<std::string> templateArgs;  // "name=JSON"
    std::string reasoningEffort;
    bool specialInMessages = false;

    // `only`: an option that these options require; nullptr: none.
    void addTo(CLI::App& verb, const char* only = nullptr);
    Result<ChatOptions> options() const;  // Errors: InvalidArgument
};

// The "stats" object of a request. `loads`: its expert load times.
Json statsJson(const RequestResult& result, const Histogram& loads, const Engine& engine);

// The metrics of one request in one line.
std::string statsLine(const RequestResult& result);

}  // namespace colibri::cli
