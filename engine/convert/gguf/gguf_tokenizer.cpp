// SPDX-License-Identifier: Apache-2.0
#include "engine/convert/gguf/gguf_tokenizer.h"

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <optional>
#include <unordered_set>

#include "engine/convert/gguf/gguf_scores.h"
#include "engine/convert/gguf/gguf_splits.h"

namespace colibri {

namespace {

using Json = nlohmann::json;  // sorted keys: the ordered kind searches linearly

enum TokenType { kNormal = 1, kUnknown, kControl, kUserDefined, kUnused, kByte };

constexpr const char* kMark = "\u2581";  // represents a space in SentencePiece vocabularies

// The arrays of the file, after consistency checks.
struct Lists {
    const std::vector<std::string>* tokens = nullptr;
    const std::vector<std::string>* merges = nullptr;  // nullptr: none
    std::vector<int> types;                            // by id
    std::vector<double> scores;                        // by id; empty: none

    size_t size() const { return tokens->size(); }
    // Fills ids up to the model's vocabulary size and never occurs in a text.
    bool placeholder(size_t id) const {
        return types[id] == kUnused && (*tokens)[id] == "[PAD" + std::to_string(id) + "]";
    }
    bool added(size_t id) const {
        return types[id] == kControl || types[id] == kUserDefined || types[id] == kUnknown;
    }
};

Result<Lists> readLists(const GgufHeader& header) {
    Lists lists;
    lists.tokens = header.texts("tokenizer.ggml.tokens");
    lists.merges = header.texts("tokenizer.ggml.merges");
    const auto* types = header.numbers("tokenizer.ggml.token_type");
    const auto* scores = header.numbers("tokenizer.ggml.scores");
    if (!lists.tokens) return Status(Code::BadInput, "tokenizer.ggml.tokens is missing");
    const size_t count = lists.size();
    if ((types && types->size() != count) || (scores && scores->size() != count)) {
        return Status(Code::BadInput,
                      "tokenizer.ggml.tokens, scores and token_type differ in length: " +
                          std::to_string(count) + ", " +
                          std::to_string(scores ? scores->size() : count) + " and " +
                          std::to_string(types ? types->size() : count) + " entries");
    }
    lists.types.assign(count, kNormal);
    for (size_t i = 0; types && i < count; ++i) {
        const double type = (*types)[i];
        if (type >= int(kNormal) && type <= int(kByte)) lists.types[i] = int(type);
    }
    if (scores) lists.scores = *scores;
    for (double score : lists.scores) {
        if (!std::isfinite(score)) {
            return Status(Code::BadInput,
                          "tokenizer.ggml.scores contains a value that is not a number");
        }
    }
    return lists;
}

Json addedTokens(const Lists& lists) {
    Json added = Json::array();
    for (size_t i = 0; i < lists.size(); ++i) {
        if (!lists.added(i)) continue;
        added.push_back({{"id", i},
                         {"content", (*lists.tokens)[i]},
                         {"single_word", false},
                         {"lstrip", false},
                         {"rstrip", false},
                         {"normalized", false},
                         {"special", lists.types[i] != kUserDefined}});
    }
    return added;
}

std::optional<int64_t> tokenId(const GgufHeader& header, const char* which, const Lists& lists) {
    const auto id = header.integer(std::string("tokenizer.ggml.") + which + "_token_id");
    return id && *id >= 0 && *id < int64_t(lists.size()) ? id : std::nullopt;
}

// Adds the BOS and EOS tokens that the file requests.
Json postProcessor(const GgufHeader& header, const Lists& lists, bool addsBos, bool addsEos) {
    Json single = Json::array(), specials = Json::object();
    const auto put = [&](const char* which, bool wanted) {
        const auto id = tokenId(header, which, lists);
        const std::string key = std::string("tokenizer.ggml.add_") + which + "_token";
        if (!id || !header.flag(key).value_or(wanted)) return;
        const std::string& text = (*lists.tokens)[size_t(*id)];
        single.push_back({{"SpecialToken", {{"id", text}, {"type_id", 0}}}});
        specials[text] = {{"id", text}, {"ids", {*id}}, {"tokens", {text}}};
    };
    put("bos", addsBos);
    single.push_back({{"Sequence", {{"id", "A"}, {"type_id", 0}}}});
    put("eos", addsEos);
    if (specials.empty()) return nullptr;
    Json pair = single;
    pair.push_back({{"Sequence", {{"id", "B"}, {"type_id", 1}}}});
    return {{"type", "TemplateProcessing"},
            {"single", std::move(single)},
            {"pair", std::move(pair)},
            {"special_tokens", std::move(specials)}};
}

Json bpe() {
    return {{"type", "BPE"},
            {"dropout", nullptr},
            {"unk_token", nullptr},
            {"continuing_subword_prefix", nullptr},
            {"end_of_word_suffix", nullptr},
            {"fuse_unk", false},
            {"byte_fallback", false},
            {"ignore_merges", false}};
}

Result<Json> byteLevelBpe(const GgufHeader& header, const Lists& lists) {
    const std::string* name = header.text("tokenizer.ggml.pre");
    Result<GgufSplit> split = ggufSplit(name ? *name : "default");
    if (!split) return split.status();
    if (!lists.merges) return Status(Code::BadInput, "tokenizer.ggml.merges is missing");
    // Added tokens are not part of the vocabulary unless merges need them.
    std::unordered_set<std::string> merged;
    for (const std::string& merge : *lists.merges) {
        const size_t space = merge.find(' ');
        if (space == std::string::npos) continue;  // the tokenizer's parser rejects it
        merged.insert(merge.substr(0, space));
        merged.insert(merge.substr(space + 1));
        merged.insert(merge.substr(0, space) + merge.substr(space + 1));
    }
    Json vocab = Json::object();
    for (size_t i = 0; i < lists.size(); ++i) {
        const std::string& token = (*lists.tokens)[i];
        if (lists.placeholder(i) || (lists.added(i) && !merged.contains(token))) continue;
        vocab[token] = i;
    }
    Json model = bpe();
    model["ignore_merges"] = split->ignoreMerges;
    model["vocab"] = std::move(vocab);
    model["merges"] = *lists.merges;
    const Json decoder = {{"type", "ByteLevel"},
                          {"add_prefix_space", false},
                          {"trim_offsets", true},
                          {"use_regex", true}};
    return Json{{"normalizer", std::move(split->normalizer)},
                {"pre_tokenizer", std::move(split->preTokenizer)},
                {"post_processor", postProcessor(header, lists, split->addsBos, false)},
                {"decoder", decoder},
                {"model", std::move(model)}};
}

Json replaced(const char* from, const char* to) {
    return {{"type", "Replace"}, {"pattern", {{"String", from}}}, {"content", to}};
}

bool hasAllBytes(const Lists& lists) {
    size_t count = 0;
    for (int type : lists.types) count += type == kByte;
    return count >= 256;
}

// The token for characters that are not in the vocabulary.
std::optional<size_t> unknownToken(const GgufHeader& header, const Lists& lists) {
    if (const auto id = tokenId(header, "unknown", lists)) return size_t(*id);
    const auto found = std::find(lists.types.begin(), lists.types.end(), int(kUnknown));
    if (found == lists.types.end()) return std::nullopt;
    return size_t(found - lists.types.begin());
}

Result<Json> mergesOf(const Lists& lists) {
    Json merges = Json::array();
    if (lists.merges) {
        merges = *lists.merges;
        return merges;
    }
    std::vector<ScoredToken> scored;
    for (size_t i = 0; i < lists.size(); ++i) {
        const int type = lists.types[i];
        const std::string& token = (*lists.tokens)[i];
        if (type == kControl || type == kUnknown || type == kByte || lists.placeholder(i)) continue;
        if (token.size() > kLongestScoredToken) {
            return Status(Code::Unsupported, "token " + std::to_string(i) + " of more than " +
                                                 std::to_string(kLongestScoredToken) + " bytes");
        }
        scored.push_back({token, int64_t(i), lists.scores.empty() ? 0 : lists.scores[i]});
    }
    for (const auto& [left, right] : mergesFromScores(scored)) merges.push_back({left, right});
    return merges;
}

// SentencePiece: a mark replaces each space, and one is added at the start.
Json markNormalizer(bool prefix) {
    Json steps = Json::array();
    if (prefix) steps.push_back({{"type", "Prepend"}, {"prepend", kMark}});
    steps.push_back(replaced(" ", kMark));
    return {{"type", "Sequence"}, {"normalizers", std::move(steps)}};
}

Json markDecoder(bool prefix) {
    Json steps = {replaced(kMark, " "), {{"type", "ByteFallback"}}, {{"type", "Fuse"}}};
    if (prefix) {
        steps.push_back({{"type", "Strip"}, {"content", " "}, {"start", 1}, {"stop", 0}});
    }
    return {{"type", "Sequence"}, {"decoders", std::move(steps)}};
}

Result<Json> scoredBpe(const GgufHeader& header, const Lists& lists) {
    Result<Json> merges = mergesOf(lists);
    if (!merges) return merges.status();
    Json vocab = Json::object();
    for (size_t i = 0; i < lists.size(); ++i) {
        if (!lists.placeholder(i)) vocab[(*lists.tokens)[i]] = i;
    }
    Json model = bpe();
    model["byte_fallback"] = hasAllBytes(lists);
    model["fuse_unk"] = true;
    if (const auto id = unknownToken(header, lists)) model["unk_token"] = (*lists.tokens)[*id];
    model["vocab"] = std::move(vocab);
    model["merges"] = std::move(*merges);
    const bool prefix = header.flag("tokenizer.ggml.add_space_prefix").value_or(true);
    return Json{{"normalizer", markNormalizer(prefix)},
                {"pre_tokenizer", nullptr},
                {"post_processor", postProcessor(header, lists, true, false)},
                {"decoder", markDecoder(prefix)},
                {"model", std::move(model)}};
}

std::string base64(const std::vector<double>& bytes) {
    constexpr char kLetters[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    std::string out;
    for (size_t at = 0; at < bytes.size(); at += 3) {
        uint32_t bits = 0;
        for (size_t i = at; i < at + 3; ++i) {
            // Some writers store the bytes as signed numbers.
            const double value = i < bytes.size() ? bytes[i] : 0;
            bits = bits << 8 | (value >= -128 && value <= 255 ? uint32_t(int(value)) & 0xFF : 0);
        }
        const size_t letters = std::min<size_t>(4, bytes.size() - at + 1);
        for (size_t i = 0; i < 4; ++i) {
            out += i < letters ? kLetters[bits >> (18 - 6 * i) & 63] : '=';
        }
    }
    return out;
}

Result<Json> unigram(const GgufHeader& header, const Lists& lists) {
    if (lists.scores.empty()) return Status(Code::BadInput, "tokenizer.ggml.scores is missing");
    size_t count = lists.size();
    while (count > 0 && lists.placeholder(count - 1)) --count;
    Json vocab = Json::array();
    for (size_t i = 0; i < count; ++i) {
        vocab.push_back(Json::array({(*lists.tokens)[i], lists.scores[i]}));
    }
    Json model = {{"type", "Unigram"}, {"unk_id", nullptr}, {"byte_fallback", hasAllBytes(lists)}};
    if (const auto id = unknownToken(header, lists)) model["unk_id"] = *id;
    model["vocab"] = std::move(vocab);
    const bool prefix = header.flag("tokenizer.ggml.add_space_prefix").value_or(true);
    Json steps = Json::array();
    const auto* map = header.numbers("tokenizer.ggml.precompiled_charsmap");
    if (map && !map->empty()) {
        steps.push_back({{"type", "Precompiled"}, {"precompiled_charsmap", base64(*map)}});
    }
    if (header.flag("tokenizer.ggml.remove_extra_whitespaces").value_or(false)) {
        steps.push_back({{"type", "Strip"}, {"strip_left", false}, {"strip_right", true}});
        steps.push_back(
            {{"type", "Replace"}, {"pattern", {{"Regex", " {2,}"}}}, {"content", kMark}});
    }
    const Json metaspace = {{"type", "Metaspace"},
                            {"replacement", kMark},
                            {"prepend_scheme", prefix ? "always" : "never"},
                            {"split", true}};
    return Json{{"normalizer", {{"type", "Sequence"}, {"normalizers", std::move(steps)}}},
                {"pre_tokenizer", metaspace},
                {"post_processor", postProcessor(header, lists, false, true)},
                {"decoder", metaspace},
                {"model", std::move(model)}};
}

struct Model {
    std::string_view name;
    Result<Json> (*make)(const GgufHeader&, const Lists&);
};
constexpr Model kTokenizerModels[] = {
    {"gpt2", byteLevelBpe}, {"llama", scoredBpe}, {"t5", unigram}};

}  // namespace

Result<std::string> ggufTokenizerJson(const GgufHeader& header) {
    const std::string* name = header.text("tokenizer.ggml.model");
    if (!name || *name == "none" || *name == "no_vocab") {
        return Status(Code::Unsupported, "the file has no tokenizer");
    }
    const auto model = std::find_if(std::begin(kTokenizerModels), std::end(kTokenizerModels),
                                    [&](const Model& known) { return known.name == *name; });
    if (model == std::end(kTokenizerModels)) {
        return Status(Code::Unsupported, "tokenizer.ggml.model \"" + *name + "\"");
    }
    const Result<Lists> lists = readLists(header);
    if (!lists) return lists.status();
    Result<Json> out = model->make(header, *lists);
    if (!out) return out.status();
    (*out)["version"] = "1.0";
    (*out)["truncation"] = nullptr;
    (*out)["padding"] = nullptr;
    (*out)["added_tokens"] = addedTokens(*lists);
    // JSON cannot hold invalid UTF-8. Such a token becomes unreachable instead of an error.
    return out->dump(-1, ' ', false, Json::error_handler_t::replace);
}

}  // namespace colibri
