// SPDX-License-Identifier: GPL-3.0-or-later
// A machine whose driver, CUPTI and NVML are played by the libraries of this folder. Each test that
// makes one begins with unchanged scripts.
#pragma once

#include "fake_gpu.h"
#include "profiler/gpu/gpu_library.h"

struct FakeMachine {
    fake::Driver& driver = fake::scriptOf<fake::Driver>(FAKE_DRIVER, "fakeDriver");
    fake::Cupti& cupti = fake::scriptOf<fake::Cupti>(FAKE_CUPTI, "fakeCupti");
    fake::Nvml& nvml = fake::scriptOf<fake::Nvml>(FAKE_NVML, "fakeNvml");
    colibri::GpuLibraryPaths libraries{
        .driver = FAKE_DRIVER, .cupti = FAKE_CUPTI, .nvml = FAKE_NVML};
};

// The position of a call among all calls; -1: there was none.
inline int positionOf(const fake::Script& script, const char* symbol) {
    const std::vector<std::string> calls = script.calls();
    const auto found = std::find(calls.begin(), calls.end(), symbol);
    return found == calls.end() ? -1 : int(found - calls.begin());
}
