// SPDX-License-Identifier: Apache-2.0
#include "engine/text/normalizers.h"

#include <utf8proc.h>

#include <algorithm>
#include <span>
#include <vector>

#include "engine/text/charsmap.h"
#include "engine/text/regex.h"
#include "engine/text/step_chain.h"
#include "engine/unicode/unicode.h"

namespace colibri::text {
namespace {

using MadeNormalizer = Result<std::unique_ptr<Normalizer>>;

struct CodeRange {
    char32_t first, last;
};

// Characters added after Unicode 9, the version of the reference's normalization, that have a
// decomposition or a combining class. Models were trained on their original form, so they are not
// changed.
constexpr CodeRange kNewer[] = {
    {0x7FD, 0x7FD},     {0x898, 0x89F},     {0x8CA, 0x8D3},     {0x9FE, 0x9FE},
    {0xC3C, 0xC3C},     {0xD3B, 0xD3C},     {0xEBA, 0xEBA},     {0xECE, 0xECE},
    {0x1715, 0x1715},   {0x1ABF, 0x1ACE},   {0x1DF6, 0x1DFA},   {0x32FF, 0x32FF},
    {0xA7F2, 0xA7F4},   {0xA82C, 0xA82C},   {0xAB69, 0xAB69},   {0x10781, 0x10785},
    {0x10787, 0x107B0}, {0x107B2, 0x107BA}, {0x10D24, 0x10D27}, {0x10EAB, 0x10EAC},
    {0x10EFD, 0x10EFF}, {0x10F46, 0x10F50}, {0x10F82, 0x10F85}, {0x11070, 0x11070},
    {0x1133B, 0x1133B}, {0x1145E, 0x1145E}, {0x11839, 0x1183A}, {0x11938, 0x11938},
    {0x1193D, 0x1193E}, {0x11943, 0x11943}, {0x119E0, 0x119E0}, {0x11A34, 0x11A34},
    {0x11A47, 0x11A47}, {0x11A99, 0x11A99}, {0x11D42, 0x11D42}, {0x11D44, 0x11D45},
    {0x11D97, 0x11D97}, {0x11F41, 0x11F42}, {0x16FF0, 0x16FF1}, {0x1E030, 0x1E06D},
    {0x1E08F, 0x1E08F}, {0x1E130, 0x1E136}, {0x1E2AE, 0x1E2AE}, {0x1E2EC, 0x1E2EF},
    {0x1E4EC, 0x1E4EF}, {0x1F16C, 0x1F16C}, {0x1FBF0, 0x1FBF9}};

// The marks among the characters added after Unicode 9.
constexpr CodeRange kNewerMarks[] = {
    {0x7FD, 0x7FD},     {0x898, 0x8D3},     {0x9FE, 0x9FE},     {0xAFA, 0xAFF},
    {0xB55, 0xB55},     {0xC04, 0xC3C},     {0xCF3, 0xD00},     {0xD3B, 0xD3C},
    {0xD81, 0xD81},     {0xEBA, 0xEBA},     {0xECE, 0xECE},     {0x1715, 0x1715},
    {0x180F, 0x180F},   {0x1ABF, 0x1ACE},   {0x1CF7, 0x1CF7},   {0x1DF6, 0x1DFA},
    {0xA82C, 0xA82C},   {0xA8FF, 0xA8FF},   {0x10D24, 0x10D27}, {0x10EAB, 0x10EAC},
    {0x10EFD, 0x10EFF}, {0x10F46, 0x10F85}, {0x11070, 0x11074}, {0x110C2, 0x110C2},
    {0x11145, 0x11146}, {0x111C9, 0x111C9}, {0x111CE, 0x111CF}, {0x11241, 0x11241},
    {0x1133B, 0x1133B}, {0x1145E, 0x1145E}, {0x1182C, 0x1183A}, {0x11930, 0x11943},
    {0x119D1, 0x11A99}, {0x11D31, 0x11D47}, {0x11D8A, 0x11D97}, {0x11EF3, 0x11F42},
    {0x13440, 0x13455}, {0x16F4F, 0x16F4F}, {0x16F7F, 0x16F87}, {0x16FE4, 0x16FF1},
    {0x1CF00, 0x1CF46}, {0x1E08F, 0x1E08F}, {0x1E130, 0x1E136}, {0x1E2AE, 0x1E2EF},
    {0x1E4EC, 0x1E4EF}};

template <size_t count>
bool isIn(const CodeRange (&ranges)[count], char32_t code) {
    const auto after =
        std::upper_bound(std::begin(ranges), std::end(ranges), code,
                         [](char32_t c, const CodeRange& range) { return c < range.first; });
    return after != std::begin(ranges) && code <= std::prev(after)->last;
}

bool isNewer(utf8proc_int32_t code) {
    return isIn(kNewer, char32_t(code));
}

// Normalization forms NFC, NFD, NFKC, NFKD.
class UnicodeForm : public Normalizer {
public:
    explicit UnicodeForm(int options) : m_options(options) {}

