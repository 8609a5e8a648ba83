// SPDX-License-Identifier: Apache-2.0
#include "engine/base/json_fields.h"

#include <cmath>
#include <cstdio>
#include <limits>
#include <utility>
#include <vector>

#include "engine/base/format.h"
#include "engine/base/printable.h"

namespace colibri {

namespace {

constexpr size_t kMaxDepth = 64;

// "0.5", not "0.500000".
std::string shown(double value) {
    std::string text = formatSig(value, 6);
    if (text.find('.') == std::string::npos || text.find('e') != std::string::npos) return text;
    text.erase(text.find_last_not_of('0') + 1);
    if (text.back() == '.') text.pop_back();
    return text;
}

// Builds the value as the parser meets it, each child once. (The library's callback parser looks
// through all earlier children of a list whenever one of them ends.)
class Builder final : public nlohmann::json_sax<nlohmann::json> {
public:
    using Json = nlohmann::json;

    // `nonFinite`: what the nulls of the text stand for, in their order; a null where nothing.
    explicit Builder(const std::vector<std::optional<double>>& nonFinite = {})
        : m_nonFinite(nonFinite) {}

    bool null() override {
        const size_t i = m_nulls++;
        if (i >= m_nonFinite.size() || !m_nonFinite[i]) return add(nullptr);
        return add(*m_nonFinite[i]);
    }
    bool boolean(bool value) override { return add(value); }
    bool number_integer(number_integer_t value) override { return add(value); }
    bool number_unsigned(number_unsigned_t value) override { return add(value); }
    bool number_float(number_float_t value, const string_t&) override { return add(value); }
    bool string(string_t& value) override { return add(std::move(value)); }
    bool binary(binary_t&) override { return false; }
    bool start_object(size_t) override { return open(Json::object()); }
    bool start_array(size_t) override { return open(Json::array()); }
    bool end_object() override { return close(); }
    bool end_array() override { return close(); }
    bool key(string_t& name) override {
        const auto [at, isNew] = m_open.back()->emplace(name, nullptr);
        m_member = &*at;
        if (!isNew) m_fault = "duplicate key \"" + printable(name) + "\"";
        return isNew;
    }
    bool parse_error(size_t, const std::string&, const Json::exception&) override { return false; }

    Json take() { return std::move(m_root); }
    const std::string& fault() const { return m_fault; }  // other than "no JSON"

private:
    Json* put(Json value) {
        Json* place = &m_root;
        if (!m_open.empty() && m_open.back()->is_array()) {
            place = &m_open.back()->get_ref<Json::array_t&>().emplace_back();
        } else if (!m_open.empty()) {
            place = m_member;
        }
        *place = std::move(value);
        return place;
    }
    bool add(Json value) {
        put(std::move(value));
        return true;
    }
    // A parent's list does not grow while a child is open: the pointers stay good.
    bool open(Json empty) {
        if (m_open.size() == kMaxDepth) {
            m_fault = "nested deeper than " + std::to_string(kMaxDepth) + " levels";
            return false;
        }
        m_open.push_back(put(std::move(empty)));
        return true;
    }
    bool close() {
        m_open.pop_back();
        return true;
    }

    Json m_root;
    std::vector<Json*> m_open;
    Json* m_member = nullptr;  // the value of the last key
    std::string m_fault;
    std::vector<std::optional<double>> m_nonFinite;
    size_t m_nulls = 0;
};

// Python's library writes and reads NaN, Infinity and -Infinity, which JSON does not have. Each
// becomes a null of the text, its value an entry of the list; false: there are none.
bool takeNonFinite(std::string_view text, std::string& out,
                   std::vector<std::optional<double>>& values) {
    constexpr double kInfinity = std::numeric_limits<double>::infinity();
    constexpr std::pair<std::string_view, double> kLiterals[] = {
        {"NaN", std::numeric_limits<double>::quiet_NaN()},
        {"Infinity", kInfinity},
        {"-Infinity", -kInfinity}};
    bool found = false, quoted = false;
    for (size_t at = 0; at < text.size();) {
        const std::string_view rest = text.substr(at);
        size_t length = 1;
        if (quoted) {
            if (rest[0] == '\\') length = std::min<size_t>(2, rest.size());
            quoted = rest[0] != '"';
        } else if (rest[0] == '"') {
            quoted = true;
        } else if (rest.starts_with("null")) {
            length = 4;
            values.emplace_back();
        } else {
            for (const auto& [name, value] : kLiterals) {
                if (!rest.starts_with(name)) continue;
                out += "null";
                values.emplace_back(value);
                at += name.size();
                found = true;
                length = 0;
                break;
            }
        }
        out += rest.substr(0, length);
        at += length;
    }
    return found;
}

Result<nlohmann::json> parse(std::string_view text, const std::string& where, bool nonFinite) {
    Builder builder;
    if (nlohmann::json::sax_parse(text.begin(), text.end(), &builder)) return builder.take();
    std::string finite;
    std::vector<std::optional<double>> values;
    if (builder.fault().empty() && takeNonFinite(text, finite, values)) {
        if (!nonFinite) return Status(Code::BadInput, where + ": NaN and Infinity are not JSON");
        builder = Builder(values);
        if (nlohmann::json::sax_parse(finite, &builder)) return builder.take();
    }
    if (!builder.fault().empty()) return Status(Code::BadInput, where + ": " + builder.fault());
    return Status(Code::BadInput, where + ": not valid JSON",
                  "The file may be truncated or damaged");
}

}  // namespace

Result<nlohmann::json> parseJson(std::string_view text, const std::string& where) {
    return parse(text, where, true);
}

Result<nlohmann::json> parseStrictJson(std::string_view text, const std::string& where) {
    return parse(text, where, false);
}

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
