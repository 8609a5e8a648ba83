// SPDX-License-Identifier: Apache-2.0
#include "engine/unicode/utf8_assembler.h"

#include "engine/unicode/unicode.h"

namespace colibri {

std::string Utf8Assembler::push(std::string_view bytes) {
    m_pending += bytes;
    std::string out;
    size_t at = 0;
    while (at < m_pending.size()) {
        const text::Utf8Step step = text::nextUtf8(m_pending, at);
        if (step.incomplete) break;
        if (step.valid) {
            out.append(m_pending, at, step.bytes);
        } else {
            text::appendUtf8(out, text::kReplacement);
        }
        at += step.bytes;
    }
    m_pending.erase(0, at);
    return out;
}

std::string Utf8Assembler::finish() {
    // The held bytes are the beginning of one character, so one replacement character suffices.
    std::string out;
    if (!m_pending.empty()) text::appendUtf8(out, text::kReplacement);
    m_pending.clear();
    return out;
}

}  // namespace colibri
