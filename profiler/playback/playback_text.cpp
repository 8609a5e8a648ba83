// SPDX-License-Identifier: Apache-2.0
#include "profiler/playback/playback_text.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <string_view>

#include "engine/model/container.h"
#include "engine/text/reply_parts.h"

namespace colibri {
namespace {

constexpr size_t kMostPromptTokens = 1 << 20;
constexpr int64_t kMostWaitRows = 1 << 20;  // reads of one request

std::string_view trimmed(std::string_view text) {
    const char* const space = " \t\r\n";
    const size_t from = text.find_first_not_of(space);
    return from == std::string_view::npos
               ? std::string_view()
               : text.substr(from, text.find_last_not_of(space) + 1 - from);
}

enum class Speaker { Unknown, User, Other };

// The speaker whose name is all of `text`.
Speaker speakerOf(std::string_view text) {
    const std::string_view name = trimmed(text);
    for (const char* user : {"user", "human", "User", "Human"})
        if (name == user) return Speaker::User;
    for (const char* other : {"assistant", "model", "system", "developer", "tool", "Assistant"})
        if (name == other) return Speaker::Other;
    return Speaker::Unknown;
}

// A token that separates messages: special, or written as <|name|>.
bool separates(const Tokenizer& tokenizer, int32_t id) {
    if (tokenizer.isSpecial(id)) return true;
    const std::string text = tokenizer.idToToken(id);
    return text.size() > 4 && text.starts_with("<|") && text.ends_with("|>");
}

}  // namespace

Result<std::unique_ptr<PlaybackText>> PlaybackText::open(const SessionDb& db,
                                                         const PlaybackFacts& facts) {
    auto out = std::unique_ptr<PlaybackText>(new PlaybackText);
    out->m_db = &db;
    out->m_facts = &facts;
    COLIBRI_TRY(out->m_tokenTimes.open(db, "tokens"));
    COLIBRI_TRY(out->m_loadTimes.open(db, "loads"));
    const std::string folder = db.meta("model_dir");
    if (folder.empty()) {
        out->m_problem = "the session does not name the folder of its model";
        return out;
    }
    const auto container = openContainer(folder);
    if (!container) {
        out->m_problem =
            "the text needs the tokenizer of the model: " + container.status().message();
        return out;
    }
    const std::string fingerprint = db.meta("model_fingerprint");
    if (!fingerprint.empty() && container->fingerprint != fingerprint) {
        out->m_problem = folder + " has another model now than when the session was recorded";
        return out;
    }
    auto tokenizer = Tokenizer::load(folder);
    if (!tokenizer) {
        out->m_problem =
            "the text needs the tokenizer of the model: " + tokenizer.status().message();
        return out;
    }
    out->m_tokenizer = std::move(*tokenizer);
    // Then the tags around the reasoning would be missing.
    out->m_showSpecial = marksAreSpecial(*out->m_tokenizer);
    return out;
}

Result<RecordedTurn> PlaybackText::read(const RecordedRequest& request) {
    RecordedTurn turn;
    std::vector<int64_t> steps;
    COLIBRI_TRY(readReply(request, &turn, &steps));
    COLIBRI_TRY(readWaits(request, steps, &turn));
    COLIBRI_TRY(readPrompt(request, &turn));
    return turn;
}

Status PlaybackText::readReply(const RecordedRequest& request, RecordedTurn* turn,
                               std::vector<int64_t>* steps) {
    turn->replyUnknown = m_problem;
    if (request.admitted < m_facts->tokensFrom && turn->replyUnknown.empty())
        turn->replyUnknown = "tokens before were removed to keep the session file small";
    SessionRows rows;
    COLIBRI_TRY(rows.prepare(*m_db, "SELECT t, token, gap_ns, stall_ns, lookups, hits, " +
                                        m_db->columnOrNull("tokens", "step") +
                                        " FROM tokens WHERE rowid >= ? AND rowid < ? AND "
                                        "request = ? ORDER BY rowid"));
    rows.bind(m_tokenTimes.firstAt(request.admitted - kRowDisorder))
        .bind(m_tokenTimes.firstAt(request.done + kRowDisorder))
        .bind(int64_t(request.id));
    while (!m_tokenTimes.empty() && rows.next()) {
        if (m_tokenizer)
            turn->reply += m_tokenizer->tokenBytes(int32_t(rows.integer(1)), !m_showSpecial);
        RecordedToken token;
        token.end = turn->reply.size();
        token.t = rows.real(0);
        token.gapMs = double(rows.integer(2)) / 1e6;
        token.stallMs = double(rows.integer(3)) / 1e6;
        turn->gapSeconds += token.gapMs / 1e3;
        turn->lookups += rows.integer(4);
        turn->hits += rows.integer(5);
        turn->tokens.push_back(token);
        steps->push_back(rows.isNull(6) ? 0 : rows.integer(6));
    }
    if (!turn->tokens.empty() && request.admitted >= m_facts->tokensFrom)
        turn->replyUnknown = m_problem;
    return rows.status();
}

// The longest wait of each token's step, and the bytes that were read meanwhile.
Status PlaybackText::readWaits(const RecordedRequest& request, const std::vector<int64_t>& steps,
                               RecordedTurn* turn) {
    turn->bytesRead = std::numeric_limits<double>::quiet_NaN();
    if (m_facts->cells() == 0 || request.admitted < m_facts->detailFrom) return {};
    struct Wait {
        double ms = 0;
        int layer = -1, expert = -1;
    };
    std::map<int64_t, Wait> waits;
    SessionRows rows;
    COLIBRI_TRY(rows.prepare(*m_db, "SELECT t, layer, expert, need_ns, bytes, failed, " +
                                        m_db->columnOrNull("loads", "step") +
                                        " FROM loads WHERE rowid >= ? AND rowid < ?"));
    const int64_t first = m_loadTimes.firstAt(request.admitted);
    const int64_t end = m_loadTimes.firstAt(request.done);
    rows.bind(first).bind(std::min(end, first + kMostWaitRows));
    if (end - first <= kMostWaitRows) turn->bytesRead = 0;
    while (!m_loadTimes.empty() && rows.next()) {
        if (rows.integer(5) != 0) continue;
        turn->bytesRead += double(rows.integer(4));
        const double ms = double(rows.integer(3)) / 1e6;
        if (rows.isNull(6) || ms <= 0) continue;
        Wait& wait = waits[rows.integer(6)];
        if (ms > wait.ms) wait = {ms, int(rows.integer(1)), int(rows.integer(2))};
    }
    for (size_t i = 0; i < turn->tokens.size(); ++i) {
        const auto wait = waits.find(steps[i]);
        if (steps[i] == 0 || wait == waits.end()) continue;
        turn->tokens[i].waitMs = wait->second.ms;
        turn->tokens[i].layer = wait->second.layer;
        turn->tokens[i].expert = wait->second.expert;
    }
    return rows.status();
}

Status PlaybackText::readPrompt(const RecordedRequest& request, RecordedTurn* turn) {
    turn->userUnknown = m_problem;
    if (!m_db->has("prompts", "tokens")) {
        turn->userUnknown = "this session of an earlier program has no prompts";
        return {};
    }
    if (!m_tokenizer) return {};
    SessionRows rows;
    COLIBRI_TRY(rows.prepare(*m_db, "SELECT tokens FROM prompts WHERE request = ? ORDER BY first"));
    rows.bind(int64_t(request.id));
    std::vector<int32_t> prompt;
    while (rows.next() && prompt.size() < kMostPromptTokens) {
        for (auto ids = rows.blob(0); ids.size() >= 4; ids = ids.subspan(4))
            prompt.push_back(int32_t(uint32_t(ids[0]) | uint32_t(ids[1]) << 8 |
                                     uint32_t(ids[2]) << 16 | uint32_t(ids[3]) << 24));
    }
    turn->user = newestMessage(prompt);
    turn->inReasoning = endsInReasoning(*m_tokenizer, prompt);
    if (prompt.empty()) turn->userUnknown = "the session has no prompt of this request";
    return rows.status();
}

// The last message of the user in a rendered chat: templates separate messages by control tokens
// and name their speaker. Without those all of the prompt.
std::string PlaybackText::newestMessage(const std::vector<int32_t>& prompt) const {
    std::string newest, last;
    bool separated = false;
    Speaker speaker = Speaker::Unknown;
    for (size_t i = 0; i < prompt.size();) {
        size_t end = i;
        while (end < prompt.size() && !separates(*m_tokenizer, prompt[end])) ++end;
        const std::string text = m_tokenizer->decode(std::vector<int32_t>(
            prompt.begin() + std::ptrdiff_t(i), prompt.begin() + std::ptrdiff_t(end)));
        separated = separated || end < prompt.size();
        i = end + 1;
        if (trimmed(text).empty()) continue;
        if (speakerOf(text) != Speaker::Unknown) {  // its message follows
            speaker = speakerOf(text);
            continue;
        }
        const size_t line = text.find('\n');
        const bool named =
            line != std::string::npos && speakerOf(text.substr(0, line)) != Speaker::Unknown;
        if (named) speaker = speakerOf(text.substr(0, line));
        const std::string content(trimmed(named ? std::string_view(text).substr(line) : text));
        if (content.empty()) continue;
        if (speaker == Speaker::User) newest = content;
        if (speaker == Speaker::Unknown) last = content;
    }
    return !newest.empty() ? newest : last;
}

}  // namespace colibri
