// SPDX-License-Identifier: Apache-2.0
// Common code for the steps of tokenizer.json (normalizers, pre-tokenizers, decoders and
// post-processors): {"type": "...", ...} is looked up in a table of kinds, and a "Sequence" runs
// its parts one after another.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "engine/base/json_node.h"
#include "engine/base/status.h"

namespace colibri::text {

// The maximum nesting depth of components of tokenizer.json.
inline constexpr int kDeepestNesting = 16;

template <typename T>
using StepMaker = Result<T> (*)(const JsonNode& node, int depth);

template <typename T>
struct StepKind {
    std::string_view type;
    StepMaker<T> make;
};

// An empty T for a null node. Errors: BadInput; Unsupported with the type's name.
template <typename T>
Result<T> makeStep(const JsonNode& node, int depth, std::span<const StepKind<T>> kinds) {
    if (node.isNull()) return T();
    if (depth > kDeepestNesting) return node.bad("nested too deeply");
    const Result<std::string> type = node.text("type");
    if (!type) return type.status();
    for (const StepKind<T>& kind : kinds) {
        if (kind.type == *type) return kind.make(node, depth);
    }
    return node.unsupported("type \"" + *type + "\"");
}

// The steps of a "Sequence", applied one after another. Step: a class with a const function apply.
template <typename Step, typename Apply = decltype(&Step::apply)>
class StepChain;

template <typename Step, typename... Args>
class StepChain<Step, void (Step::*)(Args...) const> : public Step {
public:
    explicit StepChain(std::vector<std::unique_ptr<Step>> steps) : m_steps(std::move(steps)) {}
    void apply(Args... args) const override {
        for (const auto& step : m_steps) step->apply(args...);
    }

protected:
    const std::vector<std::unique_ptr<Step>> m_steps;
};

// A "Sequence" whose parts are in the list `key`. Null parts are skipped.
template <typename Step, typename Chain = StepChain<Step>>
Result<std::unique_ptr<Step>> makeChain(const JsonNode& node, const char* key, int depth,
                                        StepMaker<std::unique_ptr<Step>> make) {
    const Result<std::vector<JsonNode>> parts = node.array(key);
    if (!parts) return parts.status();
    std::vector<std::unique_ptr<Step>> steps;
    for (const JsonNode& part : *parts) {
        Result<std::unique_ptr<Step>> step = make(part, depth + 1);
        if (!step) return step.status();
        if (*step) steps.push_back(std::move(*step));
    }
    return std::unique_ptr<Step>(std::make_unique<Chain>(std::move(steps)));
}

}  // namespace colibri::text
