// SPDX-License-Identifier: Apache-2.0
// Rows of a source on their way into files: cut into runs, which are read, looked over and encoded
// on all cores, and taken in order by whoever writes them.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "engine/base/progress.h"
#include "engine/convert/source/source.h"

namespace colibri {

// Some rows of a tensor, encoded in one go.
struct RowRun {
    const RowView* view;
    DType type;
    bool packed;  // in panels (kernels/packed.h); else row-major in f32, f16 or bf16
    int64_t row, rows;
    size_t tensor;     // the caller's number of it
    bool first, last;  // of its tensor
};

// A tensor cut into runs: a matrix in whole panels, others in rows, each of about a MiB as f32.
void addRuns(std::vector<RowRun>& runs, size_t tensor, const RowView& view, DType type,
             bool packed);

// What is wrong with the values of a part of a model, so that one run names all of it.
class ValueFaults {
public:
    void note(const std::string& tensor, const std::string& what);
    bool none() const { return m_count == 0; }
    Status status(const std::string& stage) const;  // BadInput with the list; ok when none

private:
    std::vector<std::string> m_lines;  // "tensor: what", the first few
    size_t m_count = 0;
};

// Calls take(run, its bytes) for all runs in order, on the calling thread. Values that are not
// finite are noted in `faults`, and what is encoded for them means nothing. Memory: a few MiB for
// each core. Errors: those of reading and of `take`; BadInput for values too large for the type;
// Cancelled.
using TakeRun = std::function<Status(const RowRun& run, std::span<const std::byte> bytes)>;
Status encodeRuns(const Checkpoint& checkpoint, std::span<const RowRun> runs, ValueFaults& faults,
                  const CancelFlag* cancel, const TakeRun& take);

}  // namespace colibri
