// SPDX-License-Identifier: Apache-2.0
// The requests of a session, with all that is needed to run them again.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "engine/base/progress.h"
#include "engine/base/status.h"
#include "engine/knobs/knobs.h"
#include "profiler/session/session_db.h"

namespace colibri {

struct ReplayedRequest {
    double arrivedS = 0;  // since the session began
    std::vector<int32_t> prompt, reply;
    // Knobs that were changed while it ran, or before it and after the previous one. A change takes
    // place when so many tokens of the reply exist.
    struct Change {
        size_t tokens;
        KnobId knob;
        int64_t requested;
    };
    std::vector<Change> changes;  // in the order of time
};

struct RecordedRequests {
    std::string model, modelDir, fingerprint;
    KnobValues knobs;                       // requested when the session began
    std::vector<ReplayedRequest> requests;  // in the order of arrival
    std::vector<std::string> notes;         // what was left out, and why

    int64_t tokens() const;  // of all replies
};

// Leaves out requests without a reply or whose prompt is not complete in the file, and the end of a
// reply after a token that was not recorded. Errors: those of reading; Cancelled; Unsupported (no
// request is left).
Result<RecordedRequests> readRecordedRequests(const SessionDb& session, const CancelFlag* cancel);

}  // namespace colibri
