// SPDX-License-Identifier: GPL-3.0-or-later
// A part of the window that shows snapshots. The window's timer calls it.
#pragma once

#include <memory>

#include "profiler/metrics/snapshot.h"

namespace colibri::ui {

class SnapshotView {
public:
    // Shows the newest snapshot; nullptr if no model is loaded. Up to 30 times a second, on the GUI
    // thread, while the page of this view is shown.
    virtual void tick(const std::shared_ptr<const Snapshot>& newest) = 0;

protected:
    ~SnapshotView() = default;
};

}  // namespace colibri::ui
