// SPDX-License-Identifier: Apache-2.0
// Translates Oniguruma (Ruby syntax) to PCRE2. They differ in white space and word characters,
// nested classes and their intersections, (?m), \h, \uHHHH, scripts, {n}+ (not possessive in Ruby).
#include <array>

#include "engine/text/regex.h"

namespace colibri::text {
namespace {

constexpr int kDeepest = 50;  // classes within classes

// The contents of character classes, without [ and ].
constexpr std::string_view kSpace =
    R"(\t-\r\x20\x85\xa0\x{1680}\x{2000}-\x{200a}\x{2028}\x{2029}\x{202f}\x{205f}\x{3000})";
constexpr std::string_view kNotSpace =
    R"(\x00-\x08\x0e-\x1f\x21-\x84\x86-\x9f\x{a1}-\x{167f}\x{1681}-\x{1fff}\x{200b}-\x{2027})"
    R"(\x{202a}-\x{202e}\x{2030}-\x{205e}\x{2060}-\x{2fff}\x{3001}-\x{10ffff})";
constexpr std::string_view kWord = R"(\p{Alphabetic}\p{M}\p{Nd}\p{Pc})";
constexpr std::string_view kHex = "0-9a-fA-F";

struct PosixClass {
    std::string_view name, inside;
};
constexpr std::array<PosixClass, 7> kPosix{{{"alpha", R"(\p{Alphabetic})"},
                                            {"alnum", R"(\p{Alphabetic}\p{Nd})"},
                                            {"digit", R"(\p{Nd})"},
                                            {"upper", R"(\p{Uppercase})"},
                                            {"lower", R"(\p{Lowercase})"},
                                            {"space", kSpace},
                                            {"word", kWord}}};

class Translator {
public:
    explicit Translator(std::string_view pattern) : m_in(pattern) {}

    Result<std::string> run() {
        std::vector<size_t> groups;  // start of each open group in the output
        size_t atom = 0;             // start of the last expression that can be repeated
        while (m_at < m_in.size()) {
            const char c = m_in[m_at];
            if (c == '{' && interval()) {
                repeatInterval(atom);
                continue;
            }
            if (c != '+' && c != '*' && c != '?') atom = m_out.size();
            if (c == '\\') {
                COLIBRI_TRY(escape());
            } else if (c == '[') {
                std::string set;
                COLIBRI_TRY(characterClass(set, 0));
                m_out += set;
            } else if (c == '(') {
                groups.push_back(m_out.size());
                COLIBRI_TRY(openGroup());
            } else {
                if (c == ')' && !groups.empty()) {
                    atom = groups.back();
                    groups.pop_back();
                }
                m_out += c;
                ++m_at;
                // All bytes of a character are one atom.
                while (m_at < m_in.size() && (m_in[m_at] & 0xC0) == 0x80) m_out += m_in[m_at++];
            }
        }
        return std::move(m_out);
    }

private:
    bool next(std::string_view what) const { return m_in.substr(m_at).starts_with(what); }

    Status unsupported(const std::string& what) const {
        return {Code::Unsupported, what + " at byte " + std::to_string(m_at)};
    }

    // Whether {n}, {n,}, {,n} or {n,m} follows.
    bool interval() const {
        size_t at = m_at + 1;
        bool digit = false;
        while (at < m_in.size() &&
               (isdigit(static_cast<unsigned char>(m_in[at])) || m_in[at] == ',')) {
            digit |= m_in[at] != ',';
            ++at;
        }
        return digit && at < m_in.size() && m_in[at] == '}';
    }

    void repeatInterval(size_t atom) {
        const size_t end = m_in.find('}', m_at) + 1;
        std::string text(m_in.substr(m_at, end - m_at));
        if (text.starts_with("{,")) text.insert(1, "0");
        m_at = end;
        m_out += text;
        if (m_at < m_in.size() &&
            m_in[m_at] == '+') {  // "+" repeats the whole and is not possessive
            m_out.insert(atom, "(?:");
            m_out += ")";
        }
    }

