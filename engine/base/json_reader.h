// SPDX-License-Identifier: Apache-2.0
// Reads untrusted JSON in linear time and without exceptions. For typed access see json_fields.h
// (the fields of one object) and json_node.h (a tree with paths).
#pragma once

#include <cstddef>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>

#include "engine/base/status.h"

namespace colibri {

struct JsonRules {
    size_t maxDepth = 64;              // of nested arrays and objects
    bool lastDuplicateCounts = false;  // a duplicate key has its last value; else it is an error
    bool nonFinite = false;  // the bare NaN, Infinity and -Infinity of Python's library are numbers
};

struct JsonFault {
    enum class Kind { NotJson, TooDeep, DuplicateKey, NonFinite };
    Kind kind = Kind::NotJson;
    size_t byte = 0;  // position of the error, from 1 (NotJson, NonFinite)
    std::string key;  // the duplicate key, not escaped
};

// Parses a whole text. None: `fault` has the reason.
std::optional<nlohmann::json> readJson(std::string_view text, const JsonRules& rules,
                                       JsonFault& fault);

// Parses with the default depth and without duplicate keys. NaN, Infinity and -Infinity are
// numbers, as in files of Python's library. `where`, a file name, begins every message. Errors:
// BadInput.
Result<nlohmann::json> parseJson(std::string_view text, const std::string& where);
// The same, but NaN, Infinity and -Infinity are not JSON here.
Result<nlohmann::json> parseStrictJson(std::string_view text, const std::string& where);

}  // namespace colibri
