// SPDX-License-Identifier: Apache-2.0
#include "engine/base/json_fields.h"

#include <cmath>
#include <cstdio>
#include <utility>

#include "engine/base/format.h"
#include "engine/base/printable.h"

namespace colibri {

namespace {

// "0.5", not "0.500000".
std::string shown(double value) {
    std::string text = formatSig(value, 6);
    if (text.find('.') == std::string::npos || text.find('e') != std::string::npos) return text;
    text.erase(text.find_last_not_of('0') + 1);
    if (text.back() == '.') text.pop_back();
    return text;
}

}  // namespace

Fields::Fields(const nlohmann::json& object, std::string where)
    : m_object(object), m_where(std::move(where)) {
    if (!object.is_object()) fail("not a JSON object");
}

void Fields::fail(const std::string& message, Code code) {
    if (m_status.ok()) m_status = Status(code, m_where + ": " + printable(message));
}

void Fields::failAt(const std::string& key, const std::string& what, Code code) {
    if (m_status.ok()) m_failedKey = key;
    fail(key + ": " + what, code);
}

void Fields::wrong(const char* key, const std::string& what) {
    if (m_status.ok()) m_failedKey = key;
    fail(std::string("\"") + key + "\" " + what);
}

const nlohmann::json* Fields::find(const char* key) const {
    if (!m_object.is_object()) return nullptr;
    auto it = m_object.find(key);
    return it == m_object.end() || it->is_null() ? nullptr : &*it;
}

bool Fields::has(const char* key) const {
    return find(key) != nullptr;
}

const nlohmann::json* Fields::required(const char* key, bool haveFallback) {
    const nlohmann::json* value = find(key);
    if (!value && !haveFallback) wrong(key, "is missing");
    return value;
}

int64_t Fields::integer(const char* key, int64_t low, int64_t high,
                        std::optional<int64_t> fallback) {
    const nlohmann::json* value = required(key, fallback.has_value());
    if (!value) return fallback.value_or(low);
    std::optional<int64_t> whole = wholeNumber(*value);
    if (!whole) {
        wrong(key, "is not a whole number");
        return fallback.value_or(low);
    }
    if (*whole < low || *whole > high) {
        wrong(key, "is " + std::to_string(*whole) + ", expected a value between " +
                       std::to_string(low) + " and " + std::to_string(high));
        return fallback.value_or(low);
    }
    return *whole;
}

double Fields::number(const char* key, double low, double high, std::optional<double> fallback) {
    const nlohmann::json* value = required(key, fallback.has_value());
    if (!value) return fallback.value_or(low);
    if (!value->is_number()) {
        wrong(key, "is not a number");
        return fallback.value_or(low);
    }
    double v = value->get<double>();
    if (!(v >= low && v <= high)) {
        wrong(key, "is " + shown(v) + ", expected a value between " + shown(low) + " and " +
                       shown(high));
        return fallback.value_or(low);
    }
    return v;
}

bool Fields::flag(const char* key, std::optional<bool> fallback) {
    const nlohmann::json* value = required(key, fallback.has_value());
    if (!value) return fallback.value_or(false);
    if (!value->is_boolean()) {
        wrong(key, "is not true or false");
        return fallback.value_or(false);
    }
    return value->get<bool>();
}

std::string Fields::text(const char* key, std::optional<std::string> fallback) {
    const nlohmann::json* value = required(key, fallback.has_value());
    if (!value) return fallback.value_or("");
    if (!value->is_string()) {
        wrong(key, "is not a string");
        return fallback.value_or("");
    }
    return value->get<std::string>();
}

const nlohmann::json* Fields::array(const char* key, bool optional) {
    const nlohmann::json* value = required(key, optional);
    if (value && !value->is_array()) {
        wrong(key, "is not a list");
        return nullptr;
    }
    return value;
}

std::optional<int64_t> wholeNumber(const nlohmann::json& value) {
    if (value.is_number_unsigned()) {
        uint64_t v = value.get<uint64_t>();
        if (v > uint64_t(INT64_MAX)) return {};
        return int64_t(v);
    }
    if (value.is_number_integer()) return value.get<int64_t>();
    if (value.is_number_float()) {
        double v = value.get<double>();
        if (std::abs(v) <= 9e15 && v == std::floor(v)) return int64_t(v);
    }
    return {};
}

std::string hexHash(uint64_t hash) {
    char out[17];
    std::snprintf(out, sizeof out, "%016llx", static_cast<unsigned long long>(hash));
    return out;
}

std::optional<uint64_t> parseHexHash(const std::string& text) {
    if (text.size() != 16) return {};
    uint64_t hash = 0;
    for (char c : text) {
        int digit = c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
        if (digit < 0) return {};
        hash = hash << 4 | uint64_t(digit);
    }
    return hash;
}

}  // namespace colibri
