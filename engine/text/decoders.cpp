// SPDX-License-Identifier: Apache-2.0
#include "engine/text/decoders.h"

#include "engine/text/normalizers.h"
#include "engine/text/regex.h"
#include "engine/text/step_chain.h"
#include "engine/unicode/unicode.h"

namespace colibri::text {
namespace {

using MadeDecoder = Result<std::unique_ptr<Decoder>>;

class ByteLevelDecoder : public Decoder {
public:
    void apply(std::vector<DecodedToken>& tokens, bool) const override {
        for (DecodedToken& token : tokens) {
            if (token.added) continue;
            std::string bytes;
            bool all = true;
            for (size_t at = 0; at < token.text.size() && all;) {
                const Utf8Step step = nextUtf8(token.text, at);
                const int byte = step.valid ? letterToByte(step.code) : -1;
                all = byte >= 0;
                bytes += char(byte);
                at += step.bytes;
            }
            if (all) token.text = std::move(bytes);  // otherwise the text stays as it is
        }
    }
};

class ByteFallbackDecoder : public Decoder {
public:
    void apply(std::vector<DecodedToken>& tokens, bool) const override {
        for (DecodedToken& token : tokens) {
            const std::string& text = token.text;
            if (text.size() != 6 || !text.starts_with("<0x") || text[5] != '>') continue;
            const int high = hexDigit(text[3]), low = hexDigit(text[4]);
            if (high >= 0 && low >= 0) token.text = std::string(1, char(high << 4 | low));
        }
    }

private:
    static int hexDigit(char c) {
        if (c >= '0' && c <= '9') return c - '0';
        if (c >= 'A' && c <= 'F') return c - 'A' + 10;
        return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
    }
};

class ReplaceDecoder : public Decoder {
public:
    ReplaceDecoder(Regex pattern, std::string content)
        : m_pattern(std::move(pattern)), m_content(std::move(content)) {}

    void apply(std::vector<DecodedToken>& tokens, bool) const override {
        for (DecodedToken& token : tokens) {
            if (!isValidUtf8(token.text)) continue;  // byte of a longer character
            std::string out;
            for (const Span& span : m_pattern.spans(token.text)) {
                out +=
                    span.match ? m_content : token.text.substr(span.begin, span.end - span.begin);
            }
            token.text = std::move(out);
        }
    }

private:
    Regex m_pattern;
    std::string m_content;
};

class FuseDecoder : public Decoder {
public:
    void apply(std::vector<DecodedToken>& tokens, bool) const override {
        DecodedToken all;
        for (const DecodedToken& token : tokens) all.text += token.text;
        tokens.assign(1, std::move(all));
    }
};

class StripDecoder : public Decoder {
public:
    StripDecoder(std::string content, size_t start, size_t stop)
        : m_content(std::move(content)), m_start(start), m_stop(stop) {}

    void apply(std::vector<DecodedToken>& tokens, bool atStart) const override {
        if (!atStart) return;
        for (DecodedToken& token : tokens) {
            std::string_view text = token.text;
            for (size_t i = 0; i < m_start && text.starts_with(m_content); ++i) {
                text.remove_prefix(m_content.size());
            }
            for (size_t i = 0; i < m_stop && text.ends_with(m_content); ++i) {
                text.remove_suffix(m_content.size());
            }
            token.text = std::string(text);
        }
    }

private:
    std::string m_content;
    size_t m_start, m_stop;
};

class MetaspaceDecoder : public Decoder {
public:
    MetaspaceDecoder(std::string mark, bool prepended)
        : m_mark(std::move(mark)), m_prepended(prepended) {}

    void apply(std::vector<DecodedToken>& tokens, bool atStart) const override {
        bool first = atStart;
        for (DecodedToken& token : tokens) {
            std::string out;
            for (size_t at = 0; at < token.text.size();) {
                if (!std::string_view(token.text).substr(at).starts_with(m_mark)) {
                    out += token.text[at++];
                    continue;
                }
                if (!(first && m_prepended)) out += ' ';
                at += m_mark.size();
            }
            first = false;
            token.text = std::move(out);
        }
    }

private:
    std::string m_mark;
    bool m_prepended;
};

template <typename Step>
MadeDecoder makeSimple(const JsonNode&, int) {
    return {std::make_unique<Step>()};
}

MadeDecoder makeReplaceDecoder(const JsonNode& node, int) {
    Result<Regex> pattern = readPattern(node.at("pattern"));
    if (!pattern) return pattern.status();
    Result<std::string> content = node.text("content");
    if (!content) return content.status();
    return {std::make_unique<ReplaceDecoder>(std::move(*pattern), std::move(*content))};
}

MadeDecoder makeStripDecoder(const JsonNode& node, int) {
    Result<std::string> content = node.text("content");
    if (!content) return content.status();
    const Result<int64_t> start = node.integer("start", 0), stop = node.integer("stop", 0);
    if (!start) return start.status();
    if (!stop) return stop.status();
    if (content->empty() || *start < 0 || *stop < 0)
        return node.bad("the content or the number of characters to strip is invalid");
    return {std::make_unique<StripDecoder>(std::move(*content), size_t(*start), size_t(*stop))};
}

MadeDecoder makeMetaspaceDecoder(const JsonNode& node, int) {
    Result<std::string> mark = node.text("replacement");
    if (!mark) return mark.status();
    const Result<bool> addPrefix = node.flag("add_prefix_space", true);
    if (!addPrefix) return addPrefix.status();
    const Result<std::string> scheme = node.text("prepend_scheme", *addPrefix ? "always" : "never");
    if (!scheme) return scheme.status();
    if (mark->empty()) return node.bad("replacement is empty");
    return {std::make_unique<MetaspaceDecoder>(std::move(*mark), *scheme != "never")};
}

MadeDecoder makeDecoderChain(const JsonNode& node, int depth) {
    return makeChain<Decoder>(node, "decoders", depth, makeDecoder);
}

constexpr StepKind<std::unique_ptr<Decoder>> kDecoderKinds[] = {
    {"ByteLevel", makeSimple<ByteLevelDecoder>},
    {"ByteFallback", makeSimple<ByteFallbackDecoder>},
    {"Fuse", makeSimple<FuseDecoder>},
    {"Replace", makeReplaceDecoder},
    {"Strip", makeStripDecoder},
    {"Metaspace", makeMetaspaceDecoder},
    {"Sequence", makeDecoderChain},
};

}  // namespace

Result<std::unique_ptr<Decoder>> makeDecoder(const JsonNode& node, int depth) {
    return makeStep<std::unique_ptr<Decoder>>(node, depth, kDecoderKinds);
}

}  // namespace colibri::text
