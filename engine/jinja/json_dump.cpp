// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>

#include "engine/jinja/machine.h"
#include "engine/jinja/python_text.h"

namespace colibri::jinja {
namespace {

class JsonWriter {
public:
    JsonWriter(Runtime& runtime, const JsonStyle& style) : m_runtime(runtime), m_style(style) {}

    void write(const Value& value, int depth) {
        if (depth > kDeepestValue) throw RenderError("maximum recursion depth exceeded");
        m_runtime.charge(1);
        spendOnText(0, m_out.text.size());
        switch (value.type()) {
            case Type::None:
                m_out.text += "null";
                break;
            case Type::Bool:
                m_out.text += value.asInteger() ? "true" : "false";
                break;
            case Type::Int:
                m_out.text += formatInteger(value.asInteger());
                break;
            case Type::Float:
                m_out.text += number(value.asDouble());
                break;
            case Type::String:
                string(value.text(), hasData(value));
                break;
            case Type::List:
            case Type::Tuple:
                list(value.items(), depth);
                break;
            case Type::Dict:
                dict(value.as<DictObject>(), depth);
                break;
            default:
                typeError("Object of type " + typeName(value) + " is not JSON serializable");
        }
    }

    TracedText take() { return std::move(m_out); }

private:
    static std::string number(double value) {
        if (std::isnan(value)) return "NaN";
        if (std::isinf(value)) return value < 0 ? "-Infinity" : "Infinity";
        return formatDouble(value);
    }

    static void unicode(char32_t unit, std::string& out) {
        out += "\\u";
        for (int shift = 12; shift >= 0; shift -= 4) out += "0123456789abcdef"[unit >> shift & 15];
    }

    void string(const std::string& text, bool isData = false) {
        m_runtime.chargeBytes(text.size());
        spend(text.size() / 8);
        std::string out = "\"";
        for (size_t at = 0; at < text.size();) {
            const auto step = text::nextUtf8(text, at);
            const char32_t code = step.code;
            constexpr std::string_view special = "\"\\\n\r\t\f\b", letters = "\"\\nrtfb";
            const size_t known = code < 0x80 ? special.find(char(code)) : std::string_view::npos;
            if (known != std::string_view::npos) {
                out += {'\\', letters[known]};
            } else if (code < 0x20 ||
                       (m_style.asciiOnly && code > 0x7E && code < 0x10000 && code != 0x7F)) {
                unicode(code, out);
            } else if (m_style.asciiOnly && code >= 0x10000) {
                unicode(0xD800 + ((code - 0x10000) >> 10), out);
                unicode(0xDC00 + ((code - 0x10000) & 0x3FF), out);
            } else {
                out.append(text, at, step.bytes);
            }
            at += step.bytes;
        }
        out += '"';
        m_out.append(out, isData);
    }

    void put(const std::string& piece) {
        m_out.append(piece);
        spendOnText(piece.size(), m_out.text.size());
    }

    // Writes the separator before an item; `first`: it is the first of its container.
    void separate(bool first, int depth) {
        if (!first) put(m_style.itemSeparator);
        newLine(depth + 1);
    }

    void newLine(int depth) {
        if (!m_style.indent) return;
        m_out.text += '\n';
        for (int i = 0; i < depth; ++i) put(*m_style.indent);
    }

    void list(const std::vector<Value>& items, int depth) {
        if (items.empty()) {
            m_out.text += "[]";
            return;
        }
        m_out.text += '[';
        for (size_t i = 0; i < items.size(); ++i) {
            separate(i == 0, depth);
            write(items[i], depth + 1);
        }
        newLine(depth);
        m_out.text += ']';
    }

    void dict(const DictObject& dict, int depth) {
        std::vector<const std::pair<Value, Value>*> entries;
        m_runtime.charge(int64_t(dict.entries.size()));
        for (const auto& entry : dict.entries) entries.push_back(&entry);
        if (m_style.sortKeys) {
            std::stable_sort(entries.begin(), entries.end(), [](const auto* a, const auto* b) {
                return compare(a->first, b->first, "<") < 0;
            });
        }
        if (entries.empty()) {
            m_out.text += "{}";
            return;
        }
        m_out.text += '{';
        for (size_t i = 0; i < entries.size(); ++i) {
            separate(i == 0, depth);
            key(entries[i]->first);
            put(m_style.keySeparator);
            write(entries[i]->second, depth + 1);
        }
        newLine(depth);
        m_out.text += '}';
    }

    void key(const Value& key) {
        switch (key.type()) {
            case Type::String:
                return string(key.text(), hasData(key));
            case Type::None:
                return string("null");
            case Type::Bool:
                return string(key.asInteger() ? "true" : "false");
            case Type::Int:
                return string(formatInteger(key.asInteger()));
            case Type::Float:
                return string(number(key.asDouble()));
            default:
                typeError("keys must be str, int, float, bool or None, not " + typeName(key));
        }
    }

    Runtime& m_runtime;
    const JsonStyle& m_style;
    TracedText m_out;
};

}  // namespace

TracedText dumpJson(Runtime& runtime, const Value& value, const JsonStyle& style) {
    JsonWriter writer(runtime, style);
    writer.write(value, 0);
    return writer.take();
}

}  // namespace colibri::jinja
