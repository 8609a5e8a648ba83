// SPDX-License-Identifier: Apache-2.0
#include "engine/convert/synth/synth_text.h"

#include <nlohmann/json.hpp>

namespace colibri {

namespace {

using OrderedJson = nlohmann::ordered_json;

constexpr const char* kTurnStart = "<|im_start|>";
constexpr const char* kTurnEnd = "<|im_end|>";

std::string utf8(uint32_t c) {
    if (c < 0x80) return std::string(1, char(c));
    return {char(0xc0 | c >> 6), char(0x80 | (c & 0x3f))};
}

// The character of a byte in byte-level BPE: printable ones are unchanged, the others are numbered
// from U+0100 on.
std::string byteCharacter(int byte) {
    const auto plain = [](int b) {
        return (b >= '!' && b <= '~') || (b >= 0xa1 && b <= 0xac) || (b >= 0xae && b <= 0xff);
    };
    if (plain(byte)) return utf8(uint32_t(byte));
    uint32_t before = 0;
    for (int b = 0; b < byte; ++b) before += !plain(b);
    return utf8(0x100 + before);
}

OrderedJson special(int32_t id, const char* text) {
    return {{"id", id},        {"content", text},     {"single_word", false}, {"lstrip", false},
            {"rstrip", false}, {"normalized", false}, {"special", true}};
}

}  // namespace

std::string synthTokenizerJson(int64_t vocab) {
    OrderedJson words = OrderedJson::object();
    for (int b = 0; b < kSynthBytes; ++b) words[byteCharacter(b)] = b;
    words[kTurnStart] = kSynthTurnStart;
    words[kTurnEnd] = kSynthTurnEnd;
    std::string text = words.dump();
    // JSON objects insert keys one by one, which is too slow for a whole vocabulary.
    text.pop_back();
    for (int64_t id = kSynthMinVocab; id < vocab; ++id) {
        text += ",\"" + byteCharacter(' ') + "w" + std::to_string(id) + "\":" + std::to_string(id);
    }
    const OrderedJson level = {{"type", "ByteLevel"},
                               {"add_prefix_space", false},
                               {"trim_offsets", true},
                               {"use_regex", true}};
    const OrderedJson added = OrderedJson::array(
        {special(kSynthTurnStart, kTurnStart), special(kSynthTurnEnd, kTurnEnd)});
    return "{\"version\":\"1.0\",\"truncation\":null,\"padding\":null,\"added_tokens\":" +
           added.dump() + ",\"normalizer\":null,\"pre_tokenizer\":" + level.dump() +
           ",\"post_processor\":null,\"decoder\":" + level.dump() +
           ",\"model\":{\"type\":\"BPE\",\"dropout\":null,\"unk_token\":null,"
           "\"continuing_subword_prefix\":null,\"end_of_word_suffix\":null,\"fuse_unk\":false,"
           "\"byte_fallback\":false,\"vocab\":" +
           text + "},\"merges\":[]}}\n";
}

std::string synthChatTemplate() {
    return "{% for message in messages %}<|im_start|>{{ message.role }}\n"
           "{{ message.content }}<|im_end|>\n{% endfor %}"
           "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}";
}

}  // namespace colibri