    Status openGroup() {
        if (next("(*")) return unsupported("the group \"(*\"");
        if (next("(?C")) return unsupported("the group \"(?C\"");
        m_out += '(';
        ++m_at;
        if (!next("?")) return {};
        m_out += '?';
        ++m_at;
        // (?imx-imx) and (?imx-imx:...): in Ruby, m makes the dot match a newline.
        while (m_at < m_in.size() &&
               std::string_view("imx-").find(m_in[m_at]) != std::string_view::npos) {
            m_out += m_in[m_at] == 'm' ? 's' : m_in[m_at];
            ++m_at;
        }
        return {};
    }

    // In Ruby \p{Han} is the script itself. PCRE2 would include characters that are used with it.
    bool copyScript(std::string_view property, std::string& out) {
        const size_t begin = property.size() > 3 && property[3] == '^' ? 4 : 3;
        if (!property.ends_with('}') || property.size() <= begin + 1) return false;
        const std::string_view name = property.substr(begin, property.size() - begin - 1);
        if (!isScriptName(name)) return false;
        out.append(property.substr(0, begin)).append("sc:").append(name).append("}");
        m_at += property.size();
        return true;
    }

    // Copies \p{...}, \x{...}, \k<...> as a whole, so that their contents are not taken for syntax.
    void copyEscape(std::string& out) {
        const std::string_view rest = m_in.substr(m_at);
        size_t length = 2;
        const char kind = rest.size() > 1 ? rest[1] : '\0';
        if (rest.size() > 2 && rest[2] == '{' &&
            std::string_view("pPx").find(kind) != std::string_view::npos) {
            length = std::min(rest.find('}'), rest.size() - 1) + 1;
            if (kind != 'x' && copyScript(rest.substr(0, length), out)) return;
        } else if (rest.size() > 2 && rest[2] == '<' && (kind == 'k' || kind == 'g')) {
            length = std::min(rest.find('>'), rest.size() - 1) + 1;
        }
        out += rest.substr(0, length);
        m_at += std::min(length, rest.size());
    }

    bool unicodeEscape(std::string& out) {
        if (!next("\\u") || m_at + 6 > m_in.size()) return false;
        const std::string_view digits = m_in.substr(m_at + 2, 4);
        if (digits.find_first_not_of("0123456789abcdefABCDEF") != std::string_view::npos)
            return false;
        out += "\\x{" + std::string(digits) + "}";
        m_at += 6;
        return true;
    }

    Status escape() {
        struct Simple {
            std::string_view from, to;
        };
        static const std::string space = "[" + std::string(kSpace) + "]";
        static const std::string notSpace = "[^" + std::string(kSpace) + "]";
        static const std::string word = "[" + std::string(kWord) + "]";
        static const std::string notWord = "[^" + std::string(kWord) + "]";
        static const std::string edge =
            "(?:(?<=" + word + ")(?!" + word + ")|(?<!" + word + ")(?=" + word + "))";
        static const std::string noEdge =
            "(?:(?<=" + word + ")(?=" + word + ")|(?<!" + word + ")(?!" + word + "))";
        const Simple table[] = {{"\\s", space},         {"\\S", notSpace},      {"\\w", word},
                                {"\\W", notWord},       {"\\b", edge},          {"\\B", noEdge},
                                {"\\h", "[0-9a-fA-F]"}, {"\\H", "[^0-9a-fA-F]"}};
        for (const Simple& entry : table) {
            if (!next(entry.from)) continue;
            m_out += entry.to;
            m_at += 2;
            return {};
        }
        if (next("\\Q") || next("\\E") || next("\\C") || next("\\N")) {
            return unsupported("the escape " + std::string(m_in.substr(m_at, 2)));
        }
        if (!unicodeEscape(m_out)) copyEscape(m_out);
        return {};
    }

    // One operand of "&&" in a class: plain members and nested classes.
    struct Part {
        std::string members;
        std::vector<std::string> nested;

