// SPDX-License-Identifier: Apache-2.0
// Turns token bytes into text that may be shown: complete UTF-8 only, and nothing that could be the
// beginning of a stop string.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "engine/text/tokenizer.h"
#include "engine/unicode/utf8_assembler.h"

namespace colibri {

class TextStream {
public:
    explicit TextStream(std::vector<std::string> stops);

    // What may be shown after these bytes. stopped() turns true when a stop string is complete;
    // the text ends before it.
    std::string push(std::string_view tokenBytes);
    // The rest of the text, which was held back.
    std::string finish();

    bool stopped() const { return m_stopped; }
    const std::string& text() const { return m_text; }  // everything shown so far

private:
    std::string show(std::string fresh);

    Utf8Assembler m_assembler;
    std::vector<std::string> m_stops;
    std::string m_held;
    std::string m_text;
    bool m_stopped = false;
};

}  // namespace colibri
