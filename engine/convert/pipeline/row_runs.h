// SPDX-License-Identifier: Apache-2.0
// Encodes rows of a source for output files: splits them into runs, reads, checks and encodes the
// runs on all cores, and passes them to the writer in order.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "engine/base/progress.h"
#include "engine/convert/source/source.h"

namespace colibri {

// Some rows of a tensor that are encoded together.
struct RowRun {
    const RowView* view;
    DType type;
    bool packed;  // in panels (kernels/packed.h); else row-major in f32, f16 or bf16
    int64_t row, rows;
    size_t tensor;     // the caller's index of it
    bool first, last;  // of its tensor
};

// Splits a tensor into runs of about 1 MiB as f32: a matrix in whole panels, others in rows.
void addRuns(std::vector<RowRun>& runs, size_t tensor, const RowView& view, DType type,
             bool packed);

// Collects the invalid values of a part of a model, so that one conversion reports all of them.
class ValueFaults {
public:
    void note(const std::string& tensor, const std::string& what);
    bool none() const { return m_count == 0; }
    Status status(const std::string& stage) const;  // BadInput with the list; ok if none

private:
    std::vector<std::string> m_lines;  // "tensor: what", the first few
    size_t m_count = 0;
};

// Calls take(run, its bytes) for all runs in order, on the calling thread. Values that are not
// finite are noted in `faults`; their encoding is undefined. Needs a few MiB of memory for each
// core. Errors: those of reading and of `take`; BadInput for values too large for the type;
// Cancelled.
using TakeRun = std::function<Status(const RowRun& run, std::span<const std::byte> bytes)>;
Status encodeRuns(const Checkpoint& checkpoint, std::span<const RowRun> runs, ValueFaults& faults,
                  const CancelFlag* cancel, const TakeRun& take);

}  // namespace colibri
