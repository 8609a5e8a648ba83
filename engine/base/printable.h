// SPDX-License-Identifier: Apache-2.0
// Makes text from files, paths and servers safe to display: it cannot move a terminal's cursor,
// change its colours or reverse the direction of neighbouring text.
#pragma once

#include <string>
#include <string_view>

namespace colibri {

// Control characters (C0, DEL, C1), line separators and bidirectional embeddings, overrides and
// isolates become "\u001b"; bytes that are not UTF-8 become "\x9b". Everything else is unchanged,
// so a second call has no effect. In the text of a JSON document the value stays the same.
std::string printable(std::string_view text);

// The same, but keeps line feeds and tabs: for text of several lines.
std::string printableLines(std::string_view text);

}  // namespace colibri
