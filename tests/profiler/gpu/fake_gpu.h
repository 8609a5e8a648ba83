// SPDX-License-Identifier: GPL-3.0-or-later
// Scripts for the libraries that play the driver, CUPTI and NVML. Each library exports a function
// that returns its script; tests load the same library and change it.
#pragma once

#include <dlfcn.h>

#include <algorithm>
#include <array>
#include <condition_variable>
#include <cstdint>
#include <map>
#include <mutex>
#include <set>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

namespace fake {

// What every library can do: return errors instead of success, remember the calls, and stop in one.
class Script {
public:
    virtual ~Script() = default;

    // Called first by each entry point. Returns the scripted result, 0 by default.
    int enter(const char* symbol) {
        std::unique_lock lock(m_mutex);
        m_calls.emplace_back(symbol);
        m_changed.notify_all();
        m_changed.wait(lock, [&] { return m_heldAt != symbol; });
        const auto found = m_results.find(symbol);
        if (found == m_results.end() || found->second.first-- > 0) return 0;
        return found->second.second;
    }
    // From the call number `after` (0: the first) on, the symbol returns `result`.
    void fail(const std::string& symbol, int result, int after = 0) {
        std::lock_guard lock(m_mutex);
        m_results[symbol] = {after, result};
    }
    void succeed(const std::string& symbol) {
        std::lock_guard lock(m_mutex);
        m_results.erase(symbol);
    }
    // Calls of the symbol wait until release().
    void holdAt(const std::string& symbol) {
        std::lock_guard lock(m_mutex);
        m_heldAt = symbol;
    }
    void release() {
        std::lock_guard lock(m_mutex);
        m_heldAt.clear();
        m_changed.notify_all();
    }
    void waitForCall(const std::string& symbol) {
        std::unique_lock lock(m_mutex);
        m_changed.wait(lock,
                       [&] { return std::count(m_calls.begin(), m_calls.end(), symbol) > 0; });
    }
    std::vector<std::string> calls() const {
        std::lock_guard lock(m_mutex);
        return m_calls;
    }
    int count(const std::string& symbol) const {
        std::lock_guard lock(m_mutex);
        return int(std::count(m_calls.begin(), m_calls.end(), symbol));
    }

protected:
    void forget() {
        std::lock_guard lock(m_mutex);
        m_results.clear();
        m_calls.clear();
        m_heldAt.clear();
    }

private:
    mutable std::mutex m_mutex;
    std::condition_variable m_changed;
    std::map<std::string, std::pair<int, int>> m_results;
    std::vector<std::string> m_calls;
    std::string m_heldAt;
};

class Driver : public Script {
public:
    virtual void reset() = 0;
    int version = 13000, devices = 1;
    int contexts = 0, allocations = 0;  // not released yet
    uint64_t copiedToDevice = 0, copiedToHost = 0;
};

// Work that is launched on the GPU, as CUPTI would record it.
struct Launch {
    enum Kind { Kernel, Copy, PeerCopy, Memset } kind = Kernel;
    const char* name = "_Z4gemvPKfi";  // gemv(float const*, int)
    int copyKind = 1;                  // to the GPU
    uint64_t bytes = 0;
    uint64_t startNs = 0, endNs = 0;  // CLOCK_MONOTONIC; the library converts to its own clock
    uint32_t stream = 7;
};

class Cupti : public Script {
public:
    virtual void reset() = 0;
    // Activity. launch() is called by the thread that launches, inside or outside external ids.
    virtual void launch(const Launch& work) = 0;
    // Keeps the buffers in use and completes them when called: after the source has gone.
    virtual void completeLate() = 0;
    size_t recordsPerBuffer = 1000;
    bool reverseBuffers = false;   // complete the newest buffer first
    bool externalIdsLate = false;  // name the work one flush after the kernels
    bool keepBuffers = false;      // ask for a buffer in a flush, but do not complete it
    int64_t clockAheadNs = 0;      // of CUPTI's own clock, if no callback gives the time
    uint64_t dropped = 0;
    std::string oldSubscriber;

    // PM sampling.
    std::string chip = "GH100";
    std::set<std::string> unknownMetrics;
    int metricsInOnePass = 3;
    uint32_t unsupportedBecause =
        0;                       // position of the field in DeviceSupportedParams; 0: supported
    std::set<int> refusedModes;  // trigger * 2 + append
    int acceptedMode = -1;
    struct Sample {
        uint64_t startNs, endNs;
        double percent[3];
    };
    virtual void addSamples(const std::vector<Sample>& samples) = 0;
    bool overflow = false;  // of the hardware buffer, told once
};

class Nvml : public Script {
public:
    virtual void reset() = 0;
    unsigned busyPercent = 100, clockMHz = 1980, milliwatts = 700000;
    uint64_t memoryUsed = 20, memoryTotal = 100;
    bool gpmSupported = true;
    double smPercent = 42, dramPercent = 17;
    int smResult = 0;
    int samples = 0;  // allocated now
};

// The script of a library. Throws if it cannot be loaded: the build is broken.
template <typename T>
T& scriptOf(const char* path, const char* function) {
    void* library = dlopen(path, RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
    if (!library) throw std::runtime_error(dlerror());
    auto* get = reinterpret_cast<T* (*)()>(dlsym(library, function));
    if (!get) throw std::runtime_error(std::string(path) + " has no script");
    T& script = *get();
    script.reset();
    return script;
}

}  // namespace fake
