// SPDX-License-Identifier: Apache-2.0
#include "engine/base/json_node.h"

namespace colibri {

namespace {

const nlohmann::json& nullJson() {
    static const nlohmann::json null;
    return null;
}

}  // namespace

bool JsonNode::has(const char* key) const {
    return !at(key).isNull();
}

JsonNode JsonNode::at(const char* key) const {
    if (m_json->is_object()) {
        const auto found = m_json->find(key);
        if (found != m_json->end()) return {*found, path(key)};
    }
    return {nullJson(), path(key)};
}

JsonNode JsonNode::element(size_t index) const {
    return {(*m_json)[index], m_where + "[" + std::to_string(index) + "]"};
}

// "tokenizer.json: model" + "vocab" -> "tokenizer.json: model.vocab"; the root ends with ":".
std::string JsonNode::path(const char* key) const {
    return m_where + (m_where.ends_with(":") ? " " : ".") + key;
}

std::vector<JsonNode> JsonNode::elements() const {
    std::vector<JsonNode> nodes;
    if (!m_json->is_array()) return nodes;
    nodes.reserve(m_json->size());
    for (size_t i = 0; i < m_json->size(); ++i) nodes.push_back(element(i));
    return nodes;
}

Status JsonNode::bad(const std::string& what) const {
    return {Code::BadInput, m_where + (m_where.ends_with(":") ? " " : ": ") + what};
}

Status JsonNode::unsupported(const std::string& what) const {
    return {Code::Unsupported, m_where + " " + what};
}

Result<std::string> JsonNode::text(const char* key) const {
    const JsonNode node = at(key);
    if (!node.json().is_string()) return node.bad("a string is expected here");
    return node.json().get<std::string>();
}

Result<std::string> JsonNode::text(const char* key, std::string fallback) const {
    return has(key) ? text(key) : Result<std::string>(std::move(fallback));
}

Result<bool> JsonNode::flag(const char* key, bool fallback) const {
    const JsonNode node = at(key);
    if (node.isNull()) return fallback;
    if (!node.json().is_boolean()) return node.bad("true or false is expected here");
    return node.json().get<bool>();
}

Result<int64_t> JsonNode::integer(const char* key) const {
    const JsonNode node = at(key);
    const auto& value = node.json();
    if (!value.is_number_integer() ||
        (value.is_number_unsigned() && value.get<uint64_t>() > uint64_t(INT64_MAX))) {
        return node.bad("a whole number is expected here");
    }
    return value.get<int64_t>();
}

Result<int64_t> JsonNode::integer(const char* key, int64_t fallback) const {
    return has(key) ? integer(key) : Result<int64_t>(fallback);
}

Result<std::vector<JsonNode>> JsonNode::array(const char* key) const {
    const JsonNode node = at(key);
    if (!node.json().is_array()) return node.bad("an array is expected here");
    return node.elements();
}

}  // namespace colibri
