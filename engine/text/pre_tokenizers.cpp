// SPDX-License-Identifier: Apache-2.0
#include "engine/text/pre_tokenizers.h"

#include <algorithm>
#include <optional>

#include "engine/text/normalizers.h"
#include "engine/text/regex.h"
#include "engine/text/step_chain.h"
#include "engine/unicode/unicode.h"

namespace colibri::text {
namespace {

using MadePreTokenizer = Result<std::unique_ptr<PreTokenizer>>;

// What happens to the matches of the split pattern.
enum class Behavior { Removed, Isolated, MergedWithPrevious, MergedWithNext, Contiguous };

// Turns matches and the text between them into pieces.
std::vector<Span> kept(std::vector<Span> spans, Behavior behavior) {
    std::vector<Span> out;
    const bool backwards = behavior == Behavior::MergedWithNext;
    if (backwards) std::reverse(spans.begin(), spans.end());
    bool previousMatch = false;
    for (const Span& span : spans) {
        bool merge = false;
        if (behavior == Behavior::Contiguous) {
            merge = span.match == previousMatch && !out.empty();
        } else if (behavior == Behavior::MergedWithPrevious || backwards) {
            merge = span.match && !previousMatch && !out.empty();
        }
        if (merge) {
            (backwards ? out.back().begin : out.back().end) = backwards ? span.begin : span.end;
        } else if (!(behavior == Behavior::Removed && span.match)) {
            out.push_back(span);
        }
        previousMatch = span.match;
    }
    if (backwards) std::reverse(out.begin(), out.end());
    return out;
}

// Matches all single characters for which `wanted` holds.
template <typename Wanted>
std::vector<Span> characterSpans(std::string_view text, Wanted wanted) {
    std::vector<Span> out;
    size_t covered = 0;
    for (size_t at = 0; at < text.size();) {
        const Utf8Step step = nextUtf8(text, at);
        if (wanted(step.code)) {
            if (covered < at) out.push_back({covered, at, false});
            out.push_back({at, at + step.bytes, true});
            covered = at + step.bytes;
        }
        at += step.bytes;
    }
    if (covered < text.size()) out.push_back({covered, text.size(), false});
    return out;
}

// Splits every piece of text. Empty pieces are dropped.
template <typename SpansOf>
void cut(std::vector<Piece>& pieces, Behavior behavior, SpansOf spansOf) {
    std::vector<Piece> out;
    out.reserve(pieces.size());
    for (Piece& piece : pieces) {
        if (piece.id >= 0) {
            out.push_back(std::move(piece));
            continue;
        }
        const std::vector<Span> spans = kept(spansOf(std::string_view(piece.text)), behavior);
        if (spans.size() == 1 && spans[0].begin == 0 && spans[0].end == piece.text.size()) {
            if (!piece.text.empty()) out.push_back(std::move(piece));
            continue;
        }
        for (const Span& span : spans) {
            if (span.begin == span.end) continue;
            out.push_back({piece.text.substr(span.begin, span.end - span.begin), -1,
                           piece.atStart && span.begin == 0});
        }
    }
    pieces = std::move(out);
}

class SplitByRegex : public PreTokenizer {
public:
    SplitByRegex(Regex regex, Behavior behavior, bool invert)
        : m_regex(std::move(regex)), m_behavior(behavior), m_invert(invert) {}

    void apply(std::vector<Piece>& pieces) const override {
        cut(pieces, m_behavior, [this](std::string_view text) {
            std::vector<Span> spans = m_regex.spans(text);
            if (m_invert) {
                for (Span& span : spans) span.match = !span.match;
            }
            return spans;
        });
    }

private:
    Regex m_regex;
    Behavior m_behavior;
    bool m_invert;
};

class SplitByCharacter : public PreTokenizer {
public:
    using Wanted = bool (*)(char32_t);
    SplitByCharacter(Wanted wanted, Behavior behavior) : m_wanted(wanted), m_behavior(behavior) {}

