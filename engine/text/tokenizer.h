// SPDX-License-Identifier: Apache-2.0
// Text <-> token ids, identical to the reference `tokenizers` library for BPE and Unigram models.
// Immutable after loading; every method may be called from any thread.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "engine/base/status.h"
#include "engine/unicode/traced_text.h"

namespace colibri {

struct EncodeOptions {
    bool special = true;  // special tokens written in the text are recognised
    bool bos = false;     // apply the post-processor's template (BOS if the model has one)
};

class Tokenizer {
public:
    // PATH: a tokenizer.json, or a folder with one. Errors: BadInput, Unsupported (the
    // option by name: "tokenizer.json: pre_tokenizer type \"Foo\"").
    static Result<std::unique_ptr<Tokenizer>> load(const std::filesystem::path& path);
    static Result<std::unique_ptr<Tokenizer>> parse(std::string_view json, const std::string& name);
    ~Tokenizer();

    std::vector<int32_t> encode(std::string_view text, const EncodeOptions& options = {}) const;
    // Encodes a rendered chat. Control tokens are recognised only if none of their bytes is data;
    // in data they are plain text. If the data contains none, the ids equal encode(text.text).
    // Control tokens are the special ones and those written as <|name|>, with ASCII or full-width
    // bars: some models do not mark role names as special.
    std::vector<int32_t> encode(const TracedText& text) const;
    // Raw bytes, which may not be valid UTF-8 on their own. Ids out of range decode to nothing.
    std::string decode(const std::vector<int32_t>& ids, bool skipSpecial = false) const;
    // Bytes of one token as they appear in a decoded sequence; "" for an id out of range.
    std::string tokenBytes(int32_t id, bool skipSpecial = false) const;

    int32_t vocabSize() const;                                       // highest id + 1
    std::optional<int32_t> tokenToId(std::string_view token) const;  // by its text in the file
    std::string idToToken(int32_t id) const;
    bool isSpecial(int32_t id) const;

private:
    Tokenizer();
    struct Impl;
    std::unique_ptr<const Impl> m_impl;
};

}  // namespace colibri
