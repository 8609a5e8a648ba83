// SPDX-License-Identifier: Apache-2.0
#include "engine/base/json_reader.h"

#include <limits>
#include <utility>
#include <vector>

#include "engine/base/printable.h"

namespace colibri {

namespace {

// Builds the value as the parser meets it, each child once. (The library's callback parser looks
// through all earlier children of a list whenever one of them ends.)
class Builder final : public nlohmann::json_sax<nlohmann::json> {
public:
    using Json = nlohmann::json;

    // `nonFinite`: what the nulls of the text stand for, in their order; a null where nothing.
    Builder(const JsonRules& rules, JsonFault& fault,
            const std::vector<std::optional<double>>& nonFinite = {})
        : m_rules(rules), m_fault(fault), m_nonFinite(nonFinite) {
        m_fault = {};
    }

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
        if (isNew || m_rules.lastDuplicateCounts) return true;
        m_fault = {JsonFault::Kind::DuplicateKey, 0, name};
        return false;
    }
    bool parse_error(size_t byte, const std::string&, const Json::exception&) override {
        m_fault = {JsonFault::Kind::NotJson, byte, {}};
        return false;
    }

    Json take() { return std::move(m_root); }

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
        if (m_open.size() == m_rules.maxDepth) {
            m_fault.kind = JsonFault::Kind::TooDeep;
            return false;
        }
        m_open.push_back(put(std::move(empty)));
        return true;
    }
    bool close() {
        m_open.pop_back();
        return true;
    }

    const JsonRules& m_rules;
    JsonFault& m_fault;
    Json m_root;
    std::vector<Json*> m_open;
    Json* m_member = nullptr;  // the value of the last key
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
    JsonRules rules;
    rules.nonFinite = nonFinite;
    JsonFault fault;
    if (std::optional<nlohmann::json> json = readJson(text, rules, fault)) return std::move(*json);
    switch (fault.kind) {
        case JsonFault::Kind::DuplicateKey:
            return Status(Code::BadInput,
                          where + ": duplicate key \"" + printable(fault.key) + "\"");
        case JsonFault::Kind::TooDeep:
            return Status(Code::BadInput, where + ": nested deeper than " +
                                              std::to_string(rules.maxDepth) + " levels");
        case JsonFault::Kind::NonFinite:
            return Status(Code::BadInput, where + ": NaN and Infinity are not JSON");
        case JsonFault::Kind::NotJson:
            break;
    }
    return Status(Code::BadInput, where + ": not valid JSON",
                  "The file may be truncated or damaged");
}

}  // namespace

std::optional<nlohmann::json> readJson(std::string_view text, const JsonRules& rules,
                                       JsonFault& fault) {
    Builder builder(rules, fault);
    if (nlohmann::json::sax_parse(text.begin(), text.end(), &builder)) return builder.take();
    std::string finite;
    std::vector<std::optional<double>> values;
    if (fault.kind != JsonFault::Kind::NotJson || !takeNonFinite(text, finite, values)) return {};
    if (!rules.nonFinite) {
        fault.kind = JsonFault::Kind::NonFinite;
        return {};
    }
    Builder second(rules, fault, values);
    if (nlohmann::json::sax_parse(finite, &second)) return second.take();
    return {};
}

Result<nlohmann::json> parseJson(std::string_view text, const std::string& where) {
    return parse(text, where, true);
}

Result<nlohmann::json> parseStrictJson(std::string_view text, const std::string& where) {
    return parse(text, where, false);
}

}  // namespace colibri
