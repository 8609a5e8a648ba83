// SPDX-License-Identifier: Apache-2.0
#include "engine/runtime/knob_limits.h"

#include <algorithm>
#include <filesystem>
#include <system_error>

#include "engine/base/machine.h"
#include "engine/model/router_table.h"
#include "engine/store/numa.h"

namespace colibri {

namespace {

constexpr double kExpertShare = 0.6;  // of free memory, dense weights included
constexpr double kKvShare = 0.15;
constexpr int64_t kDefaultContext = 4096;

int64_t freeMemory() {
    const int64_t free = memoryFreeNow();
    return free > 0 ? free : memoryTotal() / 2;
}

KnobLimits expertLimits(const ContainerInfo& info, int64_t free) {
    const ModelConfig& c = info.config;
    KnobLimits l{1, std::max<int64_t>(1, c.numExperts), 0};
    const int64_t perExpert = info.expertRecordBytes() * c.moeLayerCount();
    const auto budget = int64_t(kExpertShare * double(free)) - info.denseBytes;
    const int64_t fits = perExpert > 0 ? std::max<int64_t>(0, budget) / perExpert : l.max;
    l.defaultValue = std::clamp(fits, std::min(2 * c.topK, l.max), l.max);
    return l;
}

KnobLimits contextLimits(const ContainerInfo& info, int64_t free) {
    const ModelConfig& c = info.config;
    const KnobRow& row = knobRow(KnobId::ContextLength);
    KnobLimits l{row.min, std::clamp<int64_t>(c.maxPositions, row.min, row.max), 0};
    // In f16: K and V, or the latent that replaces both.
    const int64_t perToken =
        (c.mla.kvRank ? 2 : 4) * c.numLayers * c.cachedHeads() * c.cachedKeyDim();
    const int64_t fits = perToken > 0 ? int64_t(kKvShare * double(free)) / perToken : l.max;
    const int64_t wanted = std::min(kDefaultContext, fits / row.step * row.step);
    l.defaultValue = std::clamp(wanted, std::min(row.step, l.max), l.max);
    return l;
}

}  // namespace

KnobDefaults::KnobDefaults(const ContainerInfo& info) {
    const int64_t free = freeMemory();
    for (const KnobRow& row : knobTable()) {
        m_limits[size_t(row.id)] = {row.min, row.max, row.defaultValue};
    }
    const auto at = [this](KnobId id) -> KnobLimits& { return m_limits[size_t(id)]; };
    at(KnobId::ExpertCacheSize) = expertLimits(info, free);
    at(KnobId::ContextLength) = contextLimits(info, free);
    at(KnobId::ComputeThreads) = {1, logicalCpus(), physicalCores()};
    at(KnobId::NumaNode).max = numaNodes() - 1;
    at(KnobId::PrefetchThreads).max = physicalCores();
}

KnobLimits knobLimitsFor(KnobId id, const ContainerInfo& info) {
    return KnobDefaults(info).limits(id);
}

std::string knobProblem(KnobId id, int64_t value, const KnobSurroundings& here) {
    const auto ask = [](const auto& problem, auto choice) {
        return problem ? problem(choice) : std::string();
    };
    if (!here.experts && knobRow(id).ofExperts) return "this model has no experts";
    switch (id) {
        case KnobId::RouterMode:
            if (RouterMode(value) != RouterMode::Table || here.routerTable) return {};
            return "no router table in this model";
        case KnobId::PrefetchSource:
            if (PrefetchSource(value) != PrefetchSource::RouterTable || here.routerTable) return {};
            return "no router table in this model";
        case KnobId::NumaMode:
            return ask(here.numaProblem, NumaMode(value));
        case KnobId::NumaNode:
            return ask(here.numaProblem, NumaMode::Bind);
        case KnobId::IoMode:
            return ask(here.ioProblem, IoMode(value));
        default:
            return {};
    }
}

std::string knobProblemFor(KnobId id, int64_t value, const ContainerInfo& info) {
    KnobSurroundings here;
    std::error_code ignored;
    here.experts = info.config.moeLayerCount() > 0;
    here.routerTable = std::filesystem::exists(info.dir / kRouterTableFile, ignored);
    here.numaProblem = [](NumaMode mode) {
        const bool works = mode == NumaMode::Off || numaNodes() > 1;
        return works ? std::string() : numaNodesText(numaNodes());
    };
    return knobProblem(id, value, here);
}

}  // namespace colibri
