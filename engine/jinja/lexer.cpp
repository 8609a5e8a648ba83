// SPDX-License-Identifier: Apache-2.0
#include "engine/jinja/lexer.h"

#include <array>
#include <charconv>

#include "engine/jinja/python_text.h"

namespace colibri::jinja {
namespace {

using text::appendUtf8;
using text::nextUtf8;

bool isDigitChar(char c) {
    return c >= '0' && c <= '9';
}

// Converts all line ends to line feeds and drops the last one.
std::string normalized(std::string_view source) {
    std::string out;
    out.reserve(source.size());
    for (size_t i = 0; i < source.size(); ++i) {
        if (source[i] != '\r') {
            out += source[i];
        } else {
            out += '\n';
            if (i + 1 < source.size() && source[i + 1] == '\n') ++i;
        }
    }
    if (out.ends_with('\n')) out.pop_back();
    return out;
}

class Lexer {
public:
    explicit Lexer(std::string_view source) : m_source(normalized(source)), m_text(m_source) {}

    TokenList run() {
        TokenList list;
        try {
            while (m_at < m_text.size()) text();
        } catch (const SyntaxError& error) {
            list.failed = true;
            list.errorAt = error.at;
            list.error = error.what();
        }
        add(TokenType::End, here());
        list.tokens = std::move(m_tokens);
        return list;
    }

private:
    Position here() const { return {m_line, m_column}; }
    char look(size_t ahead = 0) const {
        return m_at + ahead < m_text.size() ? m_text[m_at + ahead] : '\0';
    }
    bool next(std::string_view what) const { return m_text.substr(m_at).starts_with(what); }

    void advance(size_t bytes) {
        for (size_t i = 0; i < bytes; ++i) {
            const char c = m_text[m_at++];
            if (c == '\n') {
                ++m_line;
                m_column = 1;
            } else if ((c & 0xC0) != 0x80) {
                ++m_column;
            }
        }
    }

    void add(TokenType type, Position at, std::string text = {}) {
        m_tokens.push_back({type, at, std::move(text), Value()});
    }

    void skipSpace() {
        while (m_at < m_text.size()) {
            const auto step = nextUtf8(m_text, m_at);
            if (!isSpace(step.code)) break;
            advance(step.bytes);
        }
    }

    // After "%}" and "#}": "-" removes all white space, "+" none, no sign one newline.
    void endTag(char sign) {
        if (sign == '-') {
            const size_t before = m_at;
            skipSpace();
            m_lineStarts = m_at > before && m_text[m_at - 1] == '\n';
        } else {
            m_lineStarts = sign != '+' && look() == '\n';
            if (m_lineStarts) advance(1);
        }
    }

    // Adds the text before the tag at `tag`. The sign of the tag follows its two characters.
    void addData(size_t begin, size_t tag, bool isVariable, Position at) {
        std::string_view data = m_text.substr(begin, tag - begin);
        const char sign = tag + 2 < m_text.size() ? m_text[tag + 2] : '\0';
        if (sign == '-') {
            data = strip(data, Side::Right);
        } else if (sign != '+' && !isVariable) {
            const size_t newline = data.rfind('\n');
            const size_t lineBegin = newline == std::string_view::npos ? 0 : newline + 1;
            if ((lineBegin > 0 || m_lineStarts) &&
                strip(data.substr(lineBegin), Side::Left).empty()) {
                data = data.substr(0, lineBegin);
            }
        }
        if (!data.empty()) add(TokenType::Data, at, std::string(data));
    }

    // The start of the next tag; npos: none.
    size_t findTag() const {
        for (size_t at = m_text.find('{', m_at); at != std::string_view::npos;
             at = m_text.find('{', at + 1)) {
            if (at + 1 < m_text.size() &&
                (m_text[at + 1] == '{' || m_text[at + 1] == '%' || m_text[at + 1] == '#'))
                return at;
        }
        return std::string_view::npos;
    }

