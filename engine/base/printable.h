// SPDX-License-Identifier: Apache-2.0
// Text from files, paths and servers, made safe to show: it cannot move a terminal's cursor, change
// its colours or turn the direction of what stands beside it.
#pragma once

#include <string>
#include <string_view>

namespace colibri {

// Control characters (C0, DEL, C1), line separators and bidirectional embeddings, overrides and
// isolates become "\u001b"; bytes that are not UTF-8 become "\x9b". Everything else stays, so a
// second call changes nothing. In the text of a JSON document the value stays the same.
std::string printable(std::string_view text);

// The same, but line feeds and tabs stay: for text of several lines.
std::string printableLines(std::string_view text);

}  // namespace colibri
