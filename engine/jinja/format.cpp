// SPDX-License-Identifier: Apache-2.0
// Implements "%5.2f" % x and "{:>5}".format(x).
#include <algorithm>
#include <cmath>

#include "engine/jinja/machine.h"
#include "engine/jinja/python_text.h"

namespace colibri::jinja {
namespace {

constexpr int kWidest = 100'000;

// A conversion specification of either notation.
struct Spec {
    std::string fill = " ";
    char align = 0;   // < > ^ =; 0: the default of the type
    char sign = '-';  // -, + or space
    bool alternate = false, zero = false;
    char grouping = 0;  // , or _
    int width = 0, precision = -1;
    char type = 0;
};

std::string aligned(Runtime& runtime, const std::string& sign, const std::string& body,
                    const Spec& spec, char ownAlign) {
    const int length = int(codePointCount(std::string_view(body)) + sign.size());
    const int missing = std::max(0, spec.width - length);
    runtime.chargeBytes(sign.size() + body.size() + size_t(missing) * spec.fill.size());
    const auto fill = [&](int count) {
        std::string out;
        for (int i = 0; i < count; ++i) out += spec.fill;
        return out;
    };
    switch (spec.align ? spec.align : ownAlign) {
        case '<':
            return sign + body + fill(missing);
        case '^':
            return fill(missing / 2) + sign + body + fill(missing - missing / 2);
        case '=':
            return sign + fill(missing) + body;
        default:
            return fill(missing) + sign + body;
    }
}

std::string signOf(bool negative, char wanted) {
    return negative ? "-" : wanted == '-' ? "" : std::string(1, wanted);
}

std::string grouped(const std::string& digits, char mark, size_t every) {
    if (!mark) return digits;
    const size_t whole =
        std::min(digits.find_first_not_of("0123456789abcdefABCDEF"), digits.size());
    std::string out;
    for (size_t i = 0; i < whole; ++i) {
        if (i > 0 && (whole - i) % every == 0) out += mark;
        out += digits[i];
    }
    return out + digits.substr(whole);
}

std::string magnitude(Integer value, int base, bool upperCase) {
    unsigned __int128 rest =
        value < 0 ? -static_cast<unsigned __int128>(value) : static_cast<unsigned __int128>(value);
    const char* digits = upperCase ? "0123456789ABCDEF" : "0123456789abcdef";
    std::string out;
    do {
        out += digits[int(rest % unsigned(base))];
        rest /= unsigned(base);
    } while (rest > 0);
    std::reverse(out.begin(), out.end());
    return out;
}

std::string formatSpecInteger(Runtime& runtime, Integer value, const Spec& spec) {
    const char type = spec.type ? spec.type : 'd';
    const int base = type == 'x' || type == 'X' ? 16 : type == 'o' ? 8 : type == 'b' ? 2 : 10;
    std::string digits = magnitude(value, base, type == 'X');
    if (spec.precision > int(digits.size()))
        digits.insert(0, size_t(spec.precision) - digits.size(), '0');
    digits = grouped(digits, spec.grouping, base == 10 ? 3 : 4);
    std::string sign = signOf(value < 0, spec.sign);
    if (spec.alternate && base != 10) sign += std::string("0") + type;
    return aligned(runtime, sign, digits, spec, '>');
}

std::string formatFloat(Runtime& runtime, double value, const Spec& spec) {
    const bool percent = spec.type == '%';
    const char type = percent ? 'f' : spec.type ? spec.type : 'g';
    const double size = std::abs(percent ? value * 100 : value);
    std::string digits;
    if (!std::isfinite(size)) {
        digits = std::isnan(size) ? "nan" : "inf";
        if (type == 'F' || type == 'E' || type == 'G') digits = upper(digits);
    } else if (!spec.type && spec.precision < 0) {
        digits = formatDouble(size);
    } else {
        const int precision = spec.precision < 0 ? 6 : spec.precision;
        const char format[] = {'%',
                               spec.alternate ? '#' : '.',
                               spec.alternate ? '.' : '*',
                               spec.alternate ? '*' : type,
                               spec.alternate ? type : '\0',
                               '\0'};
        std::string buffer(size_t(precision) + 400, '\0');
        const int written = std::snprintf(buffer.data(), buffer.size(), format, precision, size);
        digits = buffer.substr(0, size_t(std::clamp(written, 0, int(buffer.size()) - 1)));
        if (!spec.type && digits.find_first_of(".en") == std::string::npos) digits += ".0";
    }
    digits = grouped(digits, spec.grouping, 3);
    if (percent) digits += '%';
    return aligned(runtime, signOf(std::signbit(value) && !std::isnan(value), spec.sign), digits,
                   spec, '>');
}

std::string formatText(Runtime& runtime, std::string text, const Spec& spec) {
    if (spec.precision >= 0) {
        const std::u32string codes = toCodePoints(text);
        text = toUtf8(std::u32string_view(codes).substr(0, size_t(spec.precision)));
    }
    return aligned(runtime, "", text, spec, '<');
}

std::string asciiOnly(const std::string& text) {
    std::string out;
    char buffer[16];
    for (char32_t code : toCodePoints(text)) {
        if (code < 0x80) {
            out += char(code);
            continue;
        }
        std::snprintf(buffer, sizeof buffer,
                      code <= 0xFF     ? "\\x%02x"
                      : code <= 0xFFFF ? "\\u%04x"
                                       : "\\U%08x",
                      unsigned(code));
        out += buffer;
    }
    return out;
}

int readNumber(const std::string& text, size_t& at) {
    int value = 0;
    while (at < text.size() && text[at] >= '0' && text[at] <= '9') {
        value = value * 10 + (text[at++] - '0');
        if (value > kWidest) throw RenderError("the width or precision of a format is too large");
    }
    return value;
}

Integer wholeNumber(const Value& value, char type) {
    if (value.isInteger()) return value.asInteger();
    const bool decimal = type == 'd' || type == 'i' || type == 'u';
    if (decimal && value.is(Type::Float) && std::abs(value.asDouble()) < 1e36)
        return Integer(value.asDouble());
    if (value.is(Type::Undefined)) undefinedError(value);
    typeError(std::string("%") + type + " format: " + (decimal ? "a real number" : "an integer") +
              " is required, not " + typeName(value));
}

// Supplies the values of a % format, by position or by name.
class PercentValues {
public:
    explicit PercentValues(const Value& values) : m_values(values) {}

