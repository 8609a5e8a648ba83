// SPDX-License-Identifier: GPL-3.0-or-later
// Proves the GPU counters on a real GPU; tests/gpu-check builds and runs it. Prints a table. Exit
// codes: 0 all passed, 1 a check failed, 77 no usable GPU.
#include <cstdio>

#include "gpu_checks.h"
#include "gpu_work.h"
#include "profiler/gpu/cuda_driver.h"
#include "profiler/gpu/cupti_library.h"
#include "profiler/gpu/nvml_device.h"

using namespace colibri;

int main() {
    CheckTable table;
    const auto driver = CudaDriver::open();
    if (!driver) {
        std::printf("no usable GPU: %s\n", driver.status().text().c_str());
        return 77;
    }
    const auto device = NvmlDevice::open({}, 0);
    table.info("GPU", device ? (*device)->name() : device.status().text());
    table.info("driver", textOf("CUDA %d.%d, %d GPUs", (*driver)->version() / 1000,
                                (*driver)->version() % 1000 / 10, (*driver)->devices()));
    const auto cupti = CuptiLibrary::open();
    if (cupti) {
        table.info("CUPTI", (*cupti)->version() + " in " + (*cupti)->path());
    } else {
        table.notAvailable("CUPTI", cupti.status().text());
    }
    if (const int error = gpuWorkOpen(size_t(192) << 20); error != 0) {
        table.fail("memory for the checks", textOf("CUDA error %d", error));
        return 1;
    }
    checkActivity(table);
    checkCounters(table);
    gpuWorkClose();
    std::printf("%d checks failed\n", table.failed());
    return table.failed() ? 1 : 0;
}
