// SPDX-License-Identifier: Apache-2.0
#include "profiler/gpu/copy_rates.h"

#include <chrono>
#include <cstddef>
#include <functional>
#include <memory>

#include "profiler/gpu/cuda_driver.h"
#include "profiler/gpu/gpu_library.h"

namespace colibri {
namespace {

constexpr size_t kCopyBytes = size_t(64) << 20;

// Functions of the driver for memory. Device addresses are 64-bit numbers.
struct MemoryFunctions {
    int (*contextRetain)(void**, int) = nullptr;
    int (*contextRelease)(int) = nullptr;
    int (*contextPush)(void*) = nullptr;
    int (*contextPop)(void**) = nullptr;
    int (*hostAllocate)(void**, size_t) = nullptr;
    int (*hostFree)(void*) = nullptr;
    int (*deviceAllocate)(unsigned long long*, size_t) = nullptr;
    int (*deviceFree)(unsigned long long) = nullptr;
    int (*copyToDevice)(unsigned long long, const void*, size_t) = nullptr;
    int (*copyToHost)(void*, unsigned long long, size_t) = nullptr;

    Status bind(const std::string& path) {
        Result<GpuLibrary> library = GpuLibrary::open({path.empty() ? "libcuda.so.1" : path});
        if (!library) return library.status();
        library->bind(contextRetain, "cuDevicePrimaryCtxRetain");
        library->bind(contextRelease, "cuDevicePrimaryCtxRelease_v2");
        library->bind(contextPush, "cuCtxPushCurrent_v2");
        library->bind(contextPop, "cuCtxPopCurrent_v2");
        library->bind(hostAllocate, "cuMemAllocHost_v2");
        library->bind(hostFree, "cuMemFreeHost");
        library->bind(deviceAllocate, "cuMemAlloc_v2");
        library->bind(deviceFree, "cuMemFree_v2");
        library->bind(copyToDevice, "cuMemcpyHtoD_v2");
        library->bind(copyToHost, "cuMemcpyDtoH_v2");
        if (library->missing().empty()) return {};
        return {Code::Unsupported, "the NVIDIA driver lacks " + library->missing(),
                "Update the driver to version 580 or later"};
    }
};

// A context, and memory on both sides, for the calling thread.
class CopyBuffers {
public:
    CopyBuffers(const MemoryFunctions& fn, int device) : m_fn(fn), m_device(device) {}
    ~CopyBuffers() {
        if (m_gpu != 0) (void)m_fn.deviceFree(m_gpu);
        if (m_host != nullptr) (void)m_fn.hostFree(m_host);
        if (m_pushed) (void)m_fn.contextPop(&m_context);
        if (m_retained) (void)m_fn.contextRelease(m_device);
    }
    CopyBuffers(const CopyBuffers&) = delete;
    CopyBuffers& operator=(const CopyBuffers&) = delete;

    Status make() {
        COLIBRI_TRY(check(m_fn.contextRetain(&m_context, m_device), "the GPU cannot be used"));
        m_retained = true;
        COLIBRI_TRY(check(m_fn.contextPush(m_context), "the GPU cannot be used"));
        m_pushed = true;
        // After an error the driver may have written an address all the same.
        void* host = nullptr;
        COLIBRI_TRY(
            check(m_fn.hostAllocate(&host, kCopyBytes), "the driver has no page-locked memory"));
        m_host = host;
        unsigned long long gpu = 0;
        COLIBRI_TRY(
            check(m_fn.deviceAllocate(&gpu, kCopyBytes), "the GPU has no memory for a copy"));
        m_gpu = gpu;
        return {};
    }
    int toGpu() { return m_fn.copyToDevice(m_gpu, m_host, kCopyBytes); }
    int fromGpu() { return m_fn.copyToHost(m_host, m_gpu, kCopyBytes); }

private:
    static Status check(int error, const char* what) {
        return error == 0 ? Status() : cudaStatus(error, what);
    }
    const MemoryFunctions& m_fn;
    const int m_device;
    bool m_retained = false, m_pushed = false;
    void* m_context = nullptr;
    void* m_host = nullptr;
    unsigned long long m_gpu = 0;
};

Result<double> rateOf(const std::function<int()>& copy, double seconds) {
    using Clock = std::chrono::steady_clock;
    if (const int error = copy(); error != 0) return cudaStatus(error, "a copy failed");  // warm-up
    const Clock::time_point start = Clock::now();
    double spent = 0, bytes = 0;
    while (spent < seconds) {
        if (const int error = copy(); error != 0) return cudaStatus(error, "a copy failed");
        bytes += double(kCopyBytes);
        spent = std::chrono::duration<double>(Clock::now() - start).count();
    }
    return bytes / spent;
}

}  // namespace

Result<GpuCopyRates> measureGpuCopies(int device, double seconds, const std::string& driver) {
    const auto opened = CudaDriver::open(driver);
    if (!opened) return opened.status();
    const Result<int> number = (*opened)->device(device);
    if (!number) return number.status();
    MemoryFunctions fn;
    COLIBRI_TRY(fn.bind(driver));
    CopyBuffers buffers(fn, *number);
    COLIBRI_TRY(buffers.make());
    const Result<double> to = rateOf([&] { return buffers.toGpu(); }, seconds);
    if (!to) return to.status();
    const Result<double> from = rateOf([&] { return buffers.fromGpu(); }, seconds);
    if (!from) return from.status();
    return GpuCopyRates{*to, *from};
}

}  // namespace colibri