    Value next() {
        if (!m_values.is(Type::Tuple)) {
            if (m_next++ > 0) typeError("not enough arguments for format string");
            return m_values;
        }
        if (m_next >= m_values.items().size()) typeError("not enough arguments for format string");
        return m_values.items()[m_next++];
    }

    Value named(const std::string& name) {
        if (!m_values.is(Type::Dict)) typeError("format requires a mapping");
        m_named = true;
        const Value* found = m_values.as<DictObject>().find(name);
        if (!found) throw RenderError(reprText(name));
        return *found;
    }

    void checkAllUsed() const {
        const bool free = m_named || m_values.is(Type::Dict) || m_values.is(Type::List) ||
                          m_values.is(Type::Undefined);
        const size_t count = m_values.is(Type::Tuple) ? m_values.items().size() : 1;
        if (!free && m_next < count)
            typeError("not all arguments converted during string formatting");
    }

private:
    const Value& m_values;
    size_t m_next = 0;
    bool m_named = false;
};

std::string converted(Runtime& runtime, const Value& value, Spec& spec, bool escape) {
    switch (spec.type) {
        case 'd':
        case 'i':
        case 'u':
        case 'x':
        case 'X':
        case 'o': {
            const Integer whole = wholeNumber(value, spec.type);
            if (spec.zero && !spec.align) {
                spec.fill = "0";
                spec.align = '=';
            }
            if (spec.type == 'i' || spec.type == 'u') spec.type = 'd';
            return formatSpecInteger(runtime, whole, spec);
        }
        case 'e':
        case 'E':
        case 'f':
        case 'F':
        case 'g':
        case 'G':
            if (value.is(Type::Undefined)) undefinedError(value);
            if (!value.isNumber()) typeError("must be real number, not " + typeName(value));
            if (spec.zero && !spec.align) {
                spec.fill = "0";
                spec.align = '=';
            }
            return formatFloat(runtime, value.asDouble(), spec);
        case 'c':
            if (value.is(Type::String) && codePointCount(value.as<StringObject>()) == 1) {
                if (!spec.align) spec.align = '>';
                return formatText(runtime, value.text(), spec);
            }
            if (value.isInteger() && value.asInteger() >= 0 && value.asInteger() < 0x110000) {
                std::string one;
                text::appendUtf8(one, char32_t(value.asInteger()));
                return formatText(runtime, one, spec);
            }
            typeError("%c requires int or char");
        case 's':
        case 'r':
        case 'a': {
            std::string text = spec.type == 's' ? str(value) : repr(value);
            if (spec.type == 'a') text = asciiOnly(text);
            if (escape &&
                !(spec.type == 's' && value.is(Type::String) && value.as<StringObject>().safe))
                text = escapeHtml(text);
            if (!spec.align) spec.align = '>';
            return formatText(runtime, std::move(text), spec);
        }
        default:
            throw RenderError("unsupported format character " +
                              reprText(std::string(1, spec.type)));
    }
}

// Reads one conversion, %(key)flags width.precision type, starting after the '%'. Sets `value` if
// the conversion has a key.
class PercentConversion {
public:
    PercentConversion(const std::string& format, size_t& at, PercentValues& source)
        : m_format(format), m_at(at), m_source(source) {}

