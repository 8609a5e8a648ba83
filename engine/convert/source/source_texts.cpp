// SPDX-License-Identifier: Apache-2.0
#include "engine/convert/source/source_texts.h"

#include <algorithm>
#include <memory>
#include <system_error>

#include "engine/base/file.h"
#include "engine/base/format.h"
#include "engine/base/json_fields.h"
#include "engine/base/printable.h"
#include "engine/convert/source/foreign.h"
#include "engine/text/chat_template.h"
#include "engine/text/tokenizer.h"

namespace colibri {

namespace fs = std::filesystem;

namespace {

using Json = nlohmann::json;
using Use = TokenClaim::Use;

constexpr int64_t kSmallFile = 64 << 20;

// Tokenizers whose flags decide which tokens surround a text, even if the flags are false.
constexpr std::string_view kFlaggedClasses[] = {"LlamaTokenizer", "CodeLlamaTokenizer",
                                                "GemmaTokenizer", "CohereTokenizer",
                                                "GPTNeoXTokenizer"};

// End-of-turn tokens that some tokenizers list as ordinary added tokens.
constexpr std::string_view kTurnEnds[] = {
    "<|im_end|>",      "<|eot_id|>", "<|end|>",    "<end_of_turn>",         "<turn|>",
    "<|end_of_turn|>", "<|eot|>",    "<|eom_id|>", "<|END_OF_TURN_TOKEN|>", "<|endoftext|>",
    "<|end_of_text|>"};

// The text of a token, which savers write as a string or as an object.
std::string tokenText(const Json& entry) {
    if (entry.is_string()) return entry.get<std::string>();
    if (entry.is_object() && entry.value("content", Json()).is_string()) return entry["content"];
    return {};
}

void addTextClaims(const Json& json, const std::string& source, SourceTexts& out) {
    if (!json.is_object()) return;
    for (const TokenKey& key : kTokenKeys) {
        const std::string text = tokenText(json.value(std::string(key.name) + "_token", Json()));
        if (!text.empty()) out.claims.push_back({key.use, {}, text, source});
    }
}

// Adds one id or a list. readHfConfig reports invalid ones.
void addIdClaims(const Json& json, const char* key, Use use, const std::string& source,
                 SourceTexts& out) {
    if (!json.is_object() || !json.contains(key)) return;
    const Json& value = json[key];
    for (const Json& entry : value.is_array() ? value : Json::array({value})) {
        const std::optional<int64_t> id = wholeNumber(entry);
        if (id && *id >= 0) out.claims.push_back({use, id, {}, source});
    }
}

bool says(const Json& json, const char* key) {
    return json.is_object() && !json.value(key, Json()).is_null();
}

std::optional<bool> flagOf(const Json& json, const char* key, bool flaggedClass) {
    if (!json.is_object() || !json.value(key, Json()).is_boolean()) return {};
    const bool value = json[key];
    return value || flaggedClass ? std::optional(value) : std::nullopt;
}

// Reads tokenizer_config.json except for the templates.
void addTokenizerConfig(const Json& json, SourceTexts& out) {
    addTextClaims(json, "tokenizer_config.json", out);
    if (!json.is_object()) return;
    Json added = json.value("added_tokens_decoder", Json());
    if (!added.is_object()) added = Json::object();
    for (const auto& [id, token] : added.items()) {
        const std::optional<int64_t> number = wholeNumber(Json::parse(id, nullptr, false));
        if (number) out.addedTokens.emplace_back(tokenText(token), *number);
    }
    std::string type = tokenText(json.value("tokenizer_class", Json()));
    if (type.ends_with("Fast")) type.resize(type.size() - 4);
    const bool flagged = std::find(std::begin(kFlaggedClasses), std::end(kFlaggedClasses), type) !=
                         std::end(kFlaggedClasses);
    out.addBos = flagOf(json, "add_bos_token", flagged);
    out.addEos = flagOf(json, "add_eos_token", flagged);
}

std::string missingTokenizer(const fs::path& folder) {
    for (const char* other : {"tokenizer.model", "vocab.json", "tiktoken.model"}) {
        if (!isThere(folder / other)) continue;
        return "The source has " + std::string(other) +
               " but no tokenizer.json. To write one, use save_pretrained of the transformers "
               "library's AutoTokenizer";
    }
    return "The source has no tokenizer.json";
}

// Merges what the files of a model say about its tokens.
class TokenUnion {
public:
    TokenUnion(const SourceTexts& texts, const Tokenizer* tokenizer, OpenedSource& out)
        : m_texts(texts), m_tokenizer(tokenizer), m_out(out), m_config(out.config) {
        m_config.bosId = -1;
        m_config.bosSource.clear();
        m_config.eosIds.clear();
        m_config.eosSources.clear();
        for (const TokenClaim& claim : texts.claims) add(claim);
    }