    void text() {
        const size_t begin = m_at, tag = findTag();
        const Position at = here();
        if (tag == std::string_view::npos) {
            add(TokenType::Data, at, std::string(m_text.substr(begin)));
            advance(m_text.size() - begin);
            return;
        }
        const char kind = m_text[tag + 1];
        addData(begin, tag, kind == '{', at);
        advance(tag - begin);
        const Position tagAt = here();
        if (kind == '#') return comment(tagAt);
        if (kind == '%' && rawTag()) return;
        advance(2);
        if (look() == '-' || look() == '+') advance(1);
        add(kind == '{' ? TokenType::VariableBegin : TokenType::BlockBegin, tagAt);
        m_lineStarts = false;
        inside(kind == '{');
    }

    void comment(Position at) {
        // The sign belongs to the start of the tag, so "{#-#}" is a complete comment.
        const bool sign = look(2) == '-' || look(2) == '+';
        const size_t end = m_text.find("#}", m_at + (sign ? 3 : 2));
        if (end == std::string_view::npos) throw SyntaxError(at, "Missing end of comment tag");
        const size_t inner = m_at + (sign ? 3 : 2);
        const char last = end > inner ? m_text[end - 1] : '\0';
        advance(end + 2 - m_at);
        endTag(last == '-' || last == '+' ? last : '\0');
    }

    // The length of "{%" sign space NAME space before "%}" or "-%}"; 0 if the text at `at` differs.
    size_t tagLength(size_t at, std::string_view name) const {
        if (!m_text.substr(at).starts_with("{%")) return 0;
        size_t pos = at + 2;
        if (pos < m_text.size() && (m_text[pos] == '-' || m_text[pos] == '+')) ++pos;
        pos = spaceEnd(pos);
        if (!m_text.substr(pos).starts_with(name)) return 0;
        return spaceEnd(pos + name.size()) - at;
    }

    size_t spaceEnd(size_t at) const {
        while (at < m_text.size()) {
            const auto step = nextUtf8(m_text, at);
            if (!isSpace(step.code)) break;
            at += step.bytes;
        }
        return at;
    }

    bool rawTag() {
        const size_t length = tagLength(m_at, "raw");
        if (length == 0) return false;
        const std::string_view rest = m_text.substr(m_at + length);
        if (!rest.starts_with("%}") && !rest.starts_with("-%}")) return false;
        const Position at = here();
        advance(length + (rest[0] == '-' ? 3 : 2));
        if (rest[0] == '-') skipSpace();
        m_lineStarts = m_text[m_at - 1] == '\n';
        const size_t begin = m_at;
        const Position dataAt = here();
        for (size_t tag = m_text.find("{%", m_at); tag != std::string_view::npos;
             tag = m_text.find("{%", tag + 1)) {
            const size_t inner = tagLength(tag, "endraw");
            if (inner == 0) continue;
            const std::string_view end = m_text.substr(tag + inner);
            const bool sign = end.starts_with("-%}") || end.starts_with("+%}");
            if (!sign && !end.starts_with("%}")) continue;
            addData(begin, tag, false, dataAt);
            advance(tag + inner + (sign ? 3 : 2) - m_at);
            endTag(sign ? end[0] : '\0');
            return true;
        }
        throw SyntaxError(at, "Missing end of raw directive");
    }

    void inside(bool variable) {
        std::string open;  // unclosed brackets
        while (m_at < m_text.size()) {
            skipSpace();
            if (m_at >= m_text.size()) return;
            if (open.empty() && endsTag(variable)) return;
            const Position at = here();
            const char c = look();
            if (isDigitChar(c)) {
                number(at);
            } else if (c == '\'' || c == '"') {
                string(at, c);
            } else if (!name(at)) {
                operatorToken(at, open);
            }
        }
    }

    bool endsTag(bool variable) {
        const std::string_view end = variable ? "}}" : "%}";
        const bool sign = look() == '-' || (look() == '+' && !variable);
        if (!m_text.substr(std::min(m_at + (sign ? 1 : 0), m_text.size())).starts_with(end))
            return false;
        const char signChar = sign ? look() : '\0';
        add(variable ? TokenType::VariableEnd : TokenType::BlockEnd, here());
        advance(sign ? 3 : 2);
        if (!variable) {
            endTag(signChar);
        } else {
            m_lineStarts = false;
            if (signChar == '-') endTag('-');
        }
        return true;
    }

