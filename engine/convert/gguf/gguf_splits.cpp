// SPDX-License-Identifier: Apache-2.0
#include "engine/convert/gguf/gguf_splits.h"

#include <string_view>
#include <vector>

namespace colibri {

namespace {

using Json = nlohmann::json;

// Building blocks of the patterns.
const std::string kContractions = R"((?i:'s|'t|'re|'ve|'m|'ll|'d))";
const std::string kBefore = R"([^\r\n\p{L}\p{N}]?)";  // a non-letter joins the word
const std::string kSpaces = R"(|\s*[\r\n]+|\s+(?!\S)|\s+)";
const std::string kRest = R"(| ?[^\s\p{L}\p{N}]+[\r\n]*)" + kSpaces;
const std::string kRestWithSlash = R"(| ?[^\s\p{L}\p{N}]+[\r\n/]*)" + kSpaces;
const std::string kWord = kContractions + "|" + kBefore + R"(\p{L}+|)";

const std::string kLlama3 = kWord + R"(\p{N}{1,3})" + kRest;
const std::string kQwen2 = kWord + R"(\p{N})" + kRest;
const std::string kQwen35 = kContractions + "|" + kBefore +
                            R"([\p{L}\p{M}]+|\p{N}| ?[^\s\p{L}\p{M}\p{N}]+[\r\n]*)" + kSpaces;
const std::string kSeedCoder = kWord + R"(\p{N}{1}| ?[^\s\p{L}\p{N}\r\n]+)" + kSpaces;
const std::string kBailing =
    R"('(?i:[sdmt]|ll|ve|re)|[^\r\n\p{L}\p{N}]?+\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]++[\r\n]*)"
    R"(|\s*[\r\n]|\s+(?!\S)|\s+)";

// Words that end where a lower-case letter is followed by an upper-case one. `suffix`: belongs to
// the word before it. `without`: letters that are never part of a word.
std::string casedWords(const std::string& suffix, const std::string& without = {}) {
    const std::string upper = R"([\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M})" + without + "]";
    const std::string lower = R"([\p{Ll}\p{Lm}\p{Lo}\p{M})" + without + "]";
    return kBefore + upper + "*" + lower + "+" + suffix + "|" + kBefore + upper + "+" + lower +
           "*" + suffix;
}
const std::string kO200k = casedWords(kContractions + "?") + R"(|\p{N}{1,3})" + kRestWithSlash;
const std::string kTekken = casedWords("") + R"(|\p{N})" + kRestWithSlash;
const std::string kKimi = R"([\p{Han}]+|)" + casedWords(kContractions + "?", R"(&&[^\p{Han}])") +
                          R"(|\p{N}{1,3})" + kRest;

const std::string kNumbersInThrees = R"(\p{N}{1,3})";
const std::string kChineseAndKana = "[一-龥぀-ゟ゠-ヿ]+";
const std::string kDeepSeekV3 =
    R"([!"#$%&'()*+,\-./:;<=>?@\[\\\]^_`{|}~][A-Za-z]+|[^\r\n\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+)"
    R"(| ?[\p{P}\p{S}]+[\r\n]*)" +
    kSpaces;

const std::string kLineEnd = R"([\r\n])";
// Letters that have upper and lower case. Look-alikes of other letters are written as escapes.
const std::string kCasedLetters =
    R"(\s?[)"
    R"(A-Za-zµÀ-ÖØ-öø-ƺƼ-ƿǄ-ʓʕ-ʯͰ-ͳͶͷͻ-ͽͿΆΈ-ΊΌΎ-ΡΣ-ϵϷ-ҁҊ-ԯԱ-ՖႠ-ჅᎠ-Ᏽᏸ-ᏽᲐ-ᲺᲽ-Ჿᴀ-ᴫᵫ-ᵷᵹ-ᶚḀ-ἕἘ-Ἕ)"
    R"(ἠ-ὅὈ-Ὅὐ-ὗὙὛὝὟ-\x{1f7d}ᾀ-ᾴᾶ-ᾼ\x{1fbe}ῂ-ῄῆ-ῌῐ-\x{1fd3}ῖ-\x{1fdb}ῠ-Ῥῲ-ῴῶ-ῼℂℇℊ-ℓℕℙ-ℝℤ)"
    R"(\x{2126}ℨ\x{212a}-ℭℯ-ℴℹℼ-ℿⅅ-ⅉⅎↃↄⰀ-ⱻⱾ-ⳤⳫ-ⳮⳲⳳꙀ-ꙭꚀ-ꚛꜢ-ꝯꝱ-ꞇꞋ-ꞎꭰ-ꮿﬀ-ﬆﬓ-ﬗＡ-Ｚａ-ｚ𐐀-𐑏𐒰-𐓓𐓘-𐓻𐲀-)"
    R"(𐲲𐳀-𐳲𑢠-𑣟𞤀-𞥃)"
    R"(]+)";
const std::string kPunctuation = R"(\s?[!-/:-~！-／：-～‘-‟\x{3000}-。]+)";
const std::string kLastSpaces = R"(\s+$)";
const std::string kChineseAndKorean = "[一-龥ࠀ-一가-퟿]+";
const std::string kSpaceAndLetters = R"(\s?\p{L}+)";
const std::string kSpaceAndPunctuation = R"(\s?\p{P}+)";

enum class Way { ByteLevel, DigitsThenByteLevel, Splits };

// A splitting rule: patterns in sequence, optionally single digits, then bytes.
struct Style {
    Way way = Way::Splits;
    std::vector<std::string> patterns;
    bool digits = false;  // split into single digits after the patterns
};

struct Row {
    std::vector<std::string_view> names;
    Style style;
    bool nfc = false, ignoreMerges = false, addsBos = false;
};

const std::vector<Row>& rows() {
    static const Style bytes{Way::ByteLevel}, digits{Way::DigitsThenByteLevel};
    static const Style llama3{.patterns = {kLlama3}}, qwen2{.patterns = {kQwen2}};
    static const std::vector<Row> rows = {
        {.names = {"default", "gpt-2", "phi-2", "jais", "exaone4", "gigachat"}, .style = bytes},
        {.names = {"olmo", "mpt"}, .style = bytes, .nfc = true},
        {.names = {"starcoder", "refact", "smollm", "codeshell", "exaone", "minerva-7b"},
         .style = digits},
        {.names = {"command-r"}, .style = digits, .nfc = true},
        {.names = {"llama-bpe", "llama3", "llama-v3", "falcon3", "falcon-h1", "pixtral", "lfm2"},
         .style = llama3,
         .ignoreMerges = true,
         .addsBos = true},
        {.names = {"dbrx", "smaug-bpe", "glm4", "chatglm-bpe"}, .style = llama3},
        {.names = {"qwen2", "deepseek-r1-qwen", "megrez", "hunyuan"}, .style = qwen2, .nfc = true},
        {.names = {"grok-2", "solar-open"}, .style = qwen2},
        {.names = {"qwen35"}, .style = {.patterns = {kQwen35}}, .nfc = true},
        {.names = {"seed-coder"}, .style = {.patterns = {kSeedCoder}}},
        {.names = {"bailingmoe", "bailingmoe2", "llada-moe"}, .style = {.patterns = {kBailing}}},
        {.names = {"gpt-4o", "llama4", "minimax-m2", "kanana2"}, .style = {.patterns = {kO200k}}},
        {.names = {"kimi-k2"}, .style = {.patterns = {kKimi}}, .ignoreMerges = true},
        {.names = {"tekken"},
         .style = {.patterns = {kTekken}},
         .ignoreMerges = true,
         .addsBos = true},
        {.names = {"deepseek-v3", "hunyuan-dense"},
         .style = {.patterns = {kNumbersInThrees, kChineseAndKana, kDeepSeekV3}}},
        {.names = {"deepseek-llm"},
         .style = {.patterns = {kLineEnd, kCasedLetters, kPunctuation, kLastSpaces,
                                kChineseAndKorean},
                   .digits = true}},
        {.names = {"deepseek-coder"},
         .style = {.patterns = {kLineEnd, kSpaceAndLetters, kSpaceAndPunctuation,
                                kChineseAndKorean},
                   .digits = true}},
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
    for (const std::string& pattern : style.patterns) {
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
                  "Convert from the original folder, whose tokenizer.json defines the split");
}

}  // namespace colibri
