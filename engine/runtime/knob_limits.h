// SPDX-License-Identifier: Apache-2.0
// The range and default of each knob for one model on this machine, and choices that cannot work.
#pragma once

#include <array>
#include <functional>
#include <string>

#include "engine/knobs/knobs.h"
#include "engine/model/container.h"

namespace colibri {

// Free memory and limits at one moment, so that all knobs of a load are consistent.
class KnobDefaults {
public:
    explicit KnobDefaults(const ContainerInfo& info);
    KnobLimits limits(KnobId id) const { return m_limits[size_t(id)]; }

private:
    std::array<KnobLimits, kKnobCount> m_limits;
};

// What decides, besides the limits, whether a value can work. The functions return "" if it can.
struct KnobSurroundings {
    bool experts = true;  // false: a dense model
    bool routerTable = false;
    std::function<std::string(NumaMode)> numaProblem;
    std::function<std::string(IoMode)> ioProblem;
};
std::string knobProblem(KnobId id, int64_t value, const KnobSurroundings& here);

// The same for a model that is not loaded yet (load page, command line).
KnobLimits knobLimitsFor(KnobId id, const ContainerInfo& info);
std::string knobProblemFor(KnobId id, int64_t value, const ContainerInfo& info);

}  // namespace colibri
