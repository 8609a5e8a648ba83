// SPDX-License-Identifier: Apache-2.0
#include "engine/convert/gguf/gguf_texts.h"

#include <algorithm>
#include <utility>
#include <variant>

#include "engine/base/printable.h"
#include "engine/convert/gguf/gguf_tokenizer.h"

namespace colibri {

namespace {

constexpr std::string_view kTemplateKey = "tokenizer.chat_template";

}  // namespace

// Of several templates of one name the first counts.
std::vector<NamedTemplate> ggufTemplates(const GgufHeader& header) {
    std::vector<NamedTemplate> out;
    const auto add = [&](const std::string& name, const std::string& text, const std::string& key) {
        const auto same = [&](const NamedTemplate& t) { return t.name == name; };
        if (std::none_of(out.begin(), out.end(), same)) out.push_back({name, text, key});
    };
    for (const auto& [key, value] : header.metadata) {
        const auto* text = std::get_if<std::string>(&value);
        if (!text || !key.starts_with(kTemplateKey)) continue;
        const std::string rest = key.substr(kTemplateKey.size());
        if (rest.empty()) add("default", *text, key);
        if (rest.size() > 1 && rest[0] == '.') add(rest.substr(1), *text, key);
    }
    return out;
}

SourceTexts ggufTexts(const GgufHeader& header) {
    SourceTexts out;
    Result<std::string> json = ggufTokenizerJson(header);
    if (json) {
        out.tokenizer = std::move(*json);
        out.tokenizerName = "the tokenizer of the GGUF file";
    } else {
        out.noTokenizer = "The tokenizer is omitted: " + printable(json.status().message());
    }
    out.templates = ggufTemplates(header);
    for (const TokenKey& key : kTokenKeys) {
        const std::string name = std::string("tokenizer.ggml.") + key.name + "_token_id";
        const std::optional<int64_t> id = header.integer(name);
        if (id && *id >= 0 && *id < INT32_MAX) out.claims.push_back({key.use, id, {}, name});
    }
    return out;
}

}  // namespace colibri
