// SPDX-License-Identifier: Apache-2.0
// Regular expressions of tokenizer.json. They use the syntax of Oniguruma (Ruby,
// Unicode); this class translates the differences and runs them with PCRE2.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "engine/base/status.h"

namespace colibri::text {

// A range of bytes of a text; `match`: a match of the pattern, false: the text between matches.
struct Span {
    size_t begin = 0, end = 0;
    bool match = false;
};

// The same expression in PCRE2's syntax. Unsupported: a construct without an equivalent.
Result<std::string> translateRegex(std::string_view pattern);
std::string escapeRegex(std::string_view literal);
// Whether PCRE2 supports a script of this name as {sc:NAME}.
bool isScriptName(std::string_view name);

// Compiled, immutable; any thread may match.
class Regex {
public:
    // Errors: BadInput or Unsupported with the pattern and the offset in it.
    static Result<Regex> compile(std::string_view pattern);
    Regex(Regex&&) noexcept;
    Regex& operator=(Regex&&) noexcept;
    ~Regex();

    // All matches, left to right, and the ranges between them, which together form the text. As in
    // the reference implementation, an empty match never directly follows another match.
    // A search that exceeds some hundred steps per byte, more than reasonable patterns need, stops:
    // the rest of the text is one range without a match.
    std::vector<Span> spans(std::string_view text) const;

private:
    struct Impl;
    explicit Regex(std::unique_ptr<Impl> impl);
    std::unique_ptr<Impl> m_impl;
};

}  // namespace colibri::text