    void add(const TokenClaim& claim) {
        const std::optional<int64_t> id = claim.id ? claim.id : idOf(claim.text);
        if (!id) return note(claim, "is not in the tokenizer");
        if (*id >= m_config.vocabSize) return note(claim, "has no row in the embedding");
        const auto token = int32_t(*id);
        if (claim.use == Use::BeginsPrompt) {
            if (m_config.bosId < 0) m_config.bosId = token;
            if (m_config.bosId == token) addSource(m_config.bosSource, claim.source);
            return;
        }
        const auto at = std::find(m_config.eosIds.begin(), m_config.eosIds.end(), token);
        const size_t i = size_t(at - m_config.eosIds.begin());
        if (at == m_config.eosIds.end()) {
            m_config.eosIds.push_back(token);
            m_config.eosSources.emplace_back();
        }
        addSource(m_config.eosSources[i], claim.source);
    }

private:
    std::optional<int64_t> idOf(const std::string& text) const {
        if (m_tokenizer) {
            if (const auto id = m_tokenizer->tokenToId(text)) return *id;
        }
        for (const auto& [known, id] : m_texts.addedTokens) {
            if (known == text) return id;
        }
        return {};
    }
    static void addSource(std::string& sources, const std::string& source) {
        if (sources.find(source) != std::string::npos) return;
        sources += (sources.empty() ? "" : ", ") + source;
    }
    void note(const TokenClaim& claim, const std::string& why) {
        if (claim.text.empty() && claim.id < 0) return;
        m_out.notes.push_back(
            claim.source + " names a token that " + why + "; the token is ignored: " +
            (claim.id ? formatCount(*claim.id) : "\"" + printable(claim.text) + "\""));
    }

