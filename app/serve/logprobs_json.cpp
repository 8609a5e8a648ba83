// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/serve/logprobs_json.h"

#include <algorithm>
#include <cmath>

namespace colibri::serve {

namespace {

std::string bytesOf(const Tokenizer* tokenizer, int32_t id) {
    return tokenizer ? tokenizer->tokenBytes(id) : std::string();
}

std::string escaped(const std::string& bytes) {
    constexpr char kHex[] = "0123456789abcdef";
    std::string out;
    for (const char c : bytes) {
        out += {'\\', 'x', kHex[uint8_t(c) >> 4], kHex[uint8_t(c) & 15]};
    }
    return out;
}

std::string nameOf(const std::string& bytes, int32_t id, const char* beforeBytes) {
    if (bytes.empty()) return "token_id:" + std::to_string(id);
    Utf8Assembler whole;
    const std::string text = whole.push(bytes) + whole.finish();
    return text == bytes ? bytes : beforeBytes + escaped(bytes);
}

double valueOf(const Logprob& p) {
    return std::isfinite(p.value) ? double(p.value) : -9999.0;
}

Json entry(const Tokenizer* tokenizer, const Logprob& p) {
    const std::string bytes = bytesOf(tokenizer, p.id);
    Json list = nullptr;
    if (!bytes.empty()) {
        list = Json::array();
        for (const char c : bytes) list.push_back(uint8_t(c));
    }
    return {{"token", nameOf(bytes, p.id, "")}, {"logprob", valueOf(p)}, {"bytes", list}};
}

}  // namespace

Json chatLogprob(const Tokenizer* tokenizer, const TokenLogprobs& token) {
    Json json = entry(tokenizer, token[0]);
    Json top = Json::array();
    for (size_t i = 1; i < token.size(); ++i) top.push_back(entry(tokenizer, token[i]));
    json["top_logprobs"] = std::move(top);
    return json;
}

Json CompletionLogprobs::next(std::span<const TokenLogprobs> tokens) {
    Json names = Json::array(), values = Json::array(), tops = Json::array(),
         offsets = Json::array();
    for (const TokenLogprobs& token : tokens) {
        const auto name = [&](const Logprob& p) {
            return nameOf(bytesOf(m_tokenizer, p.id), p.id, "bytes:");
        };
        names.push_back(name(token[0]));
        values.push_back(valueOf(token[0]));
        Json top = Json::object();
        for (size_t i = 1; i < token.size(); ++i) top[name(token[i])] = valueOf(token[i]);
        top[name(token[0])] = valueOf(token[0]);
        tops.push_back(std::move(top));
        offsets.push_back(m_offset);
        if (!m_tokenizer) continue;
        const std::string text = m_text.push(m_tokenizer->tokenBytes(token[0].id, true));
        m_offset += std::count_if(text.begin(), text.end(),
                                  [](char c) { return (uint8_t(c) & 0xc0) != 0x80; });
    }
    return {{"tokens", std::move(names)},
            {"token_logprobs", std::move(values)},
            {"top_logprobs", std::move(tops)},
            {"text_offset", std::move(offsets)}};
}

}  // namespace colibri::serve
