// SPDX-License-Identifier: Apache-2.0
// Filters that return a string or a number.
#include <algorithm>
#include <charconv>
#include <cmath>

#include "engine/jinja/filters.h"
#include "engine/jinja/python_text.h"

namespace colibri::jinja {
namespace {

bool isSafe(const Value& value) {
    return value.is(Type::String) && value.as<StringObject>().safe;
}

// A filter that applies a string method to the text of any value.
template <std::string (*change)(std::string_view)>
Value changedText(Runtime& runtime, const Value& value, const Arguments& arguments) {
    (void)arguments.bind("filter", {});
    const std::string text = str(value);
    runtime.chargeBytes(text.size() * 4);
    return runtime.text(change(text), isSafe(value));
}

// Words begin after white space, hyphens and opening brackets.
std::string titleWords(std::string_view text) {
    std::u32string word;
    std::string out;
    const auto flush = [&] {
        if (word.empty()) return;
        const std::string whole = toUtf8(word);
        const size_t first = text::nextUtf8(whole, 0).bytes;
        out += upper(whole.substr(0, first)) + lower(whole.substr(first));
        word.clear();
    };
    for (char32_t code : toCodePoints(text)) {
        if (isSpace(code) || code == '-' || code == '(' || code == '{' || code == '[' ||
            code == '<') {
            flush();
            text::appendUtf8(out, code);
        } else {
            word += code;
        }
    }
    flush();
    return out;
}

Value trim(Runtime& runtime, const Value& value, const Arguments& arguments) {
    const auto given = arguments.bind("trim", {"chars"});
    const TracedText text = tracedStr(value);
    if (!given[0] || given[0]->is(Type::None))
        return runtime.text(partOf(text, strip(text.text, Side::Both)), isSafe(value));
    if (!given[0]->is(Type::String)) typeError("strip arg must be None or str");
    return runtime.text(partOf(text, strip(text.text, Side::Both, given[0]->text())),
                        isSafe(value));
}

Value replace(Runtime& runtime, const Value& value, const Arguments& arguments) {
    const auto given = arguments.bind("replace", {"old", "new", "count"}, 2);
    const TracedText text = tracedStr(value), to = tracedStr(*given[1]);
    const std::string from = str(*given[0]);
    const size_t size = text.text.size();
    const size_t matches = from.empty() ? size + 1 : size / from.size();
    runtime.chargeBytes(size + std::min<size_t>(matches, 1 << 24) * to.text.size() / 8);
    return runtime.text(replaceAll(text, from, to, wholeArgument(given[2], -1)));
}

Value defaulted(Runtime&, const Value& value, const Arguments& arguments) {
    const auto given = arguments.bind("default", {"default_value", "boolean"});
    const bool missing = value.is(Type::Undefined) || (flagArgument(given[1]) && !truthy(value));
    return !missing ? value : given[0] ? *given[0] : Value::string("");
}

Value tojson(Runtime& runtime, const Value& value, const Arguments& arguments) {
    const auto given =
        arguments.bind("tojson", {"ensure_ascii", "indent", "separators", "sort_keys"});
    JsonStyle style;
    style.asciiOnly = flagArgument(given[0]);
    style.sortKeys = flagArgument(given[3]);
    if (given[1] && !given[1]->is(Type::None)) {
        if (given[1]->is(Type::String)) {
            style.indent = given[1]->text();
        } else {
            style.indent =
                std::string(size_t(std::clamp<int64_t>(wholeArgument(given[1], 0), 0, 1000)), ' ');
        }
        style.itemSeparator = ",";
    }
    if (given[2] && !given[2]->is(Type::None)) {
        const std::vector<Value> separators = itemsOf(*given[2]);
        if (separators.size() != 2) throw RenderError("tojson needs two separators");
        style.itemSeparator = str(separators[0]);
        style.keySeparator = str(separators[1]);
    }
    TracedText json = dumpJson(runtime, value, style);
    // Separators and other arguments that are data may be anywhere in the result.
    if (arguments.hasData()) return runtime.text(std::move(json.text));
    return runtime.text(std::move(json));
}

Value string(Runtime& runtime, const Value& value, const Arguments&) {
    return value.is(Type::String) ? value : runtime.text(tracedStr(value));
}

Value escaped(Runtime& runtime, const Value& value, const Arguments&) {
    return isSafe(value) ? value : runtime.text(escapeHtml(tracedStr(value)), true);
}

Value format(Runtime& runtime, const Value& value, const Arguments& arguments) {
    if (!arguments.named.empty() && !arguments.positional.empty()) {
        throw RenderError("can't handle positional and keyword arguments at the same time");
    }
    DictObject named;
    for (const auto& [name, item] : arguments.named) named.set(Value::string(name), item);
    const Value values = arguments.named.empty() ? Value::tuple(arguments.positional)
                                                 : Value::dict(std::move(named));
    return runtime.text(percentFormat(runtime, tracedStr(value), values, isSafe(value)),
                        isSafe(value));
}

Value indent(Runtime& runtime, const Value& value, const Arguments& arguments) {
    const auto given = arguments.bind("indent", {"width", "first", "blank"});
    if (value.is(Type::Undefined)) undefinedError(value);
    if (!value.is(Type::String))
        typeError("unsupported operand type(s) for +=: '" + typeName(value) + "' and 'str'");
    const bool named = given[0] && given[0]->is(Type::String);
    const TracedText by =
        named ? TracedText(given[0]->as<StringObject>())
              : TracedText(std::string(
                    size_t(std::clamp<int64_t>(wholeArgument(given[0], 4), 0, 10000)), ' '));
    const bool blank = flagArgument(given[2]);
    TracedText text = value.as<StringObject>();
    text.append("\n");
    const std::vector<std::string_view> lines = splitLines(text.text, false);
    runtime.chargeBytes(text.text.size() + lines.size() * by.text.size());
    TracedText out;
    if (flagArgument(given[1])) out.append(by);
    for (size_t i = 0; i < lines.size(); ++i) {
        if (i > 0) out.append("\n");
        if (i > 0 && (blank || !lines[i].empty())) out.append(by);
        out.append(partOf(text, lines[i]));
    }
    return runtime.text(std::move(out), isSafe(value));
}

Value center(Runtime& runtime, const Value& value, const Arguments& arguments) {
    const auto given = arguments.bind("center", {"width"});
    Arguments width;
    width.positional.push_back(given[0] ? *given[0] : Value::integer(80));
    const Value text = string(runtime, value, {});
    return runtime.call(*findMethod(text, "center"), width);
}

Value truncate(Runtime& runtime, const Value& value, const Arguments& arguments) {
    const auto given = arguments.bind("truncate", {"length", "killwords", "end", "leeway"});
    const int64_t length = wholeArgument(given[0], 255), leeway = wholeArgument(given[3], 5);
    const std::string end = given[2] ? str(*given[2]) : "...";
    const int64_t endLength = int64_t(codePointCount(std::string_view(end)));
    if (length < endLength)
        throw RenderError("expected length >= " + std::to_string(endLength) + ", got " +
                          std::to_string(length));
    if (leeway < 0) throw RenderError("expected leeway >= 0, got " + std::to_string(leeway));
    if (int64_t(lengthOf(value)) <= length + std::min<int64_t>(leeway, INT32_MAX)) return value;
    const std::u32string codes = toCodePoints(str(value));
    std::string cut = toUtf8(std::u32string_view(codes).substr(0, size_t(length - endLength)));
    if (!flagArgument(given[1])) cut = std::string(splitBy(cut, " ", 1, true)[0]);
    return runtime.text(cut + end, isSafe(value));
}

Value wordcount(Runtime&, const Value& value, const Arguments&) {
    Integer count = 0;
    bool inWord = false;
    const std::u32string codes = toCodePoints(str(value));
    spend(codes.size() / 2);
    for (char32_t code : codes) {
        const bool word = code == '_' || isAlpha(code) || isNumericCode(code) || isDigit(code);
        count += word && !inWord;
        inWord = word;
    }
    return Value::integer(count);
}

Value striptags(Runtime& runtime, const Value& value, const Arguments&) {
    std::string text = str(value), out;
    spend(text.size() / 4);
    for (const auto& [open, close] : {std::pair{"<!--", "-->"}, std::pair{"<", ">"}}) {
        out.clear();
        size_t done = 0;
        for (size_t at = text.find(open); at != std::string::npos; at = text.find(open, done)) {
            const size_t end = text.find(close, at);
            if (end == std::string::npos) break;
            out += text.substr(done, at - done);
            done = end + std::string_view(close).size();
        }
        text = out + text.substr(done);
    }
    std::string joined;
    for (const std::string_view word : splitWords(text, -1, false)) {
        if (!joined.empty()) joined += ' ';
        joined += word;
    }
    constexpr std::pair<std::string_view, std::string_view> entities[] = {
        {"&lt;", "<"},    {"&gt;", ">"},  {"&#34;", "\""},
        {"&quot;", "\""}, {"&#39;", "'"}, {"&amp;", "&"}};
    for (const auto& [from, to] : entities)
        joined = replaceAll(TracedText(joined), from, TracedText(std::string(to)), -1).text;
    return runtime.text(std::move(joined));
}

std::string urlQuoted(const std::string& text, bool query) {
    std::string out;
    spend(text.size() / 4);
    for (char c : text) {
        const bool plain = isalnum(static_cast<unsigned char>(c)) ||
                           std::string_view("_.-~").find(c) != std::string_view::npos;
        if (plain || (c == '/' && !query)) {
            out += c;
        } else if (c == ' ' && query) {
            out += '+';
        } else {
            constexpr const char* digits = "0123456789ABCDEF";
            out += {'%', digits[static_cast<unsigned char>(c) >> 4], digits[c & 15]};
        }
    }
    return out;
}

Value urlencode(Runtime& runtime, const Value& value, const Arguments&) {
    if (value.is(Type::String) || !isIterable(value))
        return runtime.text(urlQuoted(str(value), false));
    std::string out;
    const Value pairs =
        value.is(Type::Dict) ? Value::view(value.dictPointer(), ViewKind::Items) : value;
    for (const Value& pair : itemsOf(pairs)) {
        const std::vector<Value> parts = itemsOf(pair);
        if (parts.size() != 2) throw RenderError("urlencode needs pairs");
        const std::string piece =
            urlQuoted(str(parts[0]), true) + "=" + urlQuoted(str(parts[1]), true);
        out += (out.empty() ? "" : "&") + piece;
        spendOnText(piece.size(), out.size());
    }
    return runtime.text(std::move(out));
}

Value xmlattr(Runtime& runtime, const Value& value, const Arguments& arguments) {
    const auto given = arguments.bind("xmlattr", {"autospace"});
    if (!value.is(Type::Dict)) typeError("xmlattr needs a dict, not " + typeName(value));
    std::string out;
    for (const auto& [key, item] : value.as<DictObject>().entries) {
        if (item.is(Type::None) || item.is(Type::Undefined)) continue;
        const std::string name = str(key);
        if (name.find_first_of(" \t\n\r\f\v/>=") != std::string::npos) {
            throw RenderError("Invalid character in attribute name: " + reprText(name));
        }
        const std::string piece =
            escapeHtml(name) + "=\"" + (isSafe(item) ? str(item) : escapeHtml(str(item))) + "\"";
        out += (out.empty() ? "" : " ") + piece;
        spendOnText(piece.size() + 16, out.size());
    }
    if ((!given[0] || truthy(*given[0])) && !out.empty()) out.insert(0, " ");
    return runtime.text(std::move(out), runtime.autoescape());
}

std::optional<double> readDouble(std::string_view text) {
    text = strip(text, Side::Both);
    spend(text.size() / 8);
    std::string clean;
    for (size_t i = 0; i < text.size(); ++i) {
        const auto digitAt = [&](size_t at) {
            return at < text.size() && isdigit(static_cast<unsigned char>(text[at]));
        };
        if (text[i] != '_' || i == 0 || !digitAt(i - 1) || !digitAt(i + 1)) clean += text[i];
    }
    std::string_view digits = clean;
    const bool negative = digits.starts_with('-');
    if (negative || digits.starts_with('+')) digits.remove_prefix(1);
    if (digits.empty() || digits[0] == '-') return std::nullopt;
    double value = 0;
    const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
    if (end != digits.data() + digits.size()) return std::nullopt;
    if (error == std::errc::result_out_of_range)
        value = std::strtod(std::string(digits).c_str(), nullptr);
    return negative ? -value : value;
}

// Implements int(text, base) with Python's prefixes and underscores.
std::optional<Integer> readInteger(std::string_view text, int base) {
    text = strip(text, Side::Both);
    spend(text.size() / 16);
    const bool negative = text.starts_with('-');
    if (negative || text.starts_with('+')) text.remove_prefix(1);
    const char mark = text.size() > 1 && text[0] == '0' ? char(text[1] | 0x20) : '\0';
    const int marked = mark == 'x' ? 16 : mark == 'o' ? 8 : mark == 'b' ? 2 : 0;
    if (marked != 0 && (base == marked || base == 0)) {
        text.remove_prefix(2);
        if (text.starts_with('_')) text.remove_prefix(1);
        base = marked;
    }
    if (base == 0) base = 10;
    Integer value = 0;
    bool digitBefore = false;
    for (char c : text) {
        if (c == '_' && digitBefore) {
            digitBefore = false;
            continue;
        }
        const int digit = c >= '0' && c <= '9'                     ? c - '0'
                          : (c | 0x20) >= 'a' && (c | 0x20) <= 'z' ? (c | 0x20) - 'a' + 10
                                                                   : 99;
        if (digit >= base) return std::nullopt;
        if (__builtin_mul_overflow(value, Integer(base), &value) ||
            __builtin_add_overflow(value, Integer(digit), &value)) {
            throw RenderError("the integer is too large");
        }
        digitBefore = true;
    }
    if (!digitBefore) return std::nullopt;
    return negative ? -value : value;
}

Value toInteger(Runtime&, const Value& value, const Arguments& arguments) {
    const auto given = arguments.bind("int", {"default", "base"});
    const Value fallback = given[0] ? *given[0] : Value::integer(0);
    std::optional<double> real;
    if (value.isInteger()) return Value::integer(value.asInteger());
    if (value.is(Type::Undefined)) undefinedError(value);
    if (value.is(Type::Float)) real = value.asDouble();
    if (value.is(Type::String)) {
        const int64_t base = wholeArgument(given[1], 10);
        if (base == 0 || (base >= 2 && base <= 36)) {
            if (const auto whole = readInteger(value.text(), int(base)))
                return Value::integer(*whole);
        }
        real = readDouble(value.text());
    }
    if (!real || !std::isfinite(*real)) return fallback;
    if (std::abs(*real) >= 1.7e38) throw RenderError("the integer is too large");
    return Value::integer(Integer(*real));
}

Value toFloat(Runtime&, const Value& value, const Arguments& arguments) {
    const auto given = arguments.bind("float", {"default"});
    if (value.isNumber()) return Value::real(value.asDouble());
    if (value.is(Type::Undefined)) undefinedError(value);
    if (value.is(Type::String)) {
        if (const auto real = readDouble(value.text())) return Value::real(*real);
    }
    return given[0] ? *given[0] : Value::real(0.0);
}

Value absolute(Runtime&, const Value& value, const Arguments&) {
    if (value.is(Type::Float)) return Value::real(std::abs(value.asDouble()));
    if (value.isInteger()) return value.asInteger() < 0 ? negative(value) : positive(value);
    if (value.is(Type::Undefined)) undefinedError(value);
    typeError("bad operand type for abs(): '" + typeName(value) + "'");
}

// Rounds to `digits` decimals like Python: the nearest decimal of the exact binary value, halves to
// even. printf does the same.
double roundedTo(double value, int64_t digits) {
    if (!std::isfinite(value) || digits > 300) return value;
    if (digits < -308) return 0 * value;
    if (digits >= 0) {
        char buffer[700];
        std::snprintf(buffer, sizeof buffer, "%.*f", int(digits), value);
        return std::strtod(buffer, nullptr);
    }
    const double scale = std::pow(10.0, double(-digits));
    return std::nearbyint(value / scale) * scale;
}

Integer roundedInteger(Integer value, int64_t digits) {
    if (digits >= 0) return value;
    if (digits < -38) return 0;
    Integer scale = 1;
    for (int64_t i = 0; i < -digits; ++i) scale *= 10;
    const Integer half = scale / 2, rest = ((value % scale) + scale) % scale, down = value - rest;
    const bool up = rest > half || (rest == half && (down / scale) % 2 != 0);
    return up ? down + scale : down;
}

Value round(Runtime& runtime, const Value& value, const Arguments& arguments) {
    const auto given = arguments.bind("round", {"precision", "method"});
    const int64_t digits = wholeArgument(given[0], 0);
    const std::string method = given[1] ? str(*given[1]) : "common";
    if (value.is(Type::Undefined)) undefinedError(value);
    if (!value.isNumber())
        typeError("type " + typeName(value) + " doesn't define __round__ method");
    if (method == "common") {
        if (value.isInteger()) return Value::integer(roundedInteger(value.asInteger(), digits));
        return Value::real(roundedTo(value.asDouble(), digits));
    }
    if (method != "ceil" && method != "floor")
        throw RenderError("method must be common, ceil or floor");
    const Value scale =
        binaryOperator(runtime, BinaryOperator::Power, Value::integer(10), Value::integer(digits));
    const double scaled =
        binaryOperator(runtime, BinaryOperator::Multiply, value, scale).asDouble();
    const double whole = method == "ceil" ? std::ceil(scaled) : std::floor(scaled);
    return Value::real(whole / scale.asDouble());
}

Value filesizeformat(Runtime& runtime, const Value& value, const Arguments& arguments) {
    const bool binary = flagArgument(arguments.bind("filesizeformat", {"binary"})[0]);
    Arguments orNone;
    orNone.positional.push_back(Value::none());
    const Value number = toFloat(runtime, value, orNone);
    if (!number.is(Type::Float)) throw RenderError("could not convert to a number: " + repr(value));
    const double bytes = number.asDouble(), base = binary ? 1024 : 1000;
    char buffer[400];
    if (bytes == 1) return Value::string("1 Byte");
    if (bytes < base) return Value::string(formatInteger(Integer(bytes)) + " Bytes");
    constexpr const char* prefixes = "kMGTPEZY";
    double unit = base;
    for (int i = 0; i < 8; ++i) {
        unit *= base;
        if (bytes >= unit && i < 7) continue;
        const char prefix = binary && i == 0 ? 'K' : prefixes[i];
        std::snprintf(buffer, sizeof buffer, "%.1f %c%sB", base * bytes / unit, prefix,
                      binary ? "i" : "");
        break;
    }
    return Value::string(buffer);
}

Value wordwrap(Runtime& runtime, const Value& value, const Arguments& arguments) {
    const auto given =
        arguments.bind("wordwrap", {"width", "break_long_words", "wrapstring", "break_on_hyphens"});
    if (value.is(Type::Undefined)) undefinedError(value);
    if (!value.is(Type::String))
        throw RenderError(reprText(describe(value)) + " has no attribute 'splitlines'");
    const size_t width = size_t(std::max<int64_t>(1, wholeArgument(given[0], 79)));
    const bool breakLong = !given[1] || truthy(*given[1]);
    const std::string between = given[2] && !given[2]->is(Type::None) ? str(*given[2]) : "\n";
    std::string out;
    bool firstLine = true;
    for (const std::string_view paragraph : splitLines(value.text(), false)) {
        std::u32string line;
        const auto flush = [&] {
            while (!line.empty() && line.back() == ' ') line.pop_back();
            if (!line.empty()) {
                out += (firstLine ? "" : between) + toUtf8(line);
                spendOnText(16 + between.size(), out.size());
                firstLine = false;
            }
            line.clear();
        };
        const size_t before = out.size();
        for (const std::string_view piece : splitBy(paragraph, " ", -1, false)) {
            const std::u32string whole = toCodePoints(piece);
            std::u32string_view word = whole;
            const size_t space = line.empty() ? 0 : 1;
            if (line.size() + space + word.size() > width && !line.empty()) flush();
            while (breakLong && word.size() > width) {
                line = word.substr(0, width);
                word.remove_prefix(width);
                flush();
            }
            if (!line.empty()) line += U' ';
            line += word;
        }
        flush();
        if (out.size() == before && !firstLine) out += between;
        spendOnText(16 + between.size(), out.size());
    }
    return runtime.text(std::move(out));
}

Value pretty(Runtime& runtime, const Value& value, const Arguments&) {
    if (!value.is(Type::Dict)) return runtime.text(tracedRepr(value));
    // Python's pformat sorts the keys.
    DictObject sorted;
    auto entries = value.as<DictObject>().entries;
    runtime.charge(int64_t(entries.size()) * 4);
    std::stable_sort(entries.begin(), entries.end(), [](const auto& a, const auto& b) {
        return compare(a.first, b.first, "<") < 0;
    });
    for (auto& [key, item] : entries) sorted.set(key, item);
    return runtime.text(tracedRepr(Value::dict(std::move(sorted))));
}

constexpr FilterRow kTextFilters[] = {
    {"upper", changedText<upper>},
    {"lower", changedText<lower>},
    {"title", changedText<titleWords>},
    {"capitalize", changedText<capitalize>},
    {"trim", trim},
    {"replace", replace},
    {"default", defaulted},
    {"d", defaulted},
    {"tojson", tojson},
    {"string", string},
    {"escape", escaped},
    {"e", escaped},
    {"forceescape", [](Runtime& r, const Value& v,
                       const Arguments&) { return r.text(escapeHtml(tracedStr(v)), true); }},
    {"safe",
     [](Runtime& r, const Value& v, const Arguments&) { return r.text(tracedStr(v), true); }},
    {"format", format},
    {"indent", indent},
    {"center", center},
    {"truncate", truncate},
    {"wordcount", wordcount},
    {"wordwrap", wordwrap},
    {"striptags", striptags},
    {"urlencode", urlencode},
    {"xmlattr", xmlattr},
    {"int", toInteger},
    {"float", toFloat},
    {"abs", absolute},
    {"round", round},
    {"filesizeformat", filesizeformat},
    {"pprint", pretty},
};

}  // namespace

int64_t wholeArgument(const std::optional<Value>& value, int64_t fallback) {
    if (!value || value->is(Type::None)) return fallback;
    if (value->is(Type::Undefined)) undefinedError(*value);
    if (!value->isInteger())
        typeError("'" + typeName(*value) + "' object cannot be interpreted as an integer");
    return int64_t(std::clamp(value->asInteger(), Integer(INT64_MIN), Integer(INT64_MAX)));
}

std::span<const FilterRow> textFilters() {
    return kTextFilters;
}

FilterFunction findFilter(std::string_view name) {
    for (const auto& table : {textFilters(), listFilters()}) {
        for (const FilterRow& row : table) {
            if (row.name == name) return row.filter;
        }
    }
    return nullptr;
}

}  // namespace colibri::jinja