    Spec read(std::optional<Value>& value) {
        if (here() == '(') {
            const size_t end = m_format.find(')', m_at);
            if (end == std::string::npos) throw RenderError("incomplete format key");
            value = m_source.named(m_format.substr(m_at + 1, end - m_at - 1));
            m_at = end + 1;
        }
        Spec spec;
        readFlags(spec);
        spec.width = number();
        if (spec.width < 0) {
            spec.align = '<';
            spec.width = -spec.width;
        }
        if (here() == '.') {
            ++m_at;
            spec.precision = std::max(0, number());
        }
        while (here() == 'l' || here() == 'h' || here() == 'L') ++m_at;
        if (m_at >= m_format.size()) throw RenderError("incomplete format");
        spec.type = m_format[m_at++];
        return spec;
    }

private:
    // 0 at the end. A null character in the format is not valid in a conversion either.
    char here() const { return m_at < m_format.size() ? m_format[m_at] : '\0'; }

    void readFlags(Spec& spec) {
        for (;; ++m_at) {
            switch (here()) {
                case '#':
                    spec.alternate = true;
                    break;
                case '0':
                    spec.zero = true;
                    break;
                case '-':
                    spec.align = '<';
                    break;
                case ' ':
                    if (spec.sign == '-') spec.sign = ' ';
                    break;
                case '+':
                    spec.sign = '+';
                    break;
                default:
                    return;
            }
        }
    }

    int number() {
        if (here() != '*') return readNumber(m_format, m_at);
        ++m_at;
        const Value given = m_source.next();
        if (!given.isInteger()) typeError("* wants int");
        if (given.asInteger() > kWidest || given.asInteger() < -kWidest)
            throw RenderError("the width or precision of a format is too large");
        return int(given.asInteger());
    }

    const std::string& m_format;
    size_t& m_at;
    PercentValues& m_source;
};

}  // namespace

TracedText percentFormat(Runtime& runtime, const TracedText& traced, const Value& values,
                         bool escape) {
    const std::string& format = traced.text;
    PercentValues source(values);
    TracedText out;
    for (size_t at = 0; at < format.size();) {
        if (format[at] != '%') {
            const size_t end = std::min(format.find('%', at), format.size());
            out.append(traced, at, end);
            at = end;
            continue;
        }
        ++at;
        std::optional<Value> value;
        Spec spec = PercentConversion(format, at, source).read(value);
        if (spec.type == '%') {
            out.append(traced, at - 1, at);
            continue;
        }
        if (!value) value = source.next();
        out.append(converted(runtime, *value, spec, escape), hasData(*value));
        spendOnText(16, out.text.size());
    }
    source.checkAllUsed();
    return out;
}

namespace {

class BraceFormatter {
public:
    BraceFormatter(Runtime& runtime, const Arguments& arguments)
        : m_runtime(runtime), m_arguments(arguments) {}

