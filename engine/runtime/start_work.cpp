// SPDX-License-Identifier: Apache-2.0
#include "engine/runtime/start_work.h"

namespace colibri {

StartWork::StartWork(const ContainerInfo& info, ExpertStore& store, bool warmStart, bool calibrate_,
                     const std::atomic<bool>* cancel)
    : m_info(info), m_store(store), m_warmStart(warmStart) {
    const std::atomic<bool> never{false};
    m_calibration.reason = "not measured";
    if (calibrate_) calibrate(cancel ? *cancel : never);
    if (warmStart) warm();
}

void StartWork::calibrate(const std::atomic<bool>& cancel) {
    if (const auto kept = keptCalibration(m_info)) {
        m_calibration = *kept;
        return;
    }
    const Result<Calibration> measured = measureCalibration(m_info, cancel);
    if (!measured) {
        m_calibration.reason = measured.status().message();
        return;
    }
    m_calibration = *measured;
    // A cache folder that cannot be written only costs a measurement at the next start.
    (void)keepCalibration(m_info, m_calibration);
}

void StartWork::warm() {
    Result<std::vector<HotExpert>> list = readHotList(hotListPath(m_info), m_info);
    if (!list) {
        m_note = list.status().message();
        return;
    }
    m_earlier = std::move(*list);
    std::vector<uint32_t> keys;
    for (const HotExpert& expert : m_earlier) keys.push_back(expert.key);
    if (keys.empty()) return;
    if (const Status status = m_store.warm(std::move(keys)); !status.ok())
        m_note = status.message();
}

StartWork::~StartWork() {
    if (!m_warmStart || m_store.stats().lookups == 0) return;
    // If the list cannot be stored, the next start is just a cold one.
    try {
        const std::filesystem::path path = hotListPath(m_info);
        if (!path.empty())
            (void)writeHotList(path, m_info, mergeHotLists(m_earlier, m_store.lookupCounts()));
    } catch (const std::bad_alloc&) {
    }
}

}  // namespace colibri
