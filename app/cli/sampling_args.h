// SPDX-License-Identifier: GPL-3.0-or-later
// Options of the verbs that generate text.
#pragma once

#include <string>
#include <vector>

#include "app/cli/engine_args.h"

namespace colibri::cli {

struct SamplingArgs {
    Sampling sampling;
    int maxTokens = 256;
    std::vector<std::string> stops;
    bool ignoreEos = false;

    void addTo(CLI::App& verb);
    Request request(std::vector<int32_t> prompt) const;
};

// The "stats" object of a request; loads: of its expert loads.
Json statsJson(const RequestResult& result, const Histogram& loads, const Engine& engine);

// The figures of one request in one line.
std::string statsLine(const RequestResult& result);

}  // namespace colibri::cli
