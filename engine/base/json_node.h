// SPDX-License-Identifier: Apache-2.0
// A JSON tree that is read by type, with the path in each error: "tokenizer.json:
// model.merges[3]: ...".
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "engine/base/status.h"

namespace colibri {

// A borrowed JSON value and its path. The document must outlive it.
class JsonNode {
public:
    JsonNode(const nlohmann::json& json, std::string where)
        : m_json(&json), m_where(std::move(where)) {}

    const nlohmann::json& json() const { return *m_json; }
    const std::string& where() const { return m_where; }
    bool isNull() const { return m_json->is_null(); }
    bool has(const char* key) const;         // present and not null
    JsonNode at(const char* key) const;      // null if absent
    std::vector<JsonNode> elements() const;  // empty unless an array

    Result<std::string> text(const char* key) const;
    Result<std::string> text(const char* key, std::string fallback) const;  // absent or null
    Result<bool> flag(const char* key, bool fallback) const;
    Result<int64_t> integer(const char* key) const;
    Result<int64_t> integer(const char* key, int64_t fallback) const;
    Result<std::vector<JsonNode>> array(const char* key) const;

    Status bad(const std::string& what) const;  // BadInput with this path
    Status unsupported(const std::string& what) const;

private:
    JsonNode element(size_t index) const;
    std::string path(const char* key) const;

    const nlohmann::json* m_json;
    std::string m_where;
};

}  // namespace colibri
