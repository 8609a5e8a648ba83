// SPDX-License-Identifier: Apache-2.0
// Chooses the counters that PM sampling collects on a kind of GPU. Needs CUPTI but no GPU, so the
// choice can be tested for every kind.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "profiler/gpu/cupti_library.h"

namespace colibri {

// In order of importance. A GPU collects in one pass only as many as its counters allow; further
// ones are left out from the end.
enum class PmMetric { SmActive, DramThroughput, GpuActive };
constexpr int kPmMetricCount = 3;
const char* pmMetricName(PmMetric metric);  // CUPTI's name

// The counters for one chip, and how to evaluate their samples. One thread at a time.
class PmConfig {
public:
    // `chip`: "GH100". `availability`: what the device allows, or empty. Errors: Unsupported with
    // reason and remedy: the chip is unknown, or does not count the activity of its SMs.
    static Result<std::unique_ptr<PmConfig>> create(std::shared_ptr<CuptiLibrary> cupti,
                                                    const std::string& chip,
                                                    const std::vector<uint8_t>& availability);
    ~PmConfig();
    PmConfig(const PmConfig&) = delete;
    PmConfig& operator=(const PmConfig&) = delete;

    int metrics() const { return int(m_names.size()); }  // the first so many of PmMetric
    const char** names() { return m_names.data(); }
    const std::vector<uint8_t>& image() const { return m_image; }
    // The values of one sample, in percent, in the order of PmMetric.
    cupti::Result evaluate(const std::vector<uint8_t>& counterData, size_t sample,
                           double (&values)[kPmMetricCount]);

private:
    explicit PmConfig(std::shared_ptr<CuptiLibrary> cupti) : m_cupti(std::move(cupti)) {}
    cupti::Result open(const std::string& chip, const std::vector<uint8_t>& availability);
    void close();
    cupti::Result tryMetrics(int count, size_t& passes);

    const std::shared_ptr<CuptiLibrary> m_cupti;
    void* m_host = nullptr;
    std::vector<const char*> m_names;
    std::vector<uint8_t> m_image;
};

}  // namespace colibri
