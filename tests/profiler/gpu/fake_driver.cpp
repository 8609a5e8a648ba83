// SPDX-License-Identifier: GPL-3.0-or-later
// Plays the CUDA driver.
#include <unistd.h>

#include "fake_gpu.h"

namespace {

class FakeDriver final : public fake::Driver {
public:
    void reset() override {
        forget();
        version = 13000;
        devices = 1;
        contexts = allocations = 0;
        copiedToDevice = copiedToHost = 0;
    }
};

FakeDriver g_driver;

}  // namespace

extern "C" {

fake::Driver* fakeDriver() {
    return &g_driver;
}
int cuInit(unsigned) {
    return g_driver.enter("cuInit");
}
int cuDriverGetVersion(int* version) {
    *version = g_driver.version;
    return g_driver.enter("cuDriverGetVersion");
}
int cuDeviceGetCount(int* count) {
    *count = g_driver.devices;
    return g_driver.enter("cuDeviceGetCount");
}
int cuDeviceGet(int* device, int index) {
    *device = index;
    const int result = g_driver.enter("cuDeviceGet");
    return result ? result : index < g_driver.devices ? 0 : 101;
}
int cuDevicePrimaryCtxRetain(void** context, int) {
    const int result = g_driver.enter("cuDevicePrimaryCtxRetain");
    if (result == 0) ++g_driver.contexts;
    *context = &g_driver;
    return result;
}
int cuCtxPushCurrent_v2(void*) {
    return g_driver.enter("cuCtxPushCurrent_v2");
}
int cuCtxPopCurrent_v2(void** context) {
    *context = &g_driver;
    return g_driver.enter("cuCtxPopCurrent_v2");
}
int cuMemAllocHost_v2(void** memory, size_t) {
    const int result = g_driver.enter("cuMemAllocHost_v2");
    if (result == 0) ++g_driver.allocations;
    *memory = &g_driver;
    return result;
}
int cuMemFreeHost(void*) {
    --g_driver.allocations;
    return g_driver.enter("cuMemFreeHost");
}
int cuMemAlloc_v2(unsigned long long* memory, size_t) {
    const int result = g_driver.enter("cuMemAlloc_v2");
    if (result == 0) ++g_driver.allocations;
    *memory = 4096;
    return result;
}
int cuMemFree_v2(unsigned long long) {
    --g_driver.allocations;
    return g_driver.enter("cuMemFree_v2");
}
int cuMemcpyHtoD_v2(unsigned long long, const void*, size_t bytes) {
    usleep(1000);
    g_driver.copiedToDevice += bytes;
    return g_driver.enter("cuMemcpyHtoD_v2");
}
int cuMemcpyDtoH_v2(void*, unsigned long long, size_t bytes) {
    usleep(2000);
    g_driver.copiedToHost += bytes;
    return g_driver.enter("cuMemcpyDtoH_v2");
}
#ifndef FAKE_INCOMPLETE
int cuDevicePrimaryCtxRelease_v2(int) {
    --g_driver.contexts;
    return g_driver.enter("cuDevicePrimaryCtxRelease_v2");
}
#endif
}
