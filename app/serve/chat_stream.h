// SPDX-License-Identifier: GPL-3.0-or-later
// Reads the streamed reply of any OpenAI-compatible server for its metrics. Servers
// differ: line ends are LF, CRLF or CR, events may be comments or pings, bytes arrive in pieces of
// any size, a character may be split between two events, reasoning has several names, and the
// counts are in several fields or missing. The reader ignores what does not have the expected form.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>

#include "profiler/loadtest/load_run.h"

namespace colibri::serve {

class ChatStream {
public:
    // Adds the counts and the times of the pieces to `reply`, which must outlive this.
    explicit ChatStream(LoadReply& reply) : m_reply(reply) {}

    void push(std::string_view bytes);
    // Whether the stream consisted of events.
    bool begun() const { return m_begun; }
    // Whether some event was part of a chat reply.
    bool understood() const { return m_understood; }
    // Whether the reply is complete.
    bool ended() const { return m_ended; }

private:
    void line(std::string_view line);
    void event(const nlohmann::json& event);
    void usageOf(const nlohmann::json& object);
    void choice(const nlohmann::json& choice);

    LoadReply& m_reply;
    std::string m_line;  // incomplete line
    std::string m_data;  // lines of an event that are not complete JSON yet
    bool m_afterCr = false, m_begun = false, m_understood = false, m_ended = false;
};

}  // namespace colibri::serve
