// SPDX-License-Identifier: Apache-2.0
// The source of SM utilisation. Loads and probes the driver's library at run time. If this fails,
// the plot shows "n/a: <reason>".
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
    virtual std::string reason() const = 0;      // "no NVIDIA driver"; "" if available
    virtual std::string name() const = 0;        // device name; "" if not available
    virtual std::string provenance() const = 0;  // "NVML utilisation, 1 sample per 100 ms"
    // Share of the time since the last sample in which a kernel ran, 0..1; none if the driver has
    // no value.
    virtual std::optional<double> utilisation() = 0;
};

}  // namespace colibri
