// SPDX-License-Identifier: Apache-2.0
// The "normalizer" of tokenizer.json: what happens to a text before it is split.
#pragma once

#include <memory>
#include <string>

#include "engine/base/status.h"
#include "engine/text/json_reader.h"

namespace colibri::text {

// Immutable; any thread.
class Normalizer {
public:
    virtual ~Normalizer() = default;
    // REQUIRES: valid UTF-8, and leaves it so.
    virtual void apply(std::string& text) const = 0;
    virtual double growth() const { return 1; }  // bytes out for one byte in, at most
};

// Null for a null node. Errors: BadInput; Unsupported with the type's name.
Result<std::unique_ptr<Normalizer>> makeNormalizer(const JsonNode& node, int depth = 0);

// A pattern as Split and Replace write it: {"Regex": "..."} or {"String": "..."}.
class Regex;
Result<Regex> readPattern(const JsonNode& node);

// How deep components of tokenizer.json may be nested.
inline constexpr int kDeepestNesting = 16;

}  // namespace colibri::text