    TracedText run(const TracedText& traced, int depth) {
        if (depth > 2) throw RenderError("Max string recursion exceeded");
        const std::string& format = traced.text;
        TracedText out;
        for (size_t at = 0; at < format.size();) {
            const char c = format[at];
            if ((c == '{' || c == '}') && at + 1 < format.size() && format[at + 1] == c) {
                out.append(traced, at, at + 1);
                at += 2;
            } else if (c == '}') {
                throw RenderError("Single '}' encountered in format string");
            } else if (c == '{') {
                const size_t end = fieldEnd(format, at + 1);
                out.append(field(traced.slice(at + 1, end), depth));
                spendOnText(16 + end - at, out.text.size());
                at = end + 1;
            } else {
                const size_t end = std::min(format.find_first_of("{}", at), format.size());
                out.append(traced, at, end);
                at = end;
            }
        }
        return out;
    }

private:
    static size_t fieldEnd(const std::string& format, size_t at) {
        int open = 1;
        for (; at < format.size(); ++at) {
            if (format[at] == '{') ++open;
            if (format[at] == '}' && --open == 0) return at;
        }
        throw RenderError("expected '}' before end of string");
    }

    TracedText field(const TracedText& traced, int depth) {
        const std::string& text = traced.text;
        const size_t nameEnd = std::min(text.find_first_of("!:"), text.size());
        Value value = lookUp(text.substr(0, nameEnd));
        size_t at = nameEnd;
        if (at < text.size() && text[at] == '!') {
            const char how = at + 1 < text.size() ? text[at + 1] : '\0';
            if (how == 's') {
                value = Value::string(tracedStr(value));
            } else if (how == 'r') {
                value = Value::string(tracedRepr(value));
            } else if (how == 'a') {
                value = Value::string(TracedText(asciiOnly(repr(value)), hasData(value)));
            } else {
                throw RenderError("Unknown conversion specifier");
            }
            at += 2;
        }
        if (at < text.size() && text[at] != ':')
            throw RenderError("expected ':' after conversion specifier");
        if (at >= text.size()) return tracedStr(value);
        const TracedText spec = run(traced.slice(at + 1, text.size()), depth + 1);
        if (spec.text.empty()) return tracedStr(value);
        return TracedText(formatted(value, spec.text), hasData(value) || spec.hasData());
    }

    Value lookUp(const std::string& name) {
        const size_t end = std::min(name.find_first_of(".["), name.size());
        Value value = argument(name.substr(0, end));
        for (size_t at = end; at < name.size();) {
            if (name[at] == '.') {
                const size_t stop = std::min(name.find_first_of(".[", at + 1), name.size());
                value = m_runtime.attribute(value, name.substr(at + 1, stop - at - 1));
                at = stop;
            } else {
                const size_t stop = name.find(']', at);
                if (stop == std::string::npos) throw RenderError("Missing ']' in format string");
                const std::string key = name.substr(at + 1, stop - at - 1);
                value = m_runtime.item(
                    value, isNumber(key) ? Value::integer(std::stoll(key)) : Value::string(key));
                at = stop + 1;
            }
        }
        return value;
    }

    static bool isNumber(const std::string& text) {
        return !text.empty() && text.size() < 10 &&
               text.find_first_not_of("0123456789") == std::string::npos;
    }

