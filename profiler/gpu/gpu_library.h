// SPDX-License-Identifier: Apache-2.0
// Loads a library of the NVIDIA driver or the CUDA Toolkit at run time, so that one binary starts
// on every machine. Not thread-safe.
#pragma once

#include <string>
#include <vector>

#include "engine/base/status.h"

namespace colibri {

// Where the libraries are. An empty path: the usual names and folders.
struct GpuLibraryPaths {
    std::string driver;  // libcuda.so.1
    std::string cupti;   // libcupti.so.13
    std::string nvml;    // libnvidia-ml.so.1
};

// A loaded library. It stays in the process: CUPTI and the driver keep threads and callbacks that
// would crash if their code were unmapped.
class GpuLibrary {
public:
    // The first of `names` that can be loaded. Errors: Unsupported with the loader's reason for the
    // first name.
    static Result<GpuLibrary> open(const std::vector<std::string>& names);

    // Sets `function` and returns true, or remembers the name of a symbol that is missing.
    template <typename Function>
    bool bind(Function*& function, const char* symbol) {
        function = reinterpret_cast<Function*>(find(symbol));
        if (!function) m_missing += (m_missing.empty() ? "" : ", ") + std::string(symbol);
        return function != nullptr;
    }
    const std::string& missing() const { return m_missing; }  // "cuInit, cuDeviceGet"; "" if none
    std::string path() const;                                 // of the file, as the loader found it

private:
    void* find(const char* symbol) const;
    void* m_handle = nullptr;
    std::string m_missing;
};

}  // namespace colibri