    // Skips digits with single underscores between them. Returns the position after them.
    template <typename IsDigit>
    size_t digitsEnd(size_t at, IsDigit isDigit) const {
        while (at < m_text.size()) {
            if (isDigit(m_text[at])) {
                ++at;
            } else if (m_text[at] == '_' && at + 1 < m_text.size() && isDigit(m_text[at + 1])) {
                at += 2;
            } else {
                break;
            }
        }
        return at;
    }

    void number(Position at) {
        const size_t whole = digitsEnd(m_at, isDigitChar);
        size_t end = whole;
        const bool afterDot = m_at > 0 && m_text[m_at - 1] == '.';
        const auto digitAt = [&](size_t pos) {
            return pos < m_text.size() && isDigitChar(m_text[pos]);
        };
        if (!afterDot) {
            if (end < m_text.size() && m_text[end] == '.' && digitAt(end + 1))
                end = digitsEnd(end + 1, isDigitChar);
            if (end < m_text.size() && (m_text[end] | 0x20) == 'e') {
                const size_t sign =
                    end + 1 < m_text.size() && (m_text[end + 1] == '+' || m_text[end + 1] == '-');
                if (digitAt(end + 1 + sign)) end = digitsEnd(end + 1 + sign, isDigitChar);
            }
        }
        if (end > whole) return floating(at, end);
        integer(at);
    }

    void floating(Position at, size_t end) {
        std::string digits(m_text.substr(m_at, end - m_at));
        std::erase(digits, '_');
        double value = 0;
        const auto read = std::from_chars(digits.data(), digits.data() + digits.size(), value);
        if (read.ec == std::errc::result_out_of_range) value = std::strtod(digits.c_str(), nullptr);
        add(TokenType::Float, at, digits);
        m_tokens.back().value = Value::real(value);
        advance(end - m_at);
    }

    void integer(Position at) {
        int base = 10;
        const char mark = char(look(1) | 0x20);
        const auto inBase = [&](char c) {
            if (base == 16) return isxdigit(static_cast<unsigned char>(c)) != 0;
            return c >= '0' && c < '0' + base;
        };
        size_t end = m_at, begin = m_at;
        if (look() == '0' && (mark == 'b' || mark == 'o' || mark == 'x')) {
            base = mark == 'b' ? 2 : mark == 'o' ? 8 : 16;
            begin = m_at + 2 + (look(2) == '_');
            end = digitsEnd(begin, inBase);
            if (end == begin) base = 10;
        }
        if (base == 10) {  // a decimal number that begins with 0 has only zeros
            begin = m_at;
            end = look() == '0' ? digitsEnd(m_at, [](char c) { return c == '0'; })
                                : digitsEnd(m_at, isDigitChar);
        }
        Integer value = 0;
        for (char c : m_text.substr(begin, end - begin)) {
            if (c == '_') continue;
            const int digit = isDigitChar(c) ? c - '0' : (c | 0x20) - 'a' + 10;
            if (__builtin_mul_overflow(value, Integer(base), &value) ||
                __builtin_add_overflow(value, Integer(digit), &value)) {
                throw SyntaxError(at, "the integer is too large");
            }
        }
        add(TokenType::Integer, at, std::string(m_text.substr(m_at, end - m_at)));
        m_tokens.back().value = Value::integer(value);
        advance(end - m_at);
    }

    bool name(Position at) {
        size_t end = m_at;
        while (end < m_text.size()) {
            const auto step = nextUtf8(m_text, end);
            if (!text::isWordCharacter(step.code) && !isNumericCode(step.code)) break;
            end += step.bytes;
        }
        if (end == m_at) return false;
        const std::string_view name = m_text.substr(m_at, end - m_at);
        if (!isIdentifier(name)) throw SyntaxError(at, "Invalid character in identifier");
        add(TokenType::Name, at, std::string(name));
        advance(end - m_at);
        return true;
    }

    void string(Position at, char quote) {
        size_t end = m_at + 1;
        while (end < m_text.size() && m_text[end] != quote) end += m_text[end] == '\\' ? 2 : 1;
        if (end >= m_text.size()) return unexpected(at);
        add(TokenType::String, at, unescaped(m_text.substr(m_at + 1, end - m_at - 1), at));
        advance(end + 1 - m_at);
    }

