// SPDX-License-Identifier: Apache-2.0
#include "engine/base/format.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <cstdio>
#include <limits>

namespace colibri {
namespace {

std::string withCommas(std::string digits) {
    const size_t dot = digits.find('.');
    const size_t start = digits.starts_with('-') ? 1 : 0;
    for (size_t i = dot == std::string::npos ? digits.size() : dot; i > start + 3; i -= 3) {
        digits.insert(i - 3, ",");
    }
    return digits;
}

// `v` in the largest unit of which it is at least one.
std::string scaled(double v, double base, const char* const* units, int count) {
    if (!std::isfinite(v)) return "n/a";
    int unit = 0;
    while (unit + 1 < count && std::abs(v) >= base * 0.9995) {
        v /= base;
        ++unit;
    }
    return (unit == 0 ? formatFixed(v, 0) : formatSig(v)) + " " + units[unit];
}

}  // namespace

std::string formatCount(int64_t n) {
    return withCommas(std::to_string(n));
}

std::string formatFixed(double v, int decimals) {
    if (!std::isfinite(v)) return "n/a";
    // std::to_chars knows no locale. Room for the digits of the largest double and its decimals.
    std::array<char, 2 * std::numeric_limits<double>::max_exponent10> text;
    decimals = std::clamp(decimals, 0, 100);
    const double scale = std::pow(10.0, decimals);
    if (std::abs(v) < 0.5 / scale) v = 0;  // no "-0.0"
    const char* end =
        std::to_chars(text.data(), text.data() + text.size(), v, std::chars_format::fixed, decimals)
            .ptr;
    return withCommas(std::string(text.data(), size_t(end - text.data())));
}

namespace {

constexpr int kPlainBelow = 12;  // the power of ten from which a number is written as 1.5e12

}  // namespace

std::string formatSig(double v, int digits) {
    if (!std::isfinite(v)) return "n/a";
    if (v == 0) return "0";
    int magnitude = int(std::floor(std::log10(std::abs(v))));
    // 9.996 has the magnitude of 10.0 once it is rounded to three digits.
    if (std::abs(v) >= (10 - 5 * std::pow(10.0, -digits)) * std::pow(10.0, magnitude)) ++magnitude;
    if (magnitude >= kPlainBelow || magnitude <= -kPlainBelow / 2) {
        const double scale = std::pow(10.0, magnitude);
        std::string lead = formatFixed(v / scale, digits - 1);
        if (lead.find('.') != std::string::npos) lead.erase(lead.find_last_not_of('0') + 1);
        if (lead.back() == '.') lead.pop_back();
        return lead + "e" + std::to_string(magnitude);
    }
    return formatFixed(v, std::clamp(digits - 1 - magnitude, 0, 12));
}

std::string formatGiB(double bytes) {
    static constexpr const char* kUnits[] = {"B", "KiB", "MiB", "GiB", "TiB"};
    return scaled(bytes, 1024, kUnits, 5);
}

std::string formatRate(double bytesPerSecond) {
    static constexpr const char* kUnits[] = {"B/s", "kB/s", "MB/s", "GB/s", "TB/s"};
    return scaled(bytesPerSecond, 1000, kUnits, 5);
}

std::string formatMs(double ms) {
    if (!std::isfinite(ms)) return "n/a";
    if (std::abs(ms) >= 9999.5) return formatSig(ms / 1000) + " s";
    if (std::abs(ms) < 0.0995 && ms != 0) return formatSig(ms * 1000) + " us";
    return formatSig(ms) + " ms";
}

std::string formatPercent(double fraction, int decimals) {
    if (!std::isfinite(fraction)) return "n/a";
    return formatFixed(fraction * 100, decimals) + " %";
}

std::string formatClock(double seconds) {
    if (!std::isfinite(seconds)) return "n/a";
    const bool negative = seconds < 0;
    int64_t tenths = std::llround(std::abs(seconds) * 10);
    const int64_t hours = tenths / 36000, minutes = tenths / 600 % 60;
    std::array<char, 48> text;
    if (hours > 0) {
        std::snprintf(text.data(), text.size(), "%s%lld:%02lld:%02lld", negative ? "-" : "",
                      (long long)hours, (long long)minutes, (long long)(tenths / 10 % 60));
    } else {
        std::snprintf(text.data(), text.size(), "%s%02lld:%02lld.%lld", negative ? "-" : "",
                      (long long)minutes, (long long)(tenths / 10 % 60), (long long)(tenths % 10));
    }
    return text.data();
}

}  // namespace colibri
