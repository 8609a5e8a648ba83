// SPDX-License-Identifier: Apache-2.0
#include "profiler/gpu/pm_config.h"

namespace colibri {
namespace {

constexpr const char* kPmMetricNames[kPmMetricCount] = {
    "sm__cycles_active.avg.pct_of_peak_sustained_elapsed",
    "gpu__dram_throughput.avg.pct_of_peak_sustained_elapsed",
    "gr__cycles_active.sum.pct_of_peak_sustained_elapsed",
};
constexpr const char* kNoCounters = "PM sampling";

}  // namespace

const char* pmMetricName(PmMetric metric) {
    return kPmMetricNames[int(metric)];
}

Result<std::unique_ptr<PmConfig>> PmConfig::create(std::shared_ptr<CuptiLibrary> cupti,
                                                   const std::string& chip,
                                                   const std::vector<uint8_t>& availability) {
    const CuptiLibrary& library = *cupti;
    auto config = std::unique_ptr<PmConfig>(new PmConfig(std::move(cupti)));
    cupti::Result result = cupti::kSuccess;
    for (int count = kPmMetricCount; count > 0; --count) {
        // A host object keeps the metrics of an attempt, so each attempt has a new one.
        config->close();
        result = config->open(chip, availability);
        if (result != cupti::kSuccess) return library.status(result, kNoCounters);
        size_t passes = 0;
        result = config->tryMetrics(count, passes);
        if (result == cupti::kSuccess && passes == 1) return config;
    }
    if (result != cupti::kSuccess) return library.status(result, kNoCounters);
    return Status(Code::Unsupported,
                  "PM sampling: this GPU needs several passes to count the activity of its SMs",
                  "None: this kind of GPU does not measure it");
}

PmConfig::~PmConfig() {
    close();
}

cupti::Result PmConfig::open(const std::string& chip, const std::vector<uint8_t>& availability) {
    using Params = cupti::HostInitializeParams;
    auto params = cupti::sized<Params>(COLIBRI_CUPTI_SIZE(Params, host));
    params.profilerType = cupti::kProfilerPmSampling;
    params.chipName = chip.c_str();
    params.counterAvailability = availability.empty() ? nullptr : availability.data();
    const cupti::Result result = m_cupti->fn().hostInitialize(&params);
    m_host = result == cupti::kSuccess ? params.host : nullptr;
    return result;
}

void PmConfig::close() {
    if (!m_host) return;
    using Params = cupti::HostDeinitializeParams;
    auto params = cupti::sized<Params>(COLIBRI_CUPTI_SIZE(Params, host));
    params.host = m_host;
    (void)m_cupti->fn().hostDeinitialize(&params);
    m_host = nullptr;
}

cupti::Result PmConfig::tryMetrics(int count, size_t& passes) {
    const cupti::Functions& fn = m_cupti->fn();
    m_names.assign(kPmMetricNames, kPmMetricNames + count);

    using Add = cupti::HostAddMetricsParams;
    auto add = cupti::sized<Add>(COLIBRI_CUPTI_SIZE(Add, numMetrics));
    add.host = m_host;
    add.metricNames = m_names.data();
    add.numMetrics = m_names.size();
    if (const cupti::Result r = fn.hostAddMetrics(&add); r != cupti::kSuccess) return r;

    using Size = cupti::HostImageSizeParams;
    auto size = cupti::sized<Size>(COLIBRI_CUPTI_SIZE(Size, configImageSize));
    size.host = m_host;
    if (const cupti::Result r = fn.hostImageSize(&size); r != cupti::kSuccess) return r;

    m_image.assign(size.configImageSize, 0);
    using Image = cupti::HostImageParams;
    auto image = cupti::sized<Image>(COLIBRI_CUPTI_SIZE(Image, configImage));
    image.host = m_host;
    image.configImageSize = m_image.size();
    image.configImage = m_image.data();
    if (const cupti::Result r = fn.hostImage(&image); r != cupti::kSuccess) return r;

    using Passes = cupti::HostPassesParams;
    auto counted = cupti::sized<Passes>(COLIBRI_CUPTI_SIZE(Passes, numOfPasses));
    counted.configImageSize = m_image.size();
    counted.configImage = m_image.data();
    const cupti::Result result = fn.hostPasses(&counted);
    passes = counted.numOfPasses;
    return result;
}

cupti::Result PmConfig::evaluate(const std::vector<uint8_t>& counterData, size_t sample,
                                 double (&values)[kPmMetricCount]) {
    using Params = cupti::HostEvaluateParams;
    auto params = cupti::sized<Params>(COLIBRI_CUPTI_SIZE(Params, values));
    params.host = m_host;
    params.counterData = counterData.data();
    params.counterDataSize = counterData.size();
    params.rangeIndex = sample;
    params.metricNames = m_names.data();
    params.numMetrics = m_names.size();
    params.values = values;
    return m_cupti->fn().hostEvaluate(&params);
}

}  // namespace colibri
