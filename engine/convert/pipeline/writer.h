// SPDX-License-Identifier: Apache-2.0
// Executes a plan: writes dense.bin and the expert files to the partial folder. Needs the memory of
// encodeRuns.
#pragma once

#include "engine/base/progress.h"
#include "engine/convert/pipeline/journal.h"
#include "engine/convert/pipeline/output.h"
#include "engine/convert/pipeline/plan.h"
#include "engine/convert/pipeline/row_runs.h"
#include "engine/base/progress_gate.h"

namespace colibri {

class PlanWriter {
public:
    PlanWriter(const OpenedSource& source, Plan& plan, const std::filesystem::path& folder,
               Journal& journal, const DiskHooks& hooks, const ProgressFn& progress,
               const CancelFlag* cancel);

    // Bytes that the journal lists as done; write() writes the rest and fills in the plan's hashes.
    // Errors: BadInput (values that are not finite, or too large for the type, with the tensors),
    // NoSpace, IoError, Cancelled.
    int64_t bytesDone() const;
    Status write();

private:
    Status writeDense();
    Status writeLayer(ExpertsPart& part, size_t number);
    Status encode(std::span<const RowRun> runs, ValueFaults& faults, const TakeRun& take);
    Status append(OutputFile& out, std::span<const std::byte> bytes);
    Status flushDense(OutputFile& out, size_t from, size_t to);

    const OpenedSource& m_source;
    Plan& m_plan;
    std::filesystem::path m_folder;
    Journal& m_journal;
    const DiskHooks& m_hooks;
    ProgressGate m_gate;
    const CancelFlag* m_cancel;
    std::string m_stage;
    uint64_t m_done = 0, m_total = 0;
};

}  // namespace colibri
