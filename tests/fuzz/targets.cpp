// SPDX-License-Identifier: GPL-3.0-or-later
#include "tests/fuzz/targets.h"

#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <span>
#include <utility>

#include "engine/convert/gguf/gguf_tokenizer.h"
#include "engine/convert/hf/hf_config.h"
#include "engine/convert/hf/safetensors.h"
#include "engine/model/model_json.h"
#include "engine/text/chat_template.h"
#include "engine/text/tokenizer.h"

namespace colibri::fuzz {

namespace {

void require(bool holds, const char* what) {
    if (holds) return;
    std::fprintf(stderr, "Does not hold: %s\n", what);
    std::abort();
}

// An error must have a message.
void requireMessage(const Status& status) {
    require(status.ok() || !status.message().empty(), "an error has a message");
}

std::span<const std::byte> asBytes(std::string_view bytes) {
    return {reinterpret_cast<const std::byte*>(bytes.data()), bytes.size()};
}

std::pair<std::string_view, std::string_view> cutAtZero(std::string_view bytes) {
    const size_t zero = bytes.find('\0');
    if (zero == std::string_view::npos) return {bytes, {}};
    return {bytes.substr(0, zero), bytes.substr(zero + 1)};
}

constexpr std::string_view kText = "Hello  w\u00f6rld, 123\n\n\t\u4f60\u597d <s>\U0001F600 don't";

void useTokenizer(const Tokenizer& tokenizer, std::string_view text) {
    for (bool special : {true, false}) {
        const auto ids = tokenizer.encode(text, {.special = special, .bos = special});
        for (int32_t id : ids) {
            require(id >= 0 && id < tokenizer.vocabSize(), "ids are within the vocabulary");
        }
        (void)tokenizer.decode(ids, special);
        for (size_t i = 0; i < ids.size() && i < 16; ++i) {
            (void)tokenizer.tokenBytes(ids[i]);
            (void)tokenizer.tokenToId(tokenizer.idToToken(ids[i]));
        }
    }
    (void)tokenizer.decode({-1, 0, 1, 2, tokenizer.vocabSize(), INT32_MAX});
}

nlohmann::json jsonOf(std::string_view text) {
    return nlohmann::json::parse(text, nullptr, false);
}

}  // namespace

void safetensors(std::string_view bytes) {
    const auto tensors = parseSafetensorsHeader(asBytes(bytes), int64_t(bytes.size()), "f");
    requireMessage(tensors.status());
    if (!tensors) return;
    for (const SourceTensor& tensor : *tensors) {
        require(tensor.offset >= 8 && tensor.bytes >= 0 &&
                    tensor.offset + tensor.bytes <= int64_t(bytes.size()),
                "tensors lie within the file");
    }
}

void gguf(std::string_view bytes) {
    bool more = false;
    const auto header = parseGgufHeader(asBytes(bytes), int64_t(bytes.size()), "f", more);
    requireMessage(header.status());
    if (!header) return;
    for (const SourceTensor& tensor : header->tensors) {
        require(tensor.offset >= 0 && tensor.bytes >= 0 &&
                    tensor.offset + tensor.bytes <= int64_t(bytes.size()),
                "tensors lie within the file");
    }
    const auto json = ggufTokenizerJson(*header);
    requireMessage(json.status());
    if (!json) return;
    const auto tokenizer = Tokenizer::parse(*json, "tokenizer.json");
    requireMessage(tokenizer.status());
    if (tokenizer) useTokenizer(**tokenizer, kText);
}

void tokenizer(std::string_view bytes) {
    const auto [json, text] = cutAtZero(bytes);
    const auto tokenizer = Tokenizer::parse(json, "tokenizer.json");
    requireMessage(tokenizer.status());
    if (tokenizer) useTokenizer(**tokenizer, text.empty() ? kText : text);
}

void chatTemplate(std::string_view bytes) {
    const auto [source, messages] = cutAtZero(bytes);
    const auto parsed = ChatTemplate::parse(source, "t");
    requireMessage(parsed.status());
    if (!parsed) return;
    auto context = nlohmann::ordered_json::parse(messages, nullptr, false);
    if (!context.is_object()) {
        context = nlohmann::ordered_json::parse(
            R"({"messages":[{"role":"system","content":"s"},{"role":"user","content":"hi"}],)"
            R"("add_generation_prompt":true,"bos_token":"<s>"})");
    }
    std::tm now{};
    now.tm_year = 124;
    now.tm_mday = 1;
    requireMessage((*parsed)->render(context, {.now = now}).status());
}

void hfConfig(std::string_view bytes) {
    const auto [first, second] = cutAtZero(bytes);
    const nlohmann::json config = jsonOf(first), generation = jsonOf(second);
    if (config.is_discarded()) return;
    const auto read =
        readHfConfig(config, generation.is_discarded() ? nlohmann::json() : generation, "f");
    requireMessage(read.status());
    if (!read) return;
    const nlohmann::json written = jsonOf(writeHfConfig(read->config));
    require(!written.is_discarded(), "a written config is JSON");
    const auto again = readHfConfig(written, nullptr, "f");
    require(again.ok(), again ? "" : again.status().message().c_str());
}

void modelJson(std::string_view bytes) {
    const auto info = parseModelJson(bytes, "f");
    requireMessage(info.status());
    if (!info) return;
    const std::string written = writeModelJson(*info);
    const auto again = parseModelJson(written, "f");
    require(again.ok(), again ? "" : again.status().message().c_str());
    require(writeModelJson(*again) == written, "a written model.json is read as it was");
}

}  // namespace colibri::fuzz
