// SPDX-License-Identifier: Apache-2.0
// One kernel, copy or fill on the GPU, with the work of the engine it belongs to.
#pragma once

#include <cstdint>
#include <string_view>

namespace colibri {

enum class GpuSpanKind : uint8_t { Kernel, CopyToGpu, CopyFromGpu, CopyOnGpu, CopyOther, Fill };
constexpr const char* gpuSpanKindName(GpuSpanKind kind) {
    constexpr const char* kNames[] = {"kernel",      "copy_to_gpu", "copy_from_gpu",
                                      "copy_on_gpu", "copy",        "fill"};
    return kNames[int(kind)];
}

struct GpuSpan {
    uint64_t startNs = 0, durationNs = 0;  // CLOCK_MONOTONIC, as in events
    GpuSpanKind kind = GpuSpanKind::Kernel;
    std::string_view name;  // of a kernel, without parameters; valid while its source lives
    uint64_t bytes = 0;     // of copies and fills
    uint32_t device = 0, stream = 0;
    uint32_t correlation = 0;  // joins it to the CUDA call that launched it
    uint64_t work = 0;         // gpuWorkOf() decodes it; 0: launched outside any GpuScope
};

}  // namespace colibri