    void apply(std::string& text) const override {
        if (isAscii(text)) return;
        std::vector<utf8proc_int32_t> codes = decomposed(text);
        sortMarks(codes);
        text.clear();
        // Newer characters are boundaries: nothing is composed with them or across them.
        for (auto begin = codes.begin(); begin != codes.end();) {
            const auto end = std::find_if(begin, codes.end(), isNewer);
            appendComposed(std::span(begin, end), text);
            begin = end;
            for (; begin != codes.end() && isNewer(*begin); ++begin)
                appendUtf8(text, char32_t(*begin));
        }
    }

private:
    void appendComposed(std::span<utf8proc_int32_t> codes, std::string& out) const {
        auto count = utf8proc_ssize_t(codes.size());
        if (m_options & UTF8PROC_COMPOSE) {
            count = utf8proc_normalize_utf32(codes.data(), count,
                                             utf8proc_option_t(UTF8PROC_COMPOSE | UTF8PROC_STABLE));
        }
        for (utf8proc_ssize_t i = 0; i < count; ++i) appendUtf8(out, char32_t(codes[size_t(i)]));
    }

    std::vector<utf8proc_int32_t> decomposed(const std::string& text) const {
        constexpr int kMost = 32;  // the longest decomposition has 18 characters
        const auto options =
            utf8proc_option_t(UTF8PROC_DECOMPOSE | UTF8PROC_STABLE | (m_options & UTF8PROC_COMPAT));
        std::vector<utf8proc_int32_t> codes;
        codes.reserve(text.size());
        for (size_t at = 0; at < text.size();) {
            const Utf8Step step = nextUtf8(text, at);
            at += step.bytes;
            utf8proc_int32_t parts[kMost];
            int lastBound = 0;
            const auto code = utf8proc_int32_t(step.code);
            const auto count =
                isNewer(code) ? -1
                              : utf8proc_decompose_char(code, parts, kMost, options, &lastBound);
            if (count >= 0 && count <= kMost) {
                codes.insert(codes.end(), parts, parts + count);
            } else {
                codes.push_back(code);
            }
        }
        return codes;
    }

    // Sorts marks into canonical order. utf8proc's sort takes time proportional to the square of
    // the number of consecutive marks.
    static void sortMarks(std::vector<utf8proc_int32_t>& codes) {
        const auto classOf = [](utf8proc_int32_t code) {
            return isNewer(code) ? 0 : utf8proc_get_property(code)->combining_class;
        };
        for (size_t begin = 0; begin < codes.size();) {
            if (classOf(codes[begin]) == 0) {
                ++begin;
                continue;
            }
            size_t end = begin + 1;
            while (end < codes.size() && classOf(codes[end]) != 0) ++end;
            std::stable_sort(codes.begin() + begin, codes.begin() + end,
                             [&](auto a, auto b) { return classOf(a) < classOf(b); });
            begin = end;
        }
    }

    int m_options;
};

// A normalizer that changes each character by itself.
class PerCharacter : public Normalizer {
public:
    using Change = void (*)(char32_t code, std::string& out);
    explicit PerCharacter(Change change) : m_change(change) {}

    void apply(std::string& text) const override {
        std::string out;
        out.reserve(text.size());
        for (size_t at = 0; at < text.size();) {
            const Utf8Step step = nextUtf8(text, at);
            m_change(step.code, out);
            at += step.bytes;
        }
        text = std::move(out);
    }

private:
    Change m_change;
};

void lowerCase(char32_t code, std::string& out) {
    if (code == 0x130) {  // the only character whose lower case has two characters
        out += "i\u0307";
    } else {
        appendUtf8(out, char32_t(utf8proc_tolower(utf8proc_int32_t(code))));
    }
}

void withoutMarks(char32_t code, std::string& out) {
    const bool wasMark = code == 0x1CF2 || code == 0x1CF3;  // in version 9
    const bool mark = wasMark || (isMark(code) && !isIn(kNewerMarks, code));
    if (!mark) appendUtf8(out, code);
}

class ByteLetters : public Normalizer {
public:
    void apply(std::string& text) const override {
        std::string out;
        for (char c : text) appendUtf8(out, byteToLetter(static_cast<unsigned char>(c)));
        text = std::move(out);
    }
};

class StripEnds : public Normalizer {
public:
    StripEnds(bool left, bool right) : m_left(left), m_right(right) {}
    void apply(std::string& text) const override {
        text = std::string(trimWhiteSpace(text, m_left, m_right));
    }

private:
    bool m_left, m_right;
};

class PrependText : public Normalizer {
public:
    explicit PrependText(std::string what) : m_what(std::move(what)) {}
    void apply(std::string& text) const override {
        if (!text.empty()) text.insert(0, m_what);
    }

private:
    std::string m_what;
};

class ReplaceAll : public Normalizer {
public:
    ReplaceAll(Regex pattern, std::string content)
        : m_pattern(std::move(pattern)), m_content(std::move(content)) {}

