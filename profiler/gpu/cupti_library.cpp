// SPDX-License-Identifier: Apache-2.0
#include "profiler/gpu/cupti_library.h"

#include <dlfcn.h>

#include <algorithm>
#include <fstream>
#include <map>
#include <vector>

#include "engine/base/mutex.h"
#include "profiler/gpu/gpu_library.h"

namespace colibri {
namespace {

// The newest first. The one of CUDA 12 is loaded only to say that it is too old.
const std::vector<std::string> kCuptiNames = {
    "libcupti.so.13", "/usr/local/cuda/lib64/libcupti.so.13",
    "/usr/local/cuda/extras/CUPTI/lib64/libcupti.so.13", "libcupti.so.12"};

Mutex g_mutex;
std::map<std::string, std::shared_ptr<CuptiLibrary>> g_open GUARDED_BY(g_mutex);  // by path

struct CuptiErrorRow {
    cupti::Result result;
    const char *reason, *remedy;
};
// The meaning of each result for a user, and what helps.
constexpr CuptiErrorRow kCuptiErrors[] = {
    {cupti::kHardware, "the GPU is lost or reports a hardware error",
     "Look for Xid messages in dmesg; restart the machine or reset the GPU"},
    {cupti::kNotCompatible, "CUPTI does not work with this driver",
     "Update the driver to version 580 or later"},
    {cupti::kNotInitialized, "CUPTI does not start with this driver",
     "Check that nvidia-smi works, and that CUPTI and the driver are of CUDA 13"},
    {cupti::kInvalidMetricName, "this GPU has no such counter",
     "None: this kind of GPU does not measure it"},
    {cupti::kHardwareBusy, "another program uses the GPU's counters",
     "Close Nsight, or pause DCGM: dcgmi profile --pause"},
    {cupti::kNotSupported, "this GPU does not support it", "None on this GPU"},
    {cupti::kVirtualisedDevice, "a virtual GPU does not support it",
     "Use the GPU without virtualisation"},
    {cupti::kVirtualisedPrivileges, "the host of this virtual GPU does not allow it",
     "Ask its administrator to enable profiling for this virtual machine"},
    {cupti::kConfidentialComputing, "confidential computing is on", "Turn it off to use counters"},
    {cupti::kMiningDevice, "this GPU is a mining processor without counters", "None on this GPU"},
    {cupti::kMigDevice, "the GPU is split into instances (MIG)", "Turn MIG off: nvidia-smi -mig 0"},
    {cupti::kSliDevice, "SLI is on", "Turn SLI off"},
    {cupti::kWslDevice, "Windows' subsystem for Linux does not support it",
     "Update Windows and the driver, or use Linux"},
    {cupti::kInvalidChipName, "this CUPTI does not know the GPU",
     "Install the CUPTI of a newer CUDA 13"},
};

std::string resultName(const cupti::Functions& fn, cupti::Result result) {
    const char* text = nullptr;
    if (fn.getResultString && fn.getResultString(result, &text) == cupti::kSuccess && text) {
        return text;
    }
    return "CUPTI error " + std::to_string(int(result));
}

// CUPTI opens the libraries beside it by their bare names. They are found only if they are loaded
// already or on the loader's path.
void loadNeighbours(const std::string& path) {
    const size_t slash = path.rfind('/');
    if (slash == std::string::npos) return;
    for (const char* name : {"libnvperf_host.so", "libnvperf_target.so"}) {
        (void)dlopen((path.substr(0, slash + 1) + name).c_str(), RTLD_NOW | RTLD_LOCAL);
    }
}

Status privilegeStatus() {
    constexpr const char* kPage = "developer.nvidia.com/ERR_NVGPUCTRPERM";
    // The driver says whether it reserves the counters for administrators.
    std::ifstream params("/proc/driver/nvidia/params");
    std::string line, setting;
    while (std::getline(params, line)) {
        if (line.starts_with("RmProfilingAdminOnly:")) setting = " (" + line + ")";
    }
    return {Code::Unsupported, "the driver allows GPU counters to administrators only" + setting,
            "Write \"options nvidia NVreg_RestrictProfilingToAdminUsers=0\" to "
            "/etc/modprobe.d/nvidia-counters.conf, run update-initramfs -u and restart the "
            "machine; in a container, start it with --cap-add SYS_ADMIN; see " +
                std::string(kPage)};
}

Status versionStatus(uint32_t version, const std::string& path) {
    const bool older = version < cupti::kOldestVersion;
    return {Code::Unsupported,
            "CUPTI in " + path + (older ? " is too old" : " is newer than this program knows") +
                " (interface " + std::to_string(version) + ", needed: CUDA 13)",
            "Install CUPTI of CUDA 13: package cuda-cupti-13-0"};
}

}  // namespace

Result<std::shared_ptr<CuptiLibrary>> CuptiLibrary::open(const std::string& path) {
    MutexLock lock(g_mutex);
    if (const auto known = g_open.find(path); known != g_open.end()) return known->second;
    Result<GpuLibrary> library =
        GpuLibrary::open(path.empty() ? kCuptiNames : std::vector<std::string>{path});
    if (!library) {
        return Status(Code::Unsupported,
                      "CUPTI is not installed (" + library.status().message() + ")",
                      "Install the CUDA Toolkit 13, or its package cuda-cupti-13-0");
    }
    cupti::Functions fn;
    uint32_t version = 0;
    const std::string file = library->path();
    // First the version: an older library lacks entry points too.
    if (!library->bind(fn.getVersion, "cuptiGetVersion") ||
        fn.getVersion(&version) != cupti::kSuccess || version < cupti::kOldestVersion ||
        version >= cupti::kVersionsEnd) {
        return versionStatus(version, file);
    }
#define COLIBRI_CUPTI_BIND(member, symbol, parameters) library->bind(fn.member, #symbol);
    COLIBRI_CUPTI_FUNCTIONS(COLIBRI_CUPTI_BIND)
#undef COLIBRI_CUPTI_BIND
    if (!library->missing().empty()) {
        return Status(Code::Unsupported, "CUPTI in " + file + " lacks " + library->missing(),
                      "Install the CUDA Toolkit 13, or its package cuda-cupti-13-0");
    }
    loadNeighbours(file);
    return g_open[path] = std::make_shared<CuptiLibrary>(fn, version, file);
}

CuptiLibrary::CuptiLibrary(const cupti::Functions& functions, uint32_t version, std::string path)
    : m_functions(functions), m_version(version), m_path(std::move(path)) {}

std::string CuptiLibrary::version() const {
    return std::to_string(m_version / 10000) + "." + std::to_string(m_version / 100 % 100);
}

void CuptiLibrary::addUser() {
    MutexLock lock(m_mutex);
    ++m_users;
}

void CuptiLibrary::setSubscribed() {
    MutexLock lock(m_mutex);
    m_subscribed = true;
}

void CuptiLibrary::removeUser() {
    MutexLock lock(m_mutex);
    if (--m_users > 0 || !m_subscribed) return;
    m_subscribed = false;
    (void)m_functions.finalize();
}

cupti::Result CuptiLibrary::addProfilerUser() {
    MutexLock lock(m_mutex);
    if (m_profilerUsers == 0) {
        auto params = cupti::sized<cupti::ProfilerParams>(sizeof(cupti::ProfilerParams));
        const cupti::Result result = m_functions.profilerInitialize(&params);
        if (result != cupti::kSuccess) return result;
    }
    ++m_profilerUsers;
    return cupti::kSuccess;
}

void CuptiLibrary::removeProfilerUser() {
    MutexLock lock(m_mutex);
    if (--m_profilerUsers > 0) return;
    auto params = cupti::sized<cupti::ProfilerParams>(sizeof(cupti::ProfilerParams));
    (void)m_functions.profilerDeinitialize(&params);
}

Status CuptiLibrary::status(cupti::Result result, const std::string& what) const {
    if (result == cupti::kSuccess) return {};
    if (result == cupti::kInsufficientPrivileges) return privilegeStatus().in(what);
    const auto row = std::find_if(std::begin(kCuptiErrors), std::end(kCuptiErrors),
                                  [&](const CuptiErrorRow& r) { return r.result == result; });
    if (row != std::end(kCuptiErrors)) {
        return Status(Code::Unsupported, row->reason, row->remedy).in(what);
    }
    return {Code::Unsupported, what + ": " + resultName(m_functions, result),
            "Check that nvidia-smi works, and that CUPTI and the driver are of CUDA 13"};
}

}  // namespace colibri
