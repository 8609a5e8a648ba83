// SPDX-License-Identifier: Apache-2.0
#include "profiler/gpu/gpu_source.h"

#include <dlfcn.h>

namespace colibri {
namespace {

// The part of NVML's stable C interface that is used here (see the NVML API reference). The library
// is loaded at run time, so these declarations avoid a build dependency on the CUDA Toolkit.
using NvmlDevice = void*;
struct NvmlUtilization {
    unsigned gpu, memory;  // percent
};
constexpr int kNvmlSuccess = 0;
constexpr unsigned kNvmlNameBytes = 96;

class NoGpu : public GpuSource {
public:
    explicit NoGpu(std::string reason) : m_reason(std::move(reason)) {}
    bool available() const override { return false; }
    std::string reason() const override { return m_reason; }
    std::string name() const override { return {}; }
    std::string provenance() const override { return {}; }
    std::optional<double> utilisation() override { return std::nullopt; }

private:
    std::string m_reason;
};

// Loads NVML with dlopen, so that one binary works with and without a driver.
class Nvml : public GpuSource {
public:
    static std::unique_ptr<GpuSource> open() {
        void* library = dlopen("libnvidia-ml.so.1", RTLD_NOW | RTLD_LOCAL);
        if (!library) return std::make_unique<NoGpu>("no NVIDIA driver");
        auto source = std::unique_ptr<Nvml>(new Nvml(library));
        std::string reason = source->start();
        if (!reason.empty()) return std::make_unique<NoGpu>(std::move(reason));
        return source;
    }
    ~Nvml() override {
        if (m_started) m_shutdown();
        dlclose(m_library);
    }
    bool available() const override { return true; }
    std::string reason() const override { return {}; }
    std::string name() const override { return m_name; }
    std::string provenance() const override {
        return "NVML utilisation: share of time in which any kernel ran";
    }
    std::optional<double> utilisation() override {
        NvmlUtilization rates{};
        if (m_rates(m_device, &rates) != kNvmlSuccess) return std::nullopt;
        return rates.gpu / 100.0;
    }

private:
    explicit Nvml(void* library) : m_library(library) {}

    template <typename Fn>
    bool bind(Fn& fn, const char* symbol) {
        fn = reinterpret_cast<Fn>(dlsym(m_library, symbol));
        return fn != nullptr;
    }

    // Returns "" or the reason why the GPU cannot be sampled.
    std::string start() {
        int (*init)() = nullptr;
        int (*handle)(unsigned, NvmlDevice*) = nullptr;
        int (*name)(NvmlDevice, char*, unsigned) = nullptr;
        const char* (*errorText)(int) = nullptr;
        if (!bind(init, "nvmlInit_v2") || !bind(handle, "nvmlDeviceGetHandleByIndex_v2") ||
            !bind(name, "nvmlDeviceGetName") || !bind(errorText, "nvmlErrorString") ||
            !bind(m_rates, "nvmlDeviceGetUtilizationRates") || !bind(m_shutdown, "nvmlShutdown")) {
            return "the NVIDIA driver is too old for NVML 2";
        }
        if (int result = init(); result != kNvmlSuccess) {
            return std::string("NVML did not start: ") + errorText(result);
        }
        m_started = true;
        if (int result = handle(0, &m_device); result != kNvmlSuccess) {
            return std::string("no NVIDIA GPU: ") + errorText(result);
        }
        char text[kNvmlNameBytes] = {};
        if (name(m_device, text, sizeof text) == kNvmlSuccess) m_name = text;
        NvmlUtilization rates{};
        if (int result = m_rates(m_device, &rates); result != kNvmlSuccess) {
            return "the GPU reports no utilisation: " + std::string(errorText(result));
        }
        return {};
    }

    void* m_library;
    bool m_started = false;
    NvmlDevice m_device{};
    std::string m_name;
    int (*m_rates)(NvmlDevice, NvmlUtilization*) = nullptr;
    int (*m_shutdown)() = nullptr;
};

}  // namespace

std::unique_ptr<GpuSource> GpuSource::probe() {
    return Nvml::open();
}

}  // namespace colibri
