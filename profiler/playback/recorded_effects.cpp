// SPDX-License-Identifier: Apache-2.0
#include "profiler/playback/recorded_effects.h"

#include <cctype>
#include <charconv>
#include <optional>
#include <string>

namespace colibri {
namespace {

constexpr std::string_view kMinus = "\u2212", kTimes = "\u00d7";
constexpr std::string_view kNotMeasured = "not measured: ";
constexpr std::string_view kInterval = " tok/s (95 %: ", kBasis = ", from ";

bool take(std::string_view* text, std::string_view what) {
    if (!text->starts_with(what)) return false;
    text->remove_prefix(what.size());
    return true;
}

// "+18.2", "−6.0", "1,150", "11.9"
std::optional<double> takeNumber(std::string_view* text) {
    const bool negative = take(text, kMinus) || take(text, "-");
    if (!negative) take(text, "+");
    std::string digits;
    size_t length = 0;
    for (; length < text->size(); ++length) {
        const char c = (*text)[length];
        // ".." separates the ends of an interval
        if (c == '.' && length + 1 < text->size() && (*text)[length + 1] == '.') break;
        if (c == ',' && !(length + 1 < text->size() && std::isdigit((*text)[length + 1]))) break;
        if (c != ',' && c != '.' && !std::isdigit(static_cast<unsigned char>(c))) break;
        if (c != ',') digits += c;
    }
    double value = 0;
    const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
    if (error != std::errc() || end != digits.data() + digits.size() || digits.empty())
        return std::nullopt;
    text->remove_prefix(length);
    return negative ? -value : value;
}

}  // namespace

bool readEffect(std::string_view text, Marker* marker) {
    if (take(&text, kNotMeasured)) {
        marker->effect = Marker::Effect::NotMeasured;
        marker->reason = text;
        return true;
    }
    const auto change = takeNumber(&text);
    const bool factor = change && take(&text, std::string(" ").append(kTimes));
    if (!change || (!factor && !take(&text, " %")) || !take(&text, kInterval)) return false;
    const auto low = takeNumber(&text);
    if (!low || !take(&text, "..")) return false;
    const auto high = takeNumber(&text);
    if (!high || !take(&text, ")")) return false;
    const auto share = [factor](double v) { return factor ? v - 1 : v / 100; };
    marker->effect = Marker::Effect::Known;
    marker->change = share(*change);
    marker->low = share(*low);
    marker->high = share(*high);
    if (take(&text, kBasis)) marker->validity = text.substr(0, text.find(';'));
    return true;
}

}  // namespace colibri
