// SPDX-License-Identifier: Apache-2.0
#include "engine/convert/gguf_splits.h"

#include <string_view>
#include <vector>

namespace colibri {

namespace {

using Json = nlohmann::json;

#define CONTRACTIONS R"((?i:'s|'t|'re|'ve|'m|'ll|'d))"
#define REST R"(| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)"
#define REST_WITH_SLASH R"(| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+)"

constexpr std::string_view kLlama3 =
    CONTRACTIONS R"(|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3})" REST;
constexpr std::string_view kQwen2 = CONTRACTIONS R"(|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N})" REST;
constexpr std::string_view kQwen35 =
    CONTRACTIONS R"(|[^\r\n\p{L}\p{N}]?[\p{L}\p{M}]+|\p{N}| ?[^\s\p{L}\p{M}\p{N}]+[\r\n]*)"
                 R"(|\s*[\r\n]+|\s+(?!\S)|\s+)";
constexpr std::string_view kSeedCoder =
    CONTRACTIONS R"(|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1}| ?[^\s\p{L}\p{N}\r\n]+)"
                 R"(|\s*[\r\n]+|\s+(?!\S)|\s+)";
constexpr std::string_view kBailing =
    R"('(?i:[sdmt]|ll|ve|re)|[^\r\n\p{L}\p{N}]?+\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]++[\r\n]*)"
    R"(|\s*[\r\n]|\s+(?!\S)|\s+)";

// Words end where a lower-case letter is followed by an upper-case one.
#define UPPER R"([\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}])"
#define LOWER R"([\p{Ll}\p{Lm}\p{Lo}\p{M}])"
#define BEFORE R"([^\r\n\p{L}\p{N}]?)"
constexpr std::string_view kO200k = BEFORE UPPER "*" LOWER "+" CONTRACTIONS "?|" BEFORE UPPER
                                    "+" LOWER "*" CONTRACTIONS R"(?|\p{N}{1,3})" REST_WITH_SLASH;
constexpr std::string_view kTekken =
    BEFORE UPPER "*" LOWER "+|" BEFORE UPPER "+" LOWER R"(*|\p{N})" REST_WITH_SLASH;
#define NOT_HAN_UPPER R"([\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}&&[^\p{Han}]])"
#define NOT_HAN_LOWER R"([\p{Ll}\p{Lm}\p{Lo}\p{M}&&[^\p{Han}]])"
constexpr std::string_view kKimi = R"([\p{Han}]+|)" BEFORE NOT_HAN_UPPER "*" NOT_HAN_LOWER
                                   "+" CONTRACTIONS "?|" BEFORE NOT_HAN_UPPER "+" NOT_HAN_LOWER
                                   "*" CONTRACTIONS R"(?|\p{N}{1,3})" REST;

constexpr std::string_view kNumbersInThrees = R"(\p{N}{1,3})";
constexpr std::string_view kChineseAndKana = "[一-龥぀-ゟ゠-ヿ]+";
constexpr std::string_view kDeepSeekV3 =
    R"([!"#$%&'()*+,\-./:;<=>?@\[\\\]^_`{|}~][A-Za-z]+|[^\r\n\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+)"
    R"(| ?[\p{P}\p{S}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)";

constexpr std::string_view kLineEnd = R"([\r\n])";
// The letters that have two cases; those that look like others are written as numbers.
constexpr std::string_view kCasedLetters =
    R"(\s?[)"
    R"(A-Za-zµÀ-ÖØ-öø-ƺƼ-ƿǄ-ʓʕ-ʯͰ-ͳͶͷͻ-ͽͿΆΈ-ΊΌΎ-ΡΣ-ϵϷ-ҁҊ-ԯԱ-ՖႠ-ჅᎠ-Ᏽᏸ-ᏽᲐ-ᲺᲽ-Ჿᴀ-ᴫᵫ-ᵷᵹ-ᶚḀ-ἕἘ-Ἕ)"
    R"(ἠ-ὅὈ-Ὅὐ-ὗὙὛὝὟ-\x{1f7d}ᾀ-ᾴᾶ-ᾼ\x{1fbe}ῂ-ῄῆ-ῌῐ-\x{1fd3}ῖ-\x{1fdb}ῠ-Ῥῲ-ῴῶ-ῼℂℇℊ-ℓℕℙ-ℝℤ)"
    R"(\x{2126}ℨ\x{212a}-ℭℯ-ℴℹℼ-ℿⅅ-ⅉⅎↃↄⰀ-ⱻⱾ-ⳤⳫ-ⳮⳲⳳꙀ-ꙭꚀ-ꚛꜢ-ꝯꝱ-ꞇꞋ-ꞎꭰ-ꮿﬀ-ﬆﬓ-ﬗＡ-Ｚａ-ｚ𐐀-𐑏𐒰-𐓓𐓘-𐓻𐲀-)"
    R"(𐲲𐳀-𐳲𑢠-𑣟𞤀-𞥃)"
    R"(]+)";
constexpr std::string_view kPunctuation = R"(\s?[!-/:-~！-／：-～‘-‟\x{3000}-。]+)";
constexpr std::string_view kLastSpaces = R"(\s+$)";
constexpr std::string_view kChineseAndKorean = "[一-龥ࠀ-一가-퟿]+";
constexpr std::string_view kSpaceAndLetters = R"(\s?\p{L}+)";
constexpr std::string_view kSpaceAndPunctuation = R"(\s?\p{P}+)";

enum class Way { ByteLevel, DigitsThenByteLevel, Splits };

// A way of splitting: patterns one after the other, perhaps digits one by one, then bytes.
struct Style {
    Way way = Way::Splits;
    std::vector<std::string_view> patterns;
    bool digits = false;  // one by one, after the patterns
};

struct Row {
    std::vector<std::string_view> names;
    Style style;
    bool nfc = false, ignoreMerges = false, addsBos = false;
};

const std::vector<Row>& rows() {
    static const Style bytes{Way::ByteLevel}, digits{Way::DigitsThenByteLevel};
    static const Style llama3{.patterns = {kLlama3}}, qwen2{.patterns = {kQwen2}};
    static const Style o200k{.patterns = {kO200k}};
    static const Style deepSeekV3{
        .patterns = {kNumbersInThrees, kChineseAndKana, kDeepSeekV3}};
    static const Style deepSeek{.patterns = {kLineEnd, kCasedLetters, kPunctuation, kLastSpaces,
                                             kChineseAndKorean},
                                .digits = true};
    static const Style deepSeekCoder{.patterns = {kLineEnd, kSpaceAndLetters,
                                                  kSpaceAndPunctuation, kChineseAndKorean},
                                     .digits = true};
    static const std::vector<Row> rows = {
        {{"default", "gpt-2", "phi-2", "jais", "exaone4", "gigachat"}, bytes},
        {{"olmo", "mpt"}, bytes, true},
        {{"starcoder", "refact", "smollm", "codeshell", "exaone", "minerva-7b"}, digits},
        {{"command-r"}, digits, true},
        {{"llama-bpe", "llama3", "llama-v3", "falcon3", "falcon-h1", "pixtral", "lfm2"},
         llama3, false, true, true},
        {{"dbrx", "smaug-bpe", "glm4", "chatglm-bpe"}, llama3},
        {{"qwen2", "deepseek-r1-qwen", "megrez", "hunyuan"}, qwen2, true},
        {{"grok-2", "solar-open"}, qwen2},
        {{"qwen35"}, {.patterns = {kQwen35}}, true},
        {{"seed-coder"}, {.patterns = {kSeedCoder}}},
        {{"bailingmoe", "bailingmoe2", "llada-moe"}, {.patterns = {kBailing}}},
        {{"gpt-4o", "llama4", "minimax-m2", "kanana2"}, o200k},
        {{"kimi-k2"}, {.patterns = {kKimi}}, false, true},
        {{"tekken"}, {.patterns = {kTekken}}, false, true, true},
        {{"deepseek-v3", "hunyuan-dense"}, deepSeekV3},
        {{"deepseek-llm"}, deepSeek},
        {{"deepseek-coder"}, deepSeekCoder},
    };
    return rows;
}

Json byteLevel(bool useRegex) {
    return {{"type", "ByteLevel"},
            {"add_prefix_space", false},
            {"trim_offsets", true},
            {"use_regex", useRegex}};
}

Json preTokenizer(const Style& style) {
    if (style.way == Way::ByteLevel) return byteLevel(true);
    const Json digits = {{"type", "Digits"}, {"individual_digits", true}};
    Json steps = Json::array();
    for (std::string_view pattern : style.patterns) {
        steps.push_back({{"type", "Split"},
                         {"pattern", {{"Regex", pattern}}},
                         {"behavior", "Isolated"},
                         {"invert", false}});
    }
    if (style.digits || style.way == Way::DigitsThenByteLevel) steps.push_back(digits);
    steps.push_back(byteLevel(style.way == Way::DigitsThenByteLevel));
    return {{"type", "Sequence"}, {"pretokenizers", std::move(steps)}};
}

}  // namespace

Result<GgufSplit> ggufSplit(const std::string& name) {
    for (const Row& row : rows()) {
        for (std::string_view known : row.names) {
            if (known != name) continue;
            return GgufSplit{row.nfc ? Json{{"type", "NFC"}} : Json(nullptr),
                             preTokenizer(row.style), row.ignoreMerges, row.addsBos};
        }
    }
    return Status(Code::Unsupported, "tokenizer.ggml.pre \"" + name + "\"",
                  "Convert from the original folder, whose tokenizer.json says how to split");
}

}  // namespace colibri
