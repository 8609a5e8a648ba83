// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/serve/chat_stream.h"

#include <utility>

#include "engine/base/json_fields.h"
#include "engine/telemetry/telemetry.h"
#include "engine/unicode/unicode.h"

namespace colibri::serve {

namespace {

using Plain = nlohmann::json;

constexpr std::string_view kByteOrderMark = "\xef\xbb\xbf";
constexpr size_t kMostBytes = 16 << 20;  // limit for a line and for an event

// Replaces JSON escapes of lone surrogates, which the JSON parser rejects: some servers split a
// character between two events.
std::string withoutSurrogates(std::string text) {
    for (size_t at = 0; (at = text.find("\\u", at)) != text.npos; at += 6) {
        if (at + 6 > text.size()) break;
        const bool surrogate = std::string_view("dD").find(text[at + 2]) != text.npos &&
                               std::string_view("89abcdefABCDEF").find(text[at + 3]) != text.npos;
        if (surrogate) text.replace(at + 2, 4, "fffd");
    }
    return text;
}

std::optional<Plain> parsed(const std::string& data) {
    const std::string text = text::toValidUtf8(data);
    for (const std::string& form : {text, withoutSurrogates(text)}) {
        if (Result<Plain> json = parseJson(form, "event"); json.ok()) return std::move(*json);
    }
    return {};
}

// Whether a field is a non-empty string or list of parts.
bool hasText(const Plain& delta, const char* key) {
    const auto found = delta.find(key);
    if (found == delta.end()) return false;
    return (found->is_string() && !found->get_ref<const std::string&>().empty()) ||
           (found->is_array() && !found->empty());
}

const Plain* objectAt(const Plain& object, const char* key) {
    const auto found = object.find(key);
    return found != object.end() && found->is_object() ? &*found : nullptr;
}

std::optional<uint32_t> countAt(const Plain& object, const char* key) {
    const auto found = object.find(key);
    if (found == object.end()) return {};
    const std::optional<int64_t> number = wholeNumber(*found);
    if (!number || *number < 0 || *number > UINT32_MAX) return {};
    return uint32_t(*number);
}

}  // namespace

void ChatStream::push(std::string_view bytes) {
    while (!bytes.empty()) {
        if (std::exchange(m_afterCr, false) && bytes.front() == '\n') {
            bytes.remove_prefix(1);
            continue;
        }
        const size_t end = bytes.find_first_of("\r\n");
        m_line += bytes.substr(0, end);
        if (m_line.size() > kMostBytes) m_line.clear();
        if (end == bytes.npos) return;
        m_afterCr = bytes[end] == '\r';
        line(m_line);
        m_line.clear();
        bytes.remove_prefix(end + 1);
    }
}

void ChatStream::line(std::string_view line) {
    if (line.starts_with(kByteOrderMark)) line.remove_prefix(kByteOrderMark.size());
    if (line.empty()) m_data.clear();
    if (!line.starts_with("data:")) return;
    m_begun = true;
    line.remove_prefix(5);
    while (line.starts_with(' ')) line.remove_prefix(1);
    while (line.ends_with(' ')) line.remove_suffix(1);
    if (line == "[DONE]") {
        m_ended = true;
        return;
    }
    if (m_data.size() + line.size() > kMostBytes) m_data.clear();
    m_data += line;
    // Most servers write an event in one line, and some omit the empty line after it.
    if (const std::optional<Plain> json = parsed(m_data)) {
        if (json->is_object()) event(*json);
        m_data.clear();
    }
}

void ChatStream::usageOf(const Plain& object) {
    const Plain* usage = objectAt(object, "usage");
    if (!usage) return;
    if (const auto n = countAt(*usage, "prompt_tokens")) m_reply.promptTokens = n;
    if (const auto n = countAt(*usage, "completion_tokens")) m_reply.tokens = n;
}

void ChatStream::event(const Plain& event) {
    if (const auto error = event.find("error"); error != event.end() && !error->is_null()) {
        m_reply.error = "failed";
    }
    // llama.cpp sends these counts if usage was not requested or is not supported.
    if (const Plain* timings = objectAt(event, "timings"); timings && !m_reply.tokens) {
        m_reply.tokens = countAt(*timings, "predicted_n");
    }
    if (const Plain* groq = objectAt(event, "x_groq")) usageOf(*groq);
    usageOf(event);
    const auto choices = event.find("choices");
    if (choices == event.end() || !choices->is_array() || choices->empty()) return;
    if (choices->front().is_object()) choice(choices->front());
}

void ChatStream::choice(const Plain& choice) {
    m_understood = true;
    usageOf(choice);
    const auto reason = choice.find("finish_reason");
    if (reason != choice.end() && reason->is_string() &&
        !reason->get_ref<const std::string&>().empty())
        m_ended = true;
    const Plain* delta = objectAt(choice, "delta");
    if (!delta) return;
    for (const char* key : {"content", "reasoning_content", "reasoning", "refusal"}) {
        if (!hasText(*delta, key)) continue;
        m_reply.timesNs.push_back(monotonicNs());
        return;
    }
}

}  // namespace colibri::serve
