// SPDX-License-Identifier: Apache-2.0
#include "engine/convert/gguf_tokenizer.h"

#include <nlohmann/json.hpp>

namespace colibri {

namespace {

using Json = nlohmann::json;      // sorted keys: the ordered kind searches linearly

enum TokenType { kNormal = 1, kUnknown = 2, kControl = 3, kUserDefined = 4, kUnused = 5, kByte = 6 };

// Splitting pattern of a pre-tokenizer name; empty: GPT-2's, built into ByteLevel.
struct PreTokenizer {
    const char* name;
    const char* pattern;
    bool ignoreMerges;
    bool nfc;
};
constexpr const char* kLlama3Pattern =
    R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)";
constexpr const char* kQwen2Pattern =
    R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)";
constexpr PreTokenizer kPreTokenizers[] = {
    {"gpt-2", "", false, false},
    {"olmo", "", false, true},
    {"dbrx", kLlama3Pattern, false, false},
    {"llama-bpe", kLlama3Pattern, true, false},
    {"llama3", kLlama3Pattern, true, false},
    {"qwen2", kQwen2Pattern, false, true},
};

const PreTokenizer* findPreTokenizer(const std::string& name) {
    for (const PreTokenizer& p : kPreTokenizers) {
        if (name == p.name) return &p;
    }
    return nullptr;
}

Json byteLevel(bool useRegex) {
    return {{"type", "ByteLevel"}, {"add_prefix_space", false}, {"trim_offsets", true},
            {"use_regex", useRegex}};
}

Json preTokenizerJson(const PreTokenizer& pre) {
    if (*pre.pattern == 0) return byteLevel(true);
    Json split = {{"type", "Split"},
                  {"pattern", {{"Regex", pre.pattern}}},
                  {"behavior", "Isolated"},
                  {"invert", false}};
    return {{"type", "Sequence"}, {"pretokenizers", Json::array({split, byteLevel(false)})}};
}

Json addedTokens(const std::vector<std::string>& tokens, const std::vector<double>& types) {
    Json added = Json::array();
    for (size_t i = 0; i < tokens.size(); ++i) {
        int type = int(types[i]);
        if (type != kControl && type != kUserDefined) continue;
        added.push_back({{"id", i}, {"content", tokens[i]}, {"single_word", false},
                         {"lstrip", false}, {"rstrip", false}, {"normalized", false},
                         {"special", type == kControl}});
    }
    return added;
}

// BOS in front, where the file asks for it.
Json postProcessor(const GgufHeader& header, const std::vector<std::string>& tokens) {
    std::optional<int64_t> bos = header.integer("tokenizer.ggml.bos_token_id");
    if (!header.flag("tokenizer.ggml.add_bos_token").value_or(false) || !bos || *bos < 0 ||
        *bos >= int64_t(tokens.size())) {
        return nullptr;
    }
    const std::string& text = tokens[size_t(*bos)];
    Json token = {{"SpecialToken", {{"id", text}, {"type_id", 0}}}};
    Json sequence = {{"Sequence", {{"id", "A"}, {"type_id", 0}}}};
    Json second = {{"Sequence", {{"id", "B"}, {"type_id", 1}}}};
    return {{"type", "TemplateProcessing"},
            {"single", Json::array({token, sequence})},
            {"pair", Json::array({token, sequence, second})},
            {"special_tokens",
             {{text, {{"id", text}, {"ids", {*bos}}, {"tokens", {text}}}}}}};
}

}  // namespace

Result<std::string> ggufTokenizerJson(const GgufHeader& header) {
    const std::string* model = header.text("tokenizer.ggml.model");
    if (!model || *model == "none" || *model == "no_vocab") {
        return Status(Code::Unsupported, "the file holds no tokenizer");
    }
    if (*model != "gpt2") {
        return Status(Code::Unsupported, "tokenizer.ggml.model \"" + *model + "\"");
    }
    const std::string* preName = header.text("tokenizer.ggml.pre");
    const PreTokenizer* pre = findPreTokenizer(preName ? *preName : "gpt-2");
    if (!pre) return Status(Code::Unsupported, "tokenizer.ggml.pre \"" + *preName + "\"");
    const auto* tokens = header.texts("tokenizer.ggml.tokens");
    const auto* merges = header.texts("tokenizer.ggml.merges");
    const auto* types = header.numbers("tokenizer.ggml.token_type");
    if (!tokens || !merges || (types && types->size() != tokens->size())) {
        return Status(Code::BadInput, "tokenizer.ggml.tokens, merges and token_type do not fit");
    }
    std::vector<double> normal(tokens->size(), kNormal);
    const std::vector<double>& kinds = types ? *types : normal;

    Json vocab = Json::object();
    for (size_t i = 0; i < tokens->size(); ++i) {
        if (int(kinds[i]) == kControl || int(kinds[i]) == kUserDefined) continue;
        vocab[(*tokens)[i]] = i;
    }
    Json bpe = {{"type", "BPE"}, {"dropout", nullptr}, {"unk_token", nullptr},
                {"continuing_subword_prefix", nullptr}, {"end_of_word_suffix", nullptr},
                {"fuse_unk", false}, {"byte_fallback", false},
                {"ignore_merges", pre->ignoreMerges}};
    bpe["vocab"] = std::move(vocab);
    bpe["merges"] = *merges;
    Json out = {{"version", "1.0"}, {"truncation", nullptr}, {"padding", nullptr}};
    out["added_tokens"] = addedTokens(*tokens, kinds);
    out["normalizer"] = pre->nfc ? Json{{"type", "NFC"}} : Json(nullptr);
    out["pre_tokenizer"] = preTokenizerJson(*pre);
    out["post_processor"] = postProcessor(header, *tokens);
    out["decoder"] = byteLevel(true);
    out["model"] = std::move(bpe);
    // Text that is no UTF-8 cannot stand in JSON; such a token becomes unreachable, not an error.
    return out.dump(-1, ' ', false, Json::error_handler_t::replace);
}

}  // namespace colibri
