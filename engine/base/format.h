// SPDX-License-Identifier: Apache-2.0
// Formats numbers and units for messages, the command line and the window.
// Three significant digits in summaries, thousands with comma, a space before every unit and %,
// GiB = 2^30 and GB = 10^9, an unknown value is "n/a".
#pragma once

#include <cstdint>
#include <string>

namespace colibri {

std::string formatCount(int64_t n);                            // "1,062"
std::string formatFixed(double v, int decimals);               // "71.3"; NaN: "n/a"
std::string formatSig(double v, int digits = 3);               // "36.4", "0.0123", "1,230"
std::string formatGiB(double bytes);                           // "2.18 GiB", "4.64 MiB", "18.4 KiB"
std::string formatRate(double bytesPerSecond);                 // "4.90 GB/s", "25.0 MB/s"
std::string formatMs(double ms);                               // "36.2 ms", "0.450 ms", "12.3 s"
std::string formatPercent(double fraction, int decimals = 1);  // 0.713 -> "71.3 %"
std::string formatClock(double seconds);                       // "00:58.6", "1:02:05"

}  // namespace colibri
