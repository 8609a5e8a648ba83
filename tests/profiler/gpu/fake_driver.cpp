// SPDX-License-Identifier: GPL-3.0-or-later
// Plays the CUDA driver.
#include "fake_gpu.h"

namespace {

class FakeDriver final : public fake::Driver {
public:
    void reset() override {
        forget();
        version = 13000;
        devices = 1;
        contexts = 0;
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
#ifndef FAKE_INCOMPLETE
int cuDevicePrimaryCtxRelease_v2(int) {
    --g_driver.contexts;
    return g_driver.enter("cuDevicePrimaryCtxRelease_v2");
}
#endif
}
