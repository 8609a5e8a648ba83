// SPDX-License-Identifier: Apache-2.0
// The "normalizer" of tokenizer.json, which changes a text before it is split.
#pragma once

#include <memory>
#include <string>

#include "engine/base/json_node.h"
#include "engine/base/status.h"

namespace colibri::text {

// Immutable; any thread.
class Normalizer {
public:
    virtual ~Normalizer() = default;
    // REQUIRES: valid UTF-8. The result is valid UTF-8.
    virtual void apply(std::string& text) const = 0;
    virtual double growth() const { return 1; }  // maximum output bytes per input byte
};

// Null for a null node. Errors: BadInput; Unsupported with the type's name.
Result<std::unique_ptr<Normalizer>> makeNormalizer(const JsonNode& node, int depth = 0);

// A pattern in the form that Split and Replace use: {"Regex": "..."} or {"String": "..."}.
class Regex;
Result<Regex> readPattern(const JsonNode& node);

}  // namespace colibri::text