    void apply(std::vector<Piece>& pieces) const override {
        cut(pieces, m_behavior,
            [this](std::string_view text) { return characterSpans(text, m_wanted); });
    }

private:
    Wanted m_wanted;
    Behavior m_behavior;
};

class SplitByDelimiter : public PreTokenizer {
public:
    explicit SplitByDelimiter(char32_t delimiter) : m_delimiter(delimiter) {}
    void apply(std::vector<Piece>& pieces) const override {
        cut(pieces, Behavior::Removed, [this](std::string_view text) {
            return characterSpans(text, [this](char32_t code) { return code == m_delimiter; });
        });
    }

private:
    char32_t m_delimiter;
};

class ByteLevel : public PreTokenizer {
public:
    ByteLevel(bool addPrefixSpace, std::optional<Regex> regex)
        : m_addPrefixSpace(addPrefixSpace), m_regex(std::move(regex)) {}

    void apply(std::vector<Piece>& pieces) const override {
        for (Piece& piece : pieces) {
            if (piece.id < 0 && m_addPrefixSpace && !piece.text.starts_with(' '))
                piece.text.insert(0, " ");
        }
        if (m_regex) {
            cut(pieces, Behavior::Isolated,
                [this](std::string_view text) { return m_regex->spans(text); });
        }
        std::string letters;
        for (Piece& piece : pieces) {
            if (piece.id >= 0) continue;
            letters.clear();
            for (char c : piece.text)
                appendUtf8(letters, byteToLetter(static_cast<unsigned char>(c)));
            piece.text = letters;
        }
    }

private:
    bool m_addPrefixSpace;
    std::optional<Regex> m_regex;
};

// SentencePiece's convention: a visible character replaces spaces and begins each word.
class Metaspace : public PreTokenizer {
public:
    enum class Prepend { Always, First, Never };
    Metaspace(std::string mark, Prepend prepend, bool split)
        : m_mark(std::move(mark)), m_prepend(prepend), m_split(split) {}

