// SPDX-License-Identifier: Apache-2.0
// Progress and cancellation of one export, counted in rows of the session.
#pragma once

#include <algorithm>
#include <cstdint>
#include <string>

#include "engine/base/progress_gate.h"
#include "engine/base/status.h"

namespace colibri {

class ExportRun {
public:
    // `progress` and `cancel` are borrowed; `cancel` may be null. `totalRows`: estimated.
    ExportRun(const ProgressFn& progress, const CancelFlag* cancel, uint64_t totalRows)
        : m_report([&progress](const Progress& p) {
              if (progress) progress({p.stage, p.done, p.total, "rows"});
          }),
          m_gate(m_report),
          m_cancel(cancel),
          m_total(totalRows) {}
    ExportRun(const ExportRun&) = delete;
    ExportRun& operator=(const ExportRun&) = delete;

    Status stage(std::string name) {
        m_stage = std::move(name);
        return check(true);
    }
    // Counts one row; looks at the clock and the cancel flag only now and then.
    Status row() { return (++m_rows & 0x3ff) != 0 ? Status() : check(false); }

private:
    Status check(bool always) {
        if (cancelled(m_cancel)) return {Code::Cancelled, "the export was cancelled"};
        m_gate.report(m_stage, std::min(m_rows, m_total), m_total, always);
        return {};
    }

    ProgressFn m_report;
    ProgressGate m_gate;
    const CancelFlag* m_cancel;
    uint64_t m_total, m_rows = 0;
    std::string m_stage;
};

}  // namespace colibri
