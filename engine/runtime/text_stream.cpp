// SPDX-License-Identifier: Apache-2.0
#include "engine/runtime/text_stream.h"

#include <algorithm>

namespace colibri {

TextStream::TextStream(std::vector<std::string> stops) : m_stops(std::move(stops)) {
    std::erase_if(m_stops, [](const std::string& s) { return s.empty(); });
}

std::string TextStream::show(std::string fresh) {
    m_text += fresh;
    return fresh;
}

std::string TextStream::push(std::string_view tokenBytes) {
    if (m_stopped) return {};
    m_held += m_assembler.push(tokenBytes);
    size_t stop = std::string::npos;
    for (const std::string& s : m_stops) stop = std::min(stop, m_held.find(s));
    if (stop != std::string::npos) {
        m_stopped = true;
        std::string fresh = m_held.substr(0, stop);
        m_held.clear();
        return show(std::move(fresh));
    }
    // Hold back the longest end that a stop string begins with.
    size_t hold = 0;
    for (const std::string& s : m_stops) {
        for (size_t n = std::min(s.size() - 1, m_held.size()); n > hold; --n) {
            if (m_held.compare(m_held.size() - n, n, s, 0, n) == 0) hold = n;
        }
    }
    // Never in the middle of a character: a stop string could end up as invalid UTF-8 otherwise.
    size_t cut = m_held.size() - hold;
    while (cut > 0 && cut < m_held.size() && (uint8_t(m_held[cut]) & 0xc0) == 0x80) --cut;
    std::string fresh = m_held.substr(0, cut);
    m_held.erase(0, cut);
    return show(std::move(fresh));
}

std::string TextStream::finish() {
    if (m_stopped) return {};
    std::string rest = std::move(m_held) + m_assembler.finish();
    m_held.clear();
    for (const std::string& s : m_stops) {
        if (const size_t at = rest.find(s); at != std::string::npos) {
            rest.resize(at);
            m_stopped = true;
        }
    }
    return show(std::move(rest));
}

}  // namespace colibri
