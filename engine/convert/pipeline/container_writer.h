// SPDX-License-Identifier: Apache-2.0
// Writes dense.bin and the expert files of a container. Needs the memory of encodeRuns.
#pragma once

#include "engine/convert/pipeline/row_runs.h"
#include "engine/convert/pipeline/weight_writer.h"

namespace colibri {

class ContainerWriter final : public WeightWriter {
public:
    explicit ContainerWriter(const Parts& parts);

    int64_t bytesTotal() const override { return int64_t(m_total); }
    int64_t bytesDone() const override;
    int64_t files() const override { return int64_t(m_plan.layers.size()) + 1; }
    Status write() override;  // also fills in the plan's hashes

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