    const SourceTexts& m_texts;
    const Tokenizer* m_tokenizer;
    OpenedSource& m_out;
    ModelConfig& m_config;
};

// The token after an assistant's message in the rendered template, if any: a token that ends a turn
// also ends a reply. In gpt-oss's format "<|end|>" ends only one of several messages of a reply;
// its template ends the last one with "<|return|>".
std::string turnEnd(const ChatTemplate& chat, const Tokenizer& tokenizer, const ModelConfig& c) {
    constexpr std::string_view kReply = "zyxreplyxyz";
    const auto text = [&](int32_t id) { return id >= 0 ? tokenizer.idToToken(id) : ""; };
    const nlohmann::ordered_json context = {
        {"messages",
         {{{"role", "user"}, {"content", "question"}},
          {{"role", "assistant"}, {"content", kReply}}}},
        {"add_generation_prompt", false},
        {"bos_token", text(c.bosId)},
        {"eos_token", c.eosIds.empty() ? "" : text(c.eosIds.front())}};
    const Result<std::string> prompt = chat.render(context);
    if (!prompt) return {};
    const size_t at = prompt->rfind(kReply);
    if (at == std::string::npos) return {};
    const std::vector<int32_t> rest = tokenizer.encode(prompt->substr(at + kReply.size()));
    for (const int32_t id : rest) {
        const std::string token = tokenizer.idToToken(id), bytes = tokenizer.tokenBytes(id);
        const bool known =
            std::find(std::begin(kTurnEnds), std::end(kTurnEnds), token) != std::end(kTurnEnds);
        if (known || tokenizer.isSpecial(id)) {
            const bool harmony = token == "<|end|>" && tokenizer.tokenToId("<|channel|>");
            return harmony ? "" : token;
        }
        if (bytes.find_first_not_of(" \t\r\n") != std::string::npos) return {};
    }
    return {};
}

// Makes tokenizer.json add the tokens around a text that tokenizer_config.json requests. The
// reference implementation does this when it loads a tokenizer.
void applyFrameFlags(const SourceTexts& texts, const Tokenizer& tokenizer, std::string& json,
                     OpenedSource& out) {
    const std::vector<int32_t> frame = tokenizer.encode("", {.special = true, .bos = true});
    const int32_t bos = out.config.bosId;
    const int32_t eos = out.config.eosIds.empty() ? -1 : out.config.eosIds.front();
    const bool hasBos = !frame.empty() && frame.front() == bos;
    const bool hasEos = frame.size() > size_t(hasBos) && frame.back() == eos;
    const bool wantsBos = bos >= 0 && texts.addBos.value_or(hasBos);
    const bool wantsEos = eos >= 0 && texts.addEos.value_or(hasEos);
    if (wantsBos == hasBos && wantsEos == hasEos) return;
    if (frame.size() > size_t(hasBos) + size_t(hasEos)) return;  // has other tokens: not changed
    Json single = Json::array(), specials = Json::object();
    const auto put = [&](int32_t id) {
        const std::string token = tokenizer.idToToken(id);
        single.push_back({{"SpecialToken", {{"id", token}, {"type_id", 0}}}});
        specials[token] = {{"id", token}, {"ids", {id}}, {"tokens", {token}}};
    };
    if (wantsBos) put(bos);
    single.push_back({{"Sequence", {{"id", "A"}, {"type_id", 0}}}});
    if (wantsEos) put(eos);
    Json whole = Json::parse(json, nullptr, false);
    if (!whole.is_object()) return;
    Json pair = single;
    pair.push_back({{"Sequence", {{"id", "B"}, {"type_id", 1}}}});
    whole["post_processor"] = nullptr;
    if (!specials.empty()) {
        whole["post_processor"] = {{"type", "TemplateProcessing"},
                                   {"single", std::move(single)},
                                   {"pair", std::move(pair)},
                                   {"special_tokens", std::move(specials)}};
    }
    json = whole.dump(-1, ' ', false, Json::error_handler_t::replace);
    const auto noteDifference = [&](const char* key, bool had, bool wants, int32_t id) {
        if (had == wants) return;
        out.notes.push_back(std::string("According to ") + key +
                            " of tokenizer_config.json, a text " + (wants ? "gets " : "gets no ") +
                            printable(tokenizer.idToToken(id)) + ", unlike in tokenizer.json");
    };
    noteDifference("add_bos_token", hasBos, wantsBos, bos);
    noteDifference("add_eos_token", hasEos, wantsEos, eos);
}

// Notes tokens of the tokenizer that have no row in the embedding.
void noteTokensBeyond(const Tokenizer& tokenizer, OpenedSource& out) {
    const int64_t rows = out.config.vocabSize;
    int64_t count = 0, first = -1;
    for (int64_t id = rows; id < tokenizer.vocabSize(); ++id) {
        if (tokenizer.idToToken(int32_t(id)).empty()) continue;
        if (count++ == 0) first = id;
    }
    if (count == 0) return;
    out.notes.push_back("The tokenizer has " + formatCount(count) + " tokens beyond the " +
                        formatCount(rows) + " rows of the embedding, from " + formatCount(first) +
                        " (" + printable(tokenizer.idToToken(int32_t(first))) +
                        ") on: a prompt that contains one is rejected");
}

std::unique_ptr<Tokenizer> resolveTokenizer(const SourceTexts& texts, OpenedSource& out) {
    if (!texts.tokenizer) {
        out.tokenizerProblem = texts.tokenizer.status();
        return nullptr;
    }
    if (texts.tokenizer->empty()) {
        out.tokenizerProblem = Status(Code::Unsupported, texts.noTokenizer);
        return nullptr;
    }
    Result<std::unique_ptr<Tokenizer>> parsed =
        Tokenizer::parse(*texts.tokenizer, texts.tokenizerName);
    if (parsed) return std::move(*parsed);
    out.tokenizerProblem = parsed.status();
    out.extraFiles.emplace_back("tokenizer.json", *texts.tokenizer);
    return nullptr;
}

// The other templates are kept, because the window offers them.
void keepOtherTemplates(const std::vector<NamedTemplate>& all, const std::string& chosen,
                        OpenedSource& out) {
    for (const NamedTemplate& t : all) {
        if (t.text == chosen) continue;
        // The chosen template takes the name "default".
        const std::string name = t.name == "default" ? "checkpoint_default" : t.name;
        if (!isTemplateFileName(name)) {
            out.notes.push_back("Chat template \"" + printable(t.name) +
                                "\" is omitted: its name is not a valid file name");
            continue;
        }
        out.extraFiles.emplace_back(std::string(kMoreTemplates) + "/" + name + ".jinja", t.text);
    }
}

Result<std::unique_ptr<ChatTemplate>> resolveTemplate(const SourceTexts& texts,
                                                      const std::string& choice,
                                                      OpenedSource& out) {
    std::unique_ptr<ChatTemplate> none;
    if (!texts.templates) {
        out.templateProblem = texts.templates.status();
        return none;
    }
    Result<std::optional<std::string>> text = chooseTemplate(*texts.templates, choice, out.notes);
    if (!text) return text.status();
    if (!*text) {
        out.templateProblem = Status(Code::Unsupported, "The source has no chat template",
                                     "convert --chat-template FILE adds one from a file");
        return none;
    }
    out.extraFiles.emplace_back("chat_template.jinja", **text);
    keepOtherTemplates(*texts.templates, **text, out);
    Result<std::unique_ptr<ChatTemplate>> parsed =
        ChatTemplate::parse(**text, "chat_template.jinja");
    if (!parsed) {
        out.templateProblem = parsed.status();
        return none;
    }
    return parsed;
}

}  // namespace

bool isThere(const fs::path& path) {
    std::error_code error;
    return fs::exists(fs::symlink_status(path, error));
}

Result<std::string> readSourceText(const fs::path& path) {
    Result<std::string> text = readTextFile(path, kSmallFile);
    if (!text) return text;
    const std::string_view start = std::string_view(*text).substr(0, kForeignBytes);
    COLIBRI_TRY(checkContent(start, int64_t(text->size()), Expected::Text, path));
    return text;
}

Result<Json> readSourceJson(const fs::path& path) {
    Result<std::string> text = readSourceText(path);
    if (!text) return text.status();
    return parseJson(*text, path.string());
}

SourceTexts hfTexts(const fs::path& folder, const Json& config, const Json& generation) {
    SourceTexts out;
    if (isThere(folder / "tokenizer.json")) {
        out.tokenizer = readSourceText(folder / "tokenizer.json");
    } else {
        out.noTokenizer = missingTokenizer(folder);
    }
    Json tokenizerConfig;
    for (const char* name : {"tokenizer_config.json", "special_tokens_map.json"}) {
        if (!isThere(folder / name)) continue;
        Result<Json> json = readSourceJson(folder / name);
        if (!json) {
            out.templates = json.status();
        } else if (std::string_view(name) == "tokenizer_config.json") {
            tokenizerConfig = std::move(*json);
            addTokenizerConfig(tokenizerConfig, out);
        } else {
            addTextClaims(*json, name, out);
        }
    }
    if (out.templates) out.templates = hfTemplates(folder, tokenizerConfig);
    for (const TokenKey& key : kTokenKeys) {
        const std::string name = std::string(key.name) + "_token_id";
        const bool generates = says(generation, name.c_str());
        addIdClaims(generates ? generation : config, name.c_str(), key.use,
                    generates ? "generation_config.json" : "config.json", out);
    }
    return out;
}

Status resolveTexts(SourceTexts texts, const std::string& choice, OpenedSource& out) {
    const std::unique_ptr<Tokenizer> tokenizer = resolveTokenizer(texts, out);
    Result<std::unique_ptr<ChatTemplate>> chat = resolveTemplate(texts, choice, out);
    if (!chat) return chat.status();
    TokenUnion tokens(texts, tokenizer.get(), out);
    if (!tokenizer) return {};
    std::string json = std::move(*texts.tokenizer);
    applyFrameFlags(texts, *tokenizer, json, out);
    out.extraFiles.insert(out.extraFiles.begin(), {"tokenizer.json", std::move(json)});
    if (*chat) {
        const std::string end = turnEnd(**chat, *tokenizer, out.config);
        if (!end.empty()) tokens.add({Use::EndsReply, {}, end, "chat template"});
    }
    noteTokensBeyond(*tokenizer, out);
    return {};
}

}  // namespace colibri
