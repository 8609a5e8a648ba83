// SPDX-License-Identifier: Apache-2.0
// One session of CUPTI's PM sampling: the hardware stores counters of the whole GPU at a fixed
// interval, and decode() reads them. There is at most one session for each GPU. While it runs, the
// GPU's clocks are locked.
#pragma once

#include <memory>
#include <vector>

#include "profiler/gpu/cuda_driver.h"
#include "profiler/gpu/cupti_library.h"
#include "profiler/gpu/pm_config.h"

namespace colibri {

struct PmSample {
    uint64_t durationNs = 0;
    double percent[kPmMetricCount];  // in the order of PmMetric; NaN: not collected
};

// One thread at a time.
class PmSession {
public:
    // Errors: Unsupported with reason and remedy, as CUPTI refuses: permission, other users of the
    // counters, an unsupported GPU, a counter that is not available.
    static Result<std::unique_ptr<PmSession>> start(std::shared_ptr<CudaDriver> driver,
                                                    std::shared_ptr<CuptiLibrary> cupti,
                                                    int deviceIndex);
    ~PmSession();
    PmSession(const PmSession&) = delete;
    PmSession& operator=(const PmSession&) = delete;

    // Appends the samples since the last call. Errors: the session has ended (the GPU is lost).
    Status decode(std::vector<PmSample>& out);
    uint64_t overflows() const { return m_overflows; }  // times that samples were lost
    int metrics() const { return m_config->metrics(); }

private:
    PmSession(std::shared_ptr<CudaDriver> driver, std::shared_ptr<CuptiLibrary> cupti)
        : m_driver(std::move(driver)), m_cupti(std::move(cupti)) {}
    Status open(int deviceIndex);
    Status checkDevice(int deviceIndex, std::string& chip, std::vector<uint8_t>& availability);
    Status configure();
    Status makeCounterData();
    cupti::Result initializeCounterData();
    cupti::Result decodeOnce(std::vector<PmSample>& out, bool& more);
    cupti::Result addSamples(std::vector<PmSample>& out);
    cupti::Result restart();

    const std::shared_ptr<CudaDriver> m_driver;
    const std::shared_ptr<CuptiLibrary> m_cupti;
    int m_device = -1;  // with a retained context
    bool m_user = false, m_profilerUser = false, m_started = false, m_first = true;
    std::unique_ptr<PmConfig> m_config;
    void* m_sampling = nullptr;
    std::vector<uint8_t> m_counterData;
    uint64_t m_overflows = 0;
};

}  // namespace colibri
