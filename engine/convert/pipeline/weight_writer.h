// SPDX-License-Identifier: Apache-2.0
// Executes a plan: writes all weights of a model into the partial folder, in one of the layouts. A
// journal lists the finished parts, so that an interrupted conversion can resume.
#pragma once

#include <cstdint>
#include <filesystem>

#include "engine/base/progress.h"
#include "engine/base/progress_gate.h"
#include "engine/base/status.h"
#include "engine/convert/pipeline/journal.h"
#include "engine/convert/pipeline/output.h"
#include "engine/convert/pipeline/plan.h"

namespace colibri {

class WeightWriter {
public:
    // All must outlive the writer.
    struct Parts {
        const OpenedSource& source;
        Plan& plan;
        const std::filesystem::path& folder;
        Journal& journal;
        const DiskHooks& hooks;
        const ProgressFn& progress;
        const CancelFlag* cancel;
    };
    virtual ~WeightWriter() = default;

    virtual int64_t bytesTotal() const = 0;
    virtual int64_t bytesDone() const = 0;  // according to the journal
    virtual int64_t files() const = 0;      // of the weights
    // Writes the parts that the journal does not list. Errors: BadInput (values that are not
    // finite, or too large for the type, with the tensors), NoSpace, IoError, Cancelled.
    virtual Status write() = 0;
};

}  // namespace colibri
