// SPDX-License-Identifier: Apache-2.0
// Regular expressions of tokenizer.json. They are written for Oniguruma (Ruby's syntax, Unicode);
// we translate where its meaning differs and run them with PCRE2.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "engine/base/status.h"

namespace colibri::text {

// A stretch of a text in bytes; `match` tells a match of a pattern from what lies between.
struct Span {
    size_t begin = 0, end = 0;
    bool match = false;
};

// The same expression in PCRE2's syntax. Unsupported: a construct that has no equal there.
Result<std::string> translateRegex(std::string_view pattern);
std::string escapeRegex(std::string_view literal);
// Whether PCRE2 knows a script of this name that can be asked for as {sc:NAME}.
bool isScriptName(std::string_view name);

// Compiled, immutable; any thread may match.
class Regex {
public:
    // Errors: BadInput or Unsupported with the pattern and the place in it.
    static Result<Regex> compile(std::string_view pattern);
    Regex(Regex&&) noexcept;
    Regex& operator=(Regex&&) noexcept;
    ~Regex();

    // All matches, left to right, and the stretches between them, which together are the text.
    // Empty matches are given as the reference does: not directly after another match.
    // A search that needs more steps than a sane pattern could (some hundred per byte) is given
    // up: what is left is one stretch without a match.
    std::vector<Span> spans(std::string_view text) const;

private:
    struct Impl;
    explicit Regex(std::unique_ptr<Impl> impl);
    std::unique_ptr<Impl> m_impl;
};

}  // namespace colibri::text
