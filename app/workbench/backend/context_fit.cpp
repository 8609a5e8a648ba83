// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/workbench/backend/context_fit.h"

#include <string>

namespace colibri::ui {
namespace {

using Messages = nlohmann::ordered_json;

bool hasRole(const Messages& message, const char* role) {
    return message.value("role", std::string()) == role;
}

// The index at which each turn begins. A turn is a message of the user and all that follows it.
std::vector<size_t> turnsOf(const Messages& messages) {
    std::vector<size_t> begins;
    for (size_t i = 0; i < messages.size(); ++i)
        if (hasRole(messages[i], "user")) begins.push_back(i);
    return begins;
}

// The messages without turns [from, to).
Messages without(const Messages& messages, size_t from, size_t to) {
    Messages out = Messages::array();
    for (size_t i = 0; i < messages.size(); ++i)
        if (i < from || i >= to || hasRole(messages[i], "system")) out.push_back(messages[i]);
    return out;
}

}  // namespace

Result<FittedChat> fitChat(const Messages& messages, Overflow overflow, size_t room,
                           const EncodeChat& encode) {
    auto whole = encode(messages);
    if (!whole) return whole.status();
    FittedChat best{std::move(*whole), 0};
    const std::vector<size_t> turns = turnsOf(messages);
    if (overflow == Overflow::Stop || best.prompt.size() <= room || turns.size() < 2) return best;
    // Leaves out n turns: those after the first one, and at last the first one too.
    const auto cut = [&](size_t n) {
        const bool middle = overflow == Overflow::CutMiddle && n + 1 < turns.size();
        const size_t first = middle ? 1 : 0;
        return without(messages, turns[first], turns[first + n]);
    };
    // Searches for the smallest number that is enough.
    size_t low = 1, high = turns.size() - 1;
    while (true) {
        const size_t n = low + (high - low) / 2;
        const Messages kept = cut(n);
        auto prompt = encode(kept);
        if (!prompt) return prompt.status();
        const bool fits = prompt->size() <= room;
        if (fits || n == high) best = {std::move(*prompt), int(messages.size() - kept.size())};
        if (fits)
            high = n;
        else
            low = n + 1;
        if (low >= high && (fits || low > high)) return best;
    }
}

}  // namespace colibri::ui
