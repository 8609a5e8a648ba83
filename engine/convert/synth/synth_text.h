// SPDX-License-Identifier: Apache-2.0
// The tokenizer and chat template of a synthetic model: bytes, chat control tokens, and a made-up
// word for every other id, so that any token has a text.
#pragma once

#include <cstdint>
#include <string>

namespace colibri {

constexpr int32_t kSynthBytes = 256;  // ids 0..255 are the bytes
constexpr int32_t kSynthTurnStart = kSynthBytes, kSynthTurnEnd = kSynthBytes + 1;
constexpr int64_t kSynthMinVocab = kSynthBytes + 2;

// REQUIRES: vocab >= kSynthMinVocab.
std::string synthTokenizerJson(int64_t vocab);
std::string synthChatTemplate();

}  // namespace colibri
