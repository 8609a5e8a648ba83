// SPDX-License-Identifier: Apache-2.0
// Checks the type and range of the fields of a JSON object, with errors that name the key.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>

#include "engine/base/json_reader.h"
#include "engine/base/status.h"

namespace colibri {

// The fields of one object. Keeps the first error and continues with fallbacks, so a caller reads
// all fields and checks status() once. A null counts as absent.
class Fields {
public:
    // `object` must outlive this. `where` begins every message: a file name.
    Fields(const nlohmann::json& object, std::string where);

    bool has(const char* key) const;
    const nlohmann::json* find(const char* key) const;  // nullptr: absent or null

    // Without a fallback the key is required.
    int64_t integer(const char* key, int64_t low, int64_t high,
                    std::optional<int64_t> fallback = {});
    double number(const char* key, double low, double high, std::optional<double> fallback = {});
    bool flag(const char* key, std::optional<bool> fallback = {});
    std::string text(const char* key, std::optional<std::string> fallback = {});
    // An array, or nullptr (absent: an error unless `optional`).
    const nlohmann::json* array(const char* key, bool optional = false);

    void fail(const std::string& message, Code code = Code::BadInput);
    // The same with the message "key: what".
    void failAt(const std::string& key, const std::string& what, Code code = Code::BadInput);
    const Status& status() const { return m_status; }
    // The key that status() is about; empty: none, or unknown.
    const std::string& failedKey() const { return m_failedKey; }

private:
    void wrong(const char* key, const std::string& what);  // "key" what
    const nlohmann::json* required(const char* key, bool haveFallback);

    const nlohmann::json& m_object;
    std::string m_where;
    Status m_status;
    std::string m_failedKey;
};

// A whole number, also if written as 1e6 or 7.0; nothing if it is not one.
std::optional<int64_t> wholeNumber(const nlohmann::json& value);

// 16 (or 32) lower-case hex digits of a hash, and back.
std::string hexHash(uint64_t hash);
std::optional<uint64_t> parseHexHash(const std::string& text);

}  // namespace colibri
