// SPDX-License-Identifier: Apache-2.0
// The data that an engine keeps in the user's cache folder: the experts it used most, which the
// next start preloads, and the measured disk and memory rates of this machine.
#pragma once

#include <atomic>
#include <string>
#include <vector>

#include "engine/store/calibration.h"
#include "engine/store/expert_store.h"
#include "engine/store/hot_list.h"

namespace colibri {

class StartWork {
public:
    // Measures the rates that are not known yet (about 0.4 s), then starts the reads of the hot
    // list, which continue in the background. `info` and `store` must outlive this. `cancel`, if
    // not nullptr, ends a measurement early.
    StartWork(const ContainerInfo& info, ExpertStore& store, bool warmStart, bool calibrate,
              const std::atomic<bool>* cancel);
    ~StartWork();  // writes the hot list

    const Calibration& calibration() const { return m_calibration; }
    // Why the hot list of earlier runs was not used; "" if it was used or there is none.
    const std::string& note() const { return m_note; }

private:
    void calibrate(const std::atomic<bool>& cancel);
    void warm();

    const ContainerInfo& m_info;
    ExpertStore& m_store;
    const bool m_warmStart;
    std::vector<HotExpert> m_earlier;
    std::string m_note;
    Calibration m_calibration;
};

}  // namespace colibri
