// SPDX-License-Identifier: Apache-2.0
#include "profiler/gpu/gpu_source.h"

#include <dlfcn.h>

#if COLIBRI_HAVE_NVML
#include <nvml.h>
#endif

namespace colibri {
namespace {

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

#if COLIBRI_HAVE_NVML
// NVML through dlopen, so that one binary starts with and without a driver.
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
        nvmlUtilization_t rates{};
        if (m_rates(m_device, &rates) != NVML_SUCCESS) return std::nullopt;
        return rates.gpu / 100.0;
    }

private:
    explicit Nvml(void* library) : m_library(library) {}

    template <typename Fn>
    bool bind(Fn& fn, const char* symbol) {
        fn = reinterpret_cast<Fn>(dlsym(m_library, symbol));
        return fn != nullptr;
    }

    // "" or why the GPU cannot be watched.
    std::string start() {
        decltype(&nvmlInit_v2) init = nullptr;
        decltype(&nvmlDeviceGetHandleByIndex_v2) handle = nullptr;
        decltype(&nvmlDeviceGetName) name = nullptr;
        decltype(&nvmlErrorString) errorText = nullptr;
        if (!bind(init, "nvmlInit_v2") || !bind(handle, "nvmlDeviceGetHandleByIndex_v2") ||
            !bind(name, "nvmlDeviceGetName") || !bind(errorText, "nvmlErrorString") ||
            !bind(m_rates, "nvmlDeviceGetUtilizationRates") || !bind(m_shutdown, "nvmlShutdown")) {
            return "the NVIDIA driver is too old for NVML 2";
        }
        if (nvmlReturn_t result = init(); result != NVML_SUCCESS) {
            return std::string("NVML did not start: ") + errorText(result);
        }
        m_started = true;
        if (nvmlReturn_t result = handle(0, &m_device); result != NVML_SUCCESS) {
            return std::string("no NVIDIA GPU: ") + errorText(result);
        }
        char text[NVML_DEVICE_NAME_BUFFER_SIZE] = {};
        if (name(m_device, text, sizeof text) == NVML_SUCCESS) m_name = text;
        nvmlUtilization_t rates{};
        if (nvmlReturn_t result = m_rates(m_device, &rates); result != NVML_SUCCESS) {
            return "the GPU reports no utilisation: " + std::string(errorText(result));
        }
        return {};
    }

    void* m_library;
    bool m_started = false;
    nvmlDevice_t m_device{};
    std::string m_name;
    decltype(&nvmlDeviceGetUtilizationRates) m_rates = nullptr;
    decltype(&nvmlShutdown) m_shutdown = nullptr;
};
#endif

}  // namespace

std::unique_ptr<GpuSource> GpuSource::probe() {
#if COLIBRI_HAVE_NVML
    return Nvml::open();
#else
    // Say which of the two is missing: the driver, or support in this build.
    void* library = dlopen("libnvidia-ml.so.1", RTLD_NOW | RTLD_LOCAL);
    if (!library) return std::make_unique<NoGpu>("no NVIDIA driver");
    dlclose(library);
    return std::make_unique<NoGpu>("this build has no CUDA support");
#endif
}

}  // namespace colibri