    Value argument(const std::string& name) {
        size_t index = m_next;
        if (name.empty()) {
            ++m_next;
        } else if (isNumber(name)) {
            index = size_t(std::stoll(name));
        } else {
            const Value* found = m_arguments.find(name);
            if (!found) throw RenderError(reprText(name));
            return *found;
        }
        if (index >= m_arguments.positional.size()) {
            throw RenderError("Replacement index " + std::to_string(index) +
                              " out of range for positional args tuple");
        }
        return m_arguments.positional[index];
    }

    static Spec parseSpec(const std::string& text) {
        Spec spec;
        size_t at = 0;
        const auto isAlign = [](char c) { return c == '<' || c == '>' || c == '^' || c == '='; };
        const size_t first = text.empty() ? 0 : text::nextUtf8(text, 0).bytes;
        if (first < text.size() && isAlign(text[first])) {
            spec.fill = text.substr(0, first);
            spec.align = text[first];
            at = first + 1;
        } else if (!text.empty() && isAlign(text[0])) {
            spec.align = text[at++];
        }
        if (at < text.size() && (text[at] == '+' || text[at] == '-' || text[at] == ' '))
            spec.sign = text[at++];
        if (at < text.size() && text[at] == '#') spec.alternate = ++at > 0;
        if (at < text.size() && text[at] == '0') {
            spec.zero = true;
            ++at;
        }
        spec.width = readNumber(text, at);
        if (at < text.size() && (text[at] == ',' || text[at] == '_')) spec.grouping = text[at++];
        if (at < text.size() && text[at] == '.') {
            ++at;
            spec.precision = readNumber(text, at);
        }
        if (at < text.size()) spec.type = text[at++];
        if (at < text.size()) throw RenderError("Invalid format specifier");
        return spec;
    }

    std::string formatted(const Value& value, const std::string& specText) {
        Spec spec = parseSpec(specText);
        const bool number = value.isNumber() && !(value.is(Type::Bool) && spec.type == 0);
        if (spec.zero && !spec.align) {
            spec.fill = "0";
            spec.align = number ? '=' : '<';
        }
        if (number) {
            const bool asFloat =
                spec.type && std::string_view("eEfFgG%").find(spec.type) != std::string_view::npos;
            if (asFloat || value.is(Type::Float)) {
                if (spec.type && !asFloat) unknownCode(value, spec);
                return formatFloat(m_runtime, value.asDouble(), spec);
            }
            if (spec.type && std::string_view("dxXob").find(spec.type) == std::string_view::npos)
                unknownCode(value, spec);
            if (spec.precision >= 0)
                throw RenderError("Precision not allowed in integer format specifier");
            return formatSpecInteger(m_runtime, value.asInteger(), spec);
        }
        if (value.is(Type::Undefined)) undefinedError(value);
        if (!value.is(Type::String) && !value.is(Type::Bool)) {
            typeError("unsupported format string passed to " + typeName(value) + ".__format__");
        }
        if (spec.type && spec.type != 's') unknownCode(value, spec);
        return formatText(m_runtime, str(value), spec);
    }

    [[noreturn]] static void unknownCode(const Value& value, const Spec& spec) {
        throw RenderError("Unknown format code " + reprText(std::string(1, spec.type)) +
                          " for object of type '" + typeName(value) + "'");
    }

    Runtime& m_runtime;
    const Arguments& m_arguments;
    size_t m_next = 0;
};

}  // namespace

TracedText braceFormat(Runtime& runtime, const TracedText& format, const Arguments& arguments) {
    return BraceFormatter(runtime, arguments).run(format, 0);
}

std::string escapeHtml(std::string_view text) {
    spend(text.size() / 8);
    std::string out;
    for (char c : text) {
        switch (c) {
            case '&':
                out += "&amp;";
                break;
            case '<':
                out += "&lt;";
                break;
            case '>':
                out += "&gt;";
                break;
            case '"':
                out += "&#34;";
                break;
            case '\'':
                out += "&#39;";
                break;
            default:
                out += c;
        }
    }
    return out;
}

TracedText escapeHtml(const TracedText& text) {
    return TracedText(escapeHtml(text.text), text.hasData());
}

}  // namespace colibri::jinja