    [[noreturn]] void unexpected(Position at) const {
        const size_t bytes = nextUtf8(m_text, m_at).bytes;
        throw SyntaxError(at, "unexpected char " + reprText(m_text.substr(m_at, bytes)) + " at " +
                                  std::to_string(codePointCount(m_text.substr(0, m_at))));
    }

    static std::string unescaped(std::string_view text, Position at) {
        std::string out;
        for (size_t i = 0; i < text.size();) {
            if (text[i] != '\\' || i + 1 >= text.size()) {
                out += text[i++];
                continue;
            }
            constexpr std::string_view from = "abfnrtv\\'\"", to = "\a\b\f\n\r\t\v\\'\"";
            const char c = text[i + 1];
            if (const size_t simple = from.find(c); simple != std::string_view::npos) {
                out += to[simple];
                i += 2;
            } else if (c == '\n') {
                i += 2;
            } else if (c >= '0' && c <= '7') {
                i += 1;
                char32_t code = 0;
                for (int n = 0; n < 3 && i < text.size() && text[i] >= '0' && text[i] <= '7'; ++n)
                    code = code * 8 + char32_t(text[i++] - '0');
                appendUtf8(out, code);
            } else if (c == 'x' || c == 'u' || c == 'U') {
                i = hexEscape(text, i, c == 'x' ? 2 : c == 'u' ? 4 : 8, out, at);
            } else if (c == 'N') {
                throw SyntaxError(at, "the escape \\N is not supported");
            } else {
                out += '\\';
                i += 1;
            }
        }
        return out;
    }

    static size_t hexEscape(std::string_view text, size_t i, int digits, std::string& out,
                            Position at) {
        uint32_t code = 0;
        const char* begin = text.data() + i + 2;
        const char* end = begin + digits;
        const bool fits = i + 2 + size_t(digits) <= text.size();
        if (!fits || std::from_chars(begin, end, code, 16).ptr != end || code > 0x10FFFF) {
            throw SyntaxError(at, "truncated \\" + std::string(1, text[i + 1]) + " escape");
        }
        // A surrogate is not a character by itself.
        appendUtf8(out, code >= 0xD800 && code < 0xE000 ? text::kReplacement : char32_t(code));
        return i + 2 + size_t(digits);
    }

    void operatorToken(Position at, std::string& open) {
        constexpr std::array<std::string_view, 26> operators{
            "//", "**", "==", "!=", ">=", "<=", "+", "-", "/", "*", "%", "~", "[",
            "]",  "(",  ")",  "{",  "}",  ">",  "<", "=", ".", ":", "|", ",", ";"};
        for (std::string_view op : operators) {
            if (!next(op)) continue;
            const char c = op[0];
            if (c == '(' || c == '[' || c == '{') open += c == '(' ? ')' : char(c + 2);
            if (c == ')' || c == ']' || c == '}') {
                if (open.empty()) throw SyntaxError(at, "unexpected '" + std::string(op) + "'");
                if (open.back() != c) {
                    throw SyntaxError(
                        at, "unexpected '" + std::string(op) + "', expected '" + open.back() + "'");
                }
                open.pop_back();
            }
            add(TokenType::Operator, at, std::string(op));
            advance(op.size());
            return;
        }
        unexpected(at);
    }

    std::string m_source;
    std::string_view m_text;
    size_t m_at = 0;
    int m_line = 1, m_column = 1;
    bool m_lineStarts = true;  // the text before ended with a newline
    std::vector<Token> m_tokens;
};

}  // namespace

TokenList tokenize(std::string_view source) {
    return Lexer(source).run();
}

std::string describe(const Token& token) {
    switch (token.type) {
        case TokenType::Data:
            return "template data / text";
        case TokenType::BlockBegin:
            return "begin of statement block";
        case TokenType::BlockEnd:
            return "end of statement block";
        case TokenType::VariableBegin:
            return "begin of print statement";
        case TokenType::VariableEnd:
            return "end of print statement";
        case TokenType::String:
            return "string";
        case TokenType::Integer:
            return "integer";
        case TokenType::Float:
            return "float";
        case TokenType::End:
            return "end of template";
        default:
            return token.text;
    }
}

}  // namespace colibri::jinja