        std::string regex() const {
            std::string all = members.empty() ? "" : "[" + members + "]";
            for (const std::string& set : nested) all += (all.empty() ? "" : "|") + set;
            if (all.empty()) return "(?!)";
            return nested.empty() || (members.empty() && nested.size() == 1) ? all
                                                                             : "(?:" + all + ")";
        }
    };

    // Translates [...] into an expression that matches exactly one character.
    Status characterClass(std::string& out, int depth) {
        if (depth > kDeepest) return unsupported("deeply nested classes");
        const bool negated = next("[^");
        m_at += negated ? 2 : 1;
        std::vector<Part> parts(1);
        bool first = true, afterSet = false;
        for (;; first = false) {
            if (m_at >= m_in.size()) return {Code::BadInput, "unterminated class \"[\""};
            if (m_in[m_at] == ']' && !first) break;
            COLIBRI_TRY(classMember(parts, first, afterSet, depth));
        }
        ++m_at;
        if (parts.size() == 1 && parts[0].nested.empty()) {
            out += (negated ? "[^" : "[") + parts[0].members + "]";
            return {};
        }
        std::string whole;
        for (size_t i = 0; i < parts.size(); ++i) {
            const std::string part = parts[i].regex();
            whole += i + 1 < parts.size() ? "(?=" + part + ")" : part;
        }
        out += negated ? "(?:(?!" + whole + ")[\\x{0}-\\x{10ffff}])" : "(?:" + whole + ")";
        return {};
    }

    // `afterSet`: the previous member was a set, so "-" is a literal.
    Status classMember(std::vector<Part>& parts, bool first, bool& afterSet, int depth) {
        Part& part = parts.back();
        const bool wasSet = afterSet;
        afterSet = false;
        if (next("&&")) {
            m_at += 2;
            parts.emplace_back();
        } else if (next("[:")) {
            return posixClass(part, afterSet);
        } else if (next("[")) {
            std::string nested;
            COLIBRI_TRY(characterClass(nested, depth + 1));
            part.nested.push_back(std::move(nested));
            afterSet = true;
        } else if (next("\\")) {
            classEscape(part, afterSet);
        } else if ((next("-") && wasSet) || (next("]") && first)) {
            part.members += '\\';
            part.members += m_in[m_at++];
        } else {
            part.members += m_in[m_at++];
        }
        return {};
    }

    void classEscape(Part& part, bool& isSet) {
        struct Simple {
            std::string_view from, to;
        };
        constexpr Simple table[] = {
            {"\\s", kSpace}, {"\\S", kNotSpace}, {"\\w", kWord}, {"\\h", kHex}};
        for (const Simple& entry : table) {
            if (!next(entry.from)) continue;
            part.members += entry.to;
            m_at += 2;
            isSet = true;
            return;
        }
        if (next("\\W") || next("\\H")) {
            part.nested.push_back("[^" + std::string(next("\\W") ? kWord : kHex) + "]");
            m_at += 2;
            isSet = true;
            return;
        }
        isSet = next("\\p") || next("\\P") || next("\\d") || next("\\D");
        if (!unicodeEscape(part.members)) copyEscape(part.members);
    }

    Status posixClass(Part& part, bool& isSet) {
        const size_t end = m_in.find(":]", m_at);
        if (end == std::string_view::npos) return unsupported("\"[:\"");
        const std::string_view name = m_in.substr(m_at + 2, end - m_at - 2);
        std::string inside = "[:" + std::string(name) + ":]";
        for (const PosixClass& entry : kPosix) {
            if (entry.name == name) inside = entry.inside;
        }
        part.members += inside;
        m_at = end + 2;
        isSet = true;
        return {};
    }

    std::string_view m_in;
    size_t m_at = 0;
    std::string m_out;
};

}  // namespace

Result<std::string> translateRegex(std::string_view pattern) {
    return Translator(pattern).run();
}

std::string escapeRegex(std::string_view literal) {
    std::string out;
    for (char c : literal) {
        if (std::string_view(R"(\.+*?()|[]{}^$#&-~)").find(c) != std::string_view::npos)
            out += '\\';
        out += c;
    }
    return out;
}

}  // namespace colibri::text
