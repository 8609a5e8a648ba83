// SPDX-License-Identifier: Apache-2.0
// The text of a recorded request. A session file has token ids; the tokenizer of its model turns
// them into text.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "engine/text/tokenizer.h"
#include "profiler/playback/playback_facts.h"
#include "profiler/playback/time_rows.h"

namespace colibri {

struct RecordedToken {
    size_t end = 0;  // of its text in RecordedTurn::reply, in bytes
    double t = 0;    // seconds
    double gapMs = 0, stallMs = 0;
    double waitMs = 0;            // the longest wait of its step for an expert
    int layer = -1, expert = -1;  // of that wait; -1: none
};

struct RecordedTurn {
    std::string user;          // the newest message of the prompt
    std::string userUnknown;   // why it is not known; "": it is
    std::string reply;         // may contain invalid UTF-8
    std::string replyUnknown;  // why it is not known
    bool inReasoning = false;  // the prompt ends inside the reasoning part
    std::vector<RecordedToken> tokens;
    int64_t lookups = 0, hits = 0;
    double bytesRead = 0;  // by reads that ended while the request ran; NaN: not recorded
    double gapSeconds = 0;
};

// Not thread-safe; uses the database of the caller, which must outlive it.
class PlaybackText {
public:
    // Loads the tokenizer from the folder of the session's model; without it the texts have a
    // reason. Errors: those of reading.
    static Result<std::unique_ptr<PlaybackText>> open(const SessionDb& db,
                                                      const PlaybackFacts& facts);
    // Why there are no texts; "": there are.
    const std::string& problem() const { return m_problem; }
    // Errors: those of reading.
    Result<RecordedTurn> read(const RecordedRequest& request);

private:
    Status readReply(const RecordedRequest& request, RecordedTurn* turn,
                     std::vector<int64_t>* steps);
    Status readWaits(const RecordedRequest& request, const std::vector<int64_t>& steps,
                     RecordedTurn* turn);
    Status readPrompt(const RecordedRequest& request, RecordedTurn* turn);
    std::string newestMessage(const std::vector<int32_t>& prompt) const;

    const SessionDb* m_db = nullptr;
    const PlaybackFacts* m_facts = nullptr;
    std::unique_ptr<Tokenizer> m_tokenizer;
    std::string m_problem;
    bool m_showSpecial = false;
    TimeRows m_tokenTimes, m_loadTimes;
};

}  // namespace colibri
