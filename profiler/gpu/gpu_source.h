// SPDX-License-Identifier: Apache-2.0
// Where SM utilisation comes from. The driver's library is loaded and probed at run time; every
// refusal keeps its reason, which the plot shows as "n/a: <reason>".
#pragma once

#include <memory>
#include <optional>
#include <string>

namespace colibri {

class GpuSource {
public:
    // Never fails: without a usable GPU, available() is false and reason() says why.
    static std::unique_ptr<GpuSource> probe();
    virtual ~GpuSource() = default;

    virtual bool available() const = 0;
    virtual std::string reason() const = 0;      // "no NVIDIA driver"; "" when available
    virtual std::string name() const = 0;        // device name; "" when not available
    virtual std::string provenance() const = 0;  // "NVML utilisation, 1 sample per 100 ms"
    // Share of time a kernel ran since the last sample, 0..1; none when the driver has no value.
    virtual std::optional<double> utilisation() = 0;
};

}  // namespace colibri
