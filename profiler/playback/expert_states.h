// SPDX-License-Identifier: Apache-2.0
// Which experts were in memory at any time of a recorded session, from its reads and evictions, and
// how much each was used lately, from its routing.
//
// One pass over the reads and evictions keeps a checkpoint every few thousand rows. The state at a
// time is the checkpoint before it and the rows in between, so that a jump to any time reads a
// bounded number of rows.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "engine/base/progress.h"
#include "profiler/playback/playback_facts.h"
#include "profiler/playback/time_rows.h"

namespace colibri {

// Thread-safe: it does not change.
class ExpertCheckpoints {
public:
    // Errors: those of reading; Cancelled.
    static Result<std::shared_ptr<const ExpertCheckpoints>> make(const SessionDb& db,
                                                                 const PlaybackFacts& facts,
                                                                 const ProgressFn& progress,
                                                                 const CancelFlag* cancel);
    // Why the states are not known for any time; "": they are.
    const std::string& unknown() const { return m_unknown; }

    struct Checkpoint {
        double t;                        // states after all rows until here
        std::vector<uint64_t> resident;  // a bit for each cell
    };
    const Checkpoint& before(double t) const;
    size_t count() const { return m_checkpoints.size(); }
    static constexpr int64_t kRows = 4096;  // between two checkpoints

private:
    struct Pass;
    std::string m_unknown;
    std::vector<Checkpoint> m_checkpoints;  // by time; the first one is that of the start
};

// Reads the states from the file. Not thread-safe; uses the database of the caller.
class ExpertStates {
public:
    Status open(const SessionDb& db, const PlaybackFacts& facts);
    // Nullptr: the states are being read.
    void setCheckpoints(std::shared_ptr<const ExpertCheckpoints> checkpoints);
    void setFailed() { m_failed = true; }  // reads or evictions cannot be read
    // Fills residency, its reason and heat of a snapshot. Errors: those of reading.
    Status fill(double t, Snapshot* snapshot);
    int64_t rowsRead() const { return m_rowsRead; }  // by the newest fill()

private:
    Status readStates(double t, std::vector<Residency>* states);
    Status readHeat(double t, std::vector<float>* heat);

    const PlaybackFacts* m_facts = nullptr;
    std::shared_ptr<const ExpertCheckpoints> m_checkpoints;
    TimeRows m_loadTimes, m_evictionTimes, m_stepTimes;
    SessionRows m_loads, m_evictions, m_step;
    bool m_hasEvictions = false, m_hasSteps = false, m_failed = false;
    int64_t m_rowsRead = 0;
};

}  // namespace colibri
