// SPDX-License-Identifier: GPL-3.0-or-later
// Makes a chat fit the context of the model by leaving out turns, as the user chose. Plain
// functions; any thread.
#pragma once

#include <functional>
#include <nlohmann/json.hpp>
#include <vector>

#include "engine/base/status.h"

namespace colibri::ui {

enum class Overflow {
    Stop,        // nothing is left out; the request is refused
    DropOldest,  // the oldest turns
    CutMiddle,   // the turns after the first one
};

struct FittedChat {
    std::vector<int32_t> prompt;
    int leftOut = 0;  // messages
};

using EncodeChat =
    std::function<Result<std::vector<int32_t>>(const nlohmann::ordered_json& messages)>;

// The prompt of as many of `messages` as fit `room` tokens. System messages and the last turn
// always stay; if they do not fit either, the prompt is longer than `room`. `encode` is called
// about log2(turns) times. Errors: those of `encode`.
Result<FittedChat> fitChat(const nlohmann::ordered_json& messages, Overflow overflow, size_t room,
                           const EncodeChat& encode);

}  // namespace colibri::ui