    void apply(std::vector<Piece>& pieces) const override {
        for (Piece& piece : pieces) {
            if (piece.id >= 0) continue;
            std::string text;
            for (char c : piece.text) c == ' ' ? text += m_mark : text += c;
            const bool wanted =
                m_prepend == Prepend::Always || (m_prepend == Prepend::First && piece.atStart);
            if (wanted && !text.starts_with(m_mark)) text.insert(0, m_mark);
            piece.text = std::move(text);
        }
        if (!m_split) return;
        const char32_t mark = nextUtf8(m_mark, 0).code;
        cut(pieces, Behavior::MergedWithNext, [mark](std::string_view text) {
            return characterSpans(text, [mark](char32_t code) { return code == mark; });
        });
    }

private:
    std::string m_mark;
    Prepend m_prepend;
    bool m_split;
};

Result<Behavior> readBehavior(const JsonNode& node, std::string fallback) {
    Result<std::string> name =
        fallback.empty() ? node.text("behavior") : node.text("behavior", fallback);
    if (!name) return name.status();
    struct Row {
        std::string_view name;
        Behavior behavior;
    };
    constexpr Row rows[] = {{"Removed", Behavior::Removed},
                            {"Isolated", Behavior::Isolated},
                            {"MergedWithPrevious", Behavior::MergedWithPrevious},
                            {"MergedWithNext", Behavior::MergedWithNext},
                            {"Contiguous", Behavior::Contiguous}};
    for (const Row& row : rows) {
        if (row.name == *name) return row.behavior;
    }
    return node.bad("unknown behavior \"" + *name + "\"");
}

MadePreTokenizer makeSplit(const JsonNode& node, int) {
    Result<Regex> regex = readPattern(node.at("pattern"));
    if (!regex) return regex.status();
    const Result<Behavior> behavior = readBehavior(node, "");
    if (!behavior) return behavior.status();
    const Result<bool> invert = node.flag("invert", false);
    if (!invert) return invert.status();
    return {std::make_unique<SplitByRegex>(std::move(*regex), *behavior, *invert)};
}

MadePreTokenizer makeByteLevel(const JsonNode& node, int) {
    const Result<bool> space = node.flag("add_prefix_space", true);
    if (!space) return space.status();
    const Result<bool> split = node.flag("use_regex", true);
    if (!split) return split.status();
    std::optional<Regex> regex;
    if (*split) {
        Result<Regex> gpt2 = Regex::compile(
            R"('s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+)");
        if (!gpt2) return gpt2.status();
        regex = std::move(*gpt2);
    }
    return {std::make_unique<ByteLevel>(*space, std::move(regex))};
}

MadePreTokenizer makeDigits(const JsonNode& node, int) {
    const Result<bool> single = node.flag("individual_digits", false);
    if (!single) return single.status();
    return {std::make_unique<SplitByCharacter>(
        isNumeric, *single ? Behavior::Isolated : Behavior::Contiguous)};
}

MadePreTokenizer makePunctuation(const JsonNode& node, int) {
    const Result<Behavior> behavior = readBehavior(node, "Isolated");
    if (!behavior) return behavior.status();
    return {std::make_unique<SplitByCharacter>(isPunctuation, *behavior)};
}

MadePreTokenizer makeWhitespace(const JsonNode&, int) {
    // Unlike in the patterns of Split, joiners are word characters here.
    Result<Regex> words = Regex::compile(R"([\w\x{200c}\x{200d}]+|[^\w\s\x{200c}\x{200d}]+)");
    if (!words) return words.status();
    return {std::make_unique<SplitByRegex>(std::move(*words), Behavior::Removed, true)};
}

MadePreTokenizer makeWhitespaceSplit(const JsonNode&, int) {
    return {std::make_unique<SplitByCharacter>(isWhiteSpace, Behavior::Removed)};
}

// Reads a string of exactly one character.
Result<std::string> readCharacter(const JsonNode& node, const char* key) {
    Result<std::string> text = node.text(key);
    if (text && (text->empty() || nextUtf8(*text, 0).bytes != text->size())) {
        return node.at(key).bad("one character is expected here");
    }
    return text;
}

MadePreTokenizer makeDelimiter(const JsonNode& node, int) {
    const Result<std::string> delimiter = readCharacter(node, "delimiter");
    if (!delimiter) return delimiter.status();
    return {std::make_unique<SplitByDelimiter>(nextUtf8(*delimiter, 0).code)};
}

MadePreTokenizer makeMetaspace(const JsonNode& node, int) {
    Result<std::string> mark = readCharacter(node, "replacement");
    if (!mark) return mark.status();
    const Result<bool> addPrefix = node.flag("add_prefix_space", true);  // the older key
    if (!addPrefix) return addPrefix.status();
    const Result<std::string> scheme = node.text("prepend_scheme", *addPrefix ? "always" : "never");
    if (!scheme) return scheme.status();
    const Result<bool> split = node.flag("split", true);
    if (!split) return split.status();
    Metaspace::Prepend prepend = Metaspace::Prepend::Always;
    if (*scheme == "first") {
        prepend = Metaspace::Prepend::First;
    } else if (*scheme == "never") {
        prepend = Metaspace::Prepend::Never;
    } else if (*scheme != "always") {
        return node.bad("unknown prepend_scheme \"" + *scheme + "\"");
    }
    return {std::make_unique<Metaspace>(std::move(*mark), prepend, *split)};
}

MadePreTokenizer makePreTokenizerChain(const JsonNode& node, int depth) {
    return makeChain<PreTokenizer>(node, "pretokenizers", depth, makePreTokenizer);
}

constexpr StepKind<std::unique_ptr<PreTokenizer>> kPreTokenizerKinds[] = {
    {"ByteLevel", makeByteLevel},
    {"Split", makeSplit},
    {"Digits", makeDigits},
    {"Punctuation", makePunctuation},
    {"Whitespace", makeWhitespace},
    {"WhitespaceSplit", makeWhitespaceSplit},
    {"CharDelimiterSplit", makeDelimiter},
    {"Metaspace", makeMetaspace},
    {"Sequence", makePreTokenizerChain},
};

}  // namespace

Result<std::unique_ptr<PreTokenizer>> makePreTokenizer(const JsonNode& node, int depth) {
    return makeStep<std::unique_ptr<PreTokenizer>>(node, depth, kPreTokenizerKinds);
}

}  // namespace colibri::text
