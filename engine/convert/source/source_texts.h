// SPDX-License-Identifier: Apache-2.0
// The tokenizer and chat template of a checkpoint, and the tokens that begin prompts and end
// replies, merged from all files that name them.
#pragma once

#include <cstdint>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "engine/base/status.h"
#include "engine/convert/source/chat_templates.h"
#include "engine/convert/source/opened_source.h"

namespace colibri {

// Also true for a dangling link: reading it then reports that.
bool isThere(const std::filesystem::path& path);
// A small file of a checkpoint. Errors: those of readTextFile; BadInput if it is a git-lfs
// pointer or a saved web page.
Result<std::string> readSourceText(const std::filesystem::path& path);
Result<nlohmann::json> readSourceJson(const std::filesystem::path& path);

// What one file says about a token: by id, or by its text in the tokenizer.
struct TokenClaim {
    enum class Use { BeginsPrompt, EndsReply } use = Use::EndsReply;
    std::optional<int64_t> id;
    std::string text;
    std::string source;  // "generation_config.json", "tokenizer.ggml.eot_token_id"
};

// The contents of the files other than the weights. The first claim on the token that begins
// prompts counts. All claims on tokens that end replies count, and the first of those is the
// template's eos_token.
struct SourceTexts {
    Result<std::string> tokenizer = std::string();  // of tokenizer.json; empty: none
    std::string tokenizerName = "tokenizer.json";   // for messages
    std::string noTokenizer;                        // why there is none, as a sentence
    Result<std::vector<NamedTemplate>> templates = std::vector<NamedTemplate>();
    std::vector<TokenClaim> claims;
    std::vector<std::pair<std::string, int64_t>>
        addedTokens;  // texts and ids besides the tokenizer
    // The tokens that a saver adds around each text; nothing: as in tokenizer.json.
    std::optional<bool> addBos, addEos;
};

// Reads the files of a Hugging Face checkpoint. `config` and `generation` are its parsed files.
SourceTexts hfTexts(const std::filesystem::path& folder, const nlohmann::json& config,
                    const nlohmann::json& generation);

// The tokens that begin prompts and end replies, by the names that savers use.
struct TokenKey {
    const char* name;  // "NAME_token" in the tokenizer's files, "NAME_token_id" elsewhere
    TokenClaim::Use use;
};
inline constexpr TokenKey kTokenKeys[] = {{"bos", TokenClaim::Use::BeginsPrompt},
                                          {"eos", TokenClaim::Use::EndsReply},
                                          {"eot", TokenClaim::Use::EndsReply},
                                          {"eom", TokenClaim::Use::EndsReply}};

// Fills the texts, their problems, the special tokens and the notes of a source. `choice`: as in
// chooseTemplate. A tokenizer or template that cannot be used is a problem of the source, not an
// error. Errors: an unknown choice.
Status resolveTexts(SourceTexts texts, const std::string& choice, OpenedSource& out);

}  // namespace colibri