    void apply(std::string& text) const override {
        std::string out;
        for (const Span& span : m_pattern.spans(text)) {
            out.append(span.match
                           ? std::string_view(m_content)
                           : std::string_view(text).substr(span.begin, span.end - span.begin));
        }
        text = std::move(out);
    }

    double growth() const override { return double(m_content.size()) + 1; }

private:
    Regex m_pattern;
    std::string m_content;
};

class NormalizerChain : public StepChain<Normalizer> {
public:
    using StepChain::StepChain;
    double growth() const override {
        double product = 1;
        for (const auto& step : m_steps) product *= step->growth();
        return product;
    }
};

template <int options>
MadeNormalizer makeForm(const JsonNode&, int) {
    return {std::make_unique<UnicodeForm>(options)};
}

template <PerCharacter::Change change>
MadeNormalizer makePerCharacter(const JsonNode&, int) {
    return {std::make_unique<PerCharacter>(change)};
}

MadeNormalizer makeByteLetters(const JsonNode&, int) {
    return {std::make_unique<ByteLetters>()};
}

MadeNormalizer makeStrip(const JsonNode& node, int) {
    const Result<bool> left = node.flag("strip_left", true), right = node.flag("strip_right", true);
    if (!left) return left.status();
    if (!right) return right.status();
    return {std::make_unique<StripEnds>(*left, *right)};
}

MadeNormalizer makePrepend(const JsonNode& node, int) {
    Result<std::string> what = node.text("prepend");
    if (!what) return what.status();
    return {std::make_unique<PrependText>(std::move(*what))};
}

MadeNormalizer makeReplace(const JsonNode& node, int) {
    Result<Regex> pattern = readPattern(node.at("pattern"));
    if (!pattern) return pattern.status();
    Result<std::string> content = node.text("content");
    if (!content) return content.status();
    return {std::make_unique<ReplaceAll>(std::move(*pattern), std::move(*content))};
}

MadeNormalizer makeCharsmap(const JsonNode& node, int) {
    return Charsmap::make(node);
}

MadeNormalizer makeNormalizerChain(const JsonNode& node, int depth) {
    return makeChain<Normalizer, NormalizerChain>(node, "normalizers", depth, makeNormalizer);
}

// Real tokenizers replace a character by another, which is at most a factor of four.
constexpr double kMostGrowth = 65536;

constexpr int kCompose = UTF8PROC_COMPOSE, kCompat = UTF8PROC_COMPAT;
constexpr StepKind<std::unique_ptr<Normalizer>> kNormalizerKinds[] = {
    {"NFC", makeForm<kCompose>},
    {"NFD", makeForm<0>},
    {"NFKC", makeForm<kCompose | kCompat>},
    {"NFKD", makeForm<kCompat>},
    {"Lowercase", makePerCharacter<lowerCase>},
    {"StripAccents", makePerCharacter<withoutMarks>},
    {"ByteLevel", makeByteLetters},
    {"Strip", makeStrip},
    {"Prepend", makePrepend},
    {"Replace", makeReplace},
    {"Precompiled", makeCharsmap},
    {"Sequence", makeNormalizerChain},
};

}  // namespace

Result<Regex> readPattern(const JsonNode& node) {
    const bool literal = node.has("String");
    if (!literal && !node.has("Regex")) {
        return node.bad("a pattern {\"Regex\": ...} or {\"String\": ...} is expected here");
    }
    Result<std::string> text = node.text(literal ? "String" : "Regex");
    if (!text) return text.status();
    Result<Regex> regex = Regex::compile(literal ? escapeRegex(*text) : *text);
    if (!regex) return regex.status().in(node.where());
    return regex;
}

Result<std::unique_ptr<Normalizer>> makeNormalizer(const JsonNode& node, int depth) {
    MadeNormalizer made = makeStep<std::unique_ptr<Normalizer>>(node, depth, kNormalizerKinds);
    if (made && *made && (*made)->growth() > kMostGrowth) {
        return node.unsupported("replacements that may make a text " +
                                std::to_string(int64_t(kMostGrowth)) + " times as long");
    }
    return made;
}

}  // namespace colibri::text
