// SPDX-License-Identifier: GPL-3.0-or-later
#include <algorithm>
#include <cmath>

#include "app/cli/engine_args.h"

namespace colibri::cli {

namespace {

struct LogitsArgs {
    EngineArgs engine;
    std::string tokens;
};

double logSumExp(const std::vector<float>& x) {
    const double top = *std::max_element(x.begin(), x.end());
    double sum = 0;
    for (const float v : x) sum += std::exp(double(v) - top);
    return top + std::log(sum);
}

Json floats(const std::vector<float>& x) {
    Json array = Json::array();
    for (const float v : x) array.push_back(jsonNumber(double(v)));
    return array;
}

int run(const LogitsArgs& args) {
    Result<std::vector<int32_t>> ids = parseIds(args.tokens);
    if (!ids.ok()) return fail(ids.status());
    EngineArgs engineArgs = args.engine;
    engineArgs.contextAtLeast = int64_t(ids->size());
    Result<LoadedEngine> loaded = loadEngine(engineArgs);
    if (!loaded.ok()) return fail(loaded.status());
    Result<Engine::LogitsResult> result = loaded->engine->logits(*ids);
    if (!result.ok()) return fail(result.status());
    Json argmax = Json::array(), sums = Json::array(), routing = Json::array();
    for (const std::vector<float>& row : result->logits) {
        argmax.push_back(std::max_element(row.begin(), row.end()) - row.begin());
        sums.push_back(jsonNumber(logSumExp(row)));
    }
    for (const Engine::LogitsResult::Routing& layer : result->routing) {
        Json weights = Json::array();
        for (const std::vector<float>& w : layer.weights) weights.push_back(floats(w));
        routing.push_back(
            {{"layer", layer.layer}, {"experts", layer.experts}, {"weights", std::move(weights)}});
    }
    return outJson({{"logits_last", floats(result->logits.back())},
                    {"argmax", std::move(argmax)},
                    {"logsumexp", std::move(sums)},
                    {"routing", std::move(routing)}});
}

}  // namespace

void addLogits(Verbs& verbs) {
    auto args = std::make_shared<LogitsArgs>();
    CLI::App* verb =
        verbs.add("logits", "Run one forward pass and print logits and routing as JSON",
                  [args] { return run(*args); });
    args->engine.addTo(*verb, false);
    verb->add_option("--tokens", args->tokens, "Token ids")->type_name("1,2,3")->required();
}

}  // namespace colibri::cli
