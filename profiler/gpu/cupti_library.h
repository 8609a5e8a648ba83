// SPDX-License-Identifier: Apache-2.0
// CUPTI, loaded at run time. The library is one per process, so all sources share one object, which
// stays until the process ends. When the last source has gone, CUPTI detaches from the process.
#pragma once

#include <memory>
#include <string>

#include "engine/base/mutex.h"
#include "engine/base/status.h"
#include "profiler/gpu/cupti_functions.h"

namespace colibri {

// Any thread.
class CuptiLibrary {
public:
    // Errors: Unsupported with reason and remedy: not installed, an entry point is missing, another
    // version. `path`: see GpuLibraryPaths.
    static Result<std::shared_ptr<CuptiLibrary>> open(const std::string& path = {});
    CuptiLibrary(const cupti::Functions& functions, uint32_t version, std::string path);
    CuptiLibrary(const CuptiLibrary&) = delete;
    CuptiLibrary& operator=(const CuptiLibrary&) = delete;

    // REQUIRES, for all but getVersion, getTimestamp and the host functions: a CudaDriver is open.
    const cupti::Functions& fn() const { return m_functions; }
    std::string version() const;  // "13.0"
    const std::string& path() const { return m_path; }

    // Each source is a user while it may hold a part of CUPTI. If one of them has subscribed, CUPTI
    // detaches from the process when the last one is removed: earlier, it would take the parts of
    // the others; and without a subscription, those of another tool.
    // REQUIRES, when the last user is removed: no CUDA call is in progress.
    void addUser();
    void removeUser();
    void setSubscribed();
    // CUPTI does not count the users of its profiler part; a second deinitialisation can crash.
    cupti::Result addProfilerUser();
    void removeProfilerUser();

    // Reason and remedy for a result of CUPTI. `what`: "kernels cannot be traced".
    Status status(cupti::Result result, const std::string& what) const;

private:
    const cupti::Functions m_functions;
    const uint32_t m_version;
    const std::string m_path;
    Mutex m_mutex;
    int m_users GUARDED_BY(m_mutex) = 0, m_profilerUsers GUARDED_BY(m_mutex) = 0;
    bool m_subscribed GUARDED_BY(m_mutex) = false;
};

}  // namespace colibri
