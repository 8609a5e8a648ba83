// SPDX-License-Identifier: Apache-2.0
#include "profiler/gpu/gpu_library.h"

#include <dlfcn.h>
#include <link.h>

namespace colibri {

Result<GpuLibrary> GpuLibrary::open(const std::vector<std::string>& names) {
    GpuLibrary library;
    std::string reason;
    for (const std::string& name : names) {
        library.m_handle = dlopen(name.c_str(), RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
        if (library.m_handle) return library;
        const char* error = dlerror();
        if (reason.empty()) reason = error ? error : name + " cannot be loaded";
    }
    return Status(Code::Unsupported, reason);
}

void* GpuLibrary::find(const char* symbol) const {
    return dlsym(m_handle, symbol);
}

std::string GpuLibrary::path() const {
    link_map* map = nullptr;
    if (dlinfo(m_handle, RTLD_DI_LINKMAP, &map) != 0 || !map) return {};
    return map->l_name;
}

}  // namespace colibri
