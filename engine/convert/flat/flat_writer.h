// SPDX-License-Identifier: Apache-2.0
// Writes a plan's tensors in the flat layout into the partial folder. Needs the memory of
// encodeRuns.
#pragma once

#include <string>
#include <vector>

#include "engine/convert/pipeline/row_runs.h"
#include "engine/convert/pipeline/weight_writer.h"

namespace colibri {

class FlatWriter final : public WeightWriter {
public:
    // `type`: f16 or bf16, the type of the plan. Names in dense.safetensors come from `naming`.
    FlatWriter(const Parts& parts, DType type, const Naming& naming);

    int64_t bytesTotal() const override { return int64_t(m_total); }
    int64_t bytesDone() const override;
    int64_t files() const override;
    Status write() override;

private:
    struct DenseTensor {
        const DensePart* part;
        std::string name;
        int64_t bytes;
    };

    std::string denseHeader() const;
    Status writeDense();
    Status writeLayer(const ExpertsPart& part, size_t number);
    Status encode(std::span<const RowRun> runs, const TakeRun& take);

    const OpenedSource& m_source;
    const Plan& m_plan;
    const DType m_type;
    std::filesystem::path m_folder;
    Journal& m_journal;
    const DiskHooks& m_hooks;
    ProgressGate m_gate;
    const CancelFlag* m_cancel;
    std::vector<DenseTensor> m_dense;
    int64_t m_denseBytes = 0, m_layerBytes = 0;
    std::string m_stage;
    uint64_t m_done = 0, m_total = 0;
};

}  // namespace colibri
