// SPDX-License-Identifier: Apache-2.0
#include "engine/base/machine.h"

#include <pthread.h>
#include <sched.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <barrier>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <limits>
#include <set>
#include <sstream>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

#include "engine/base/format.h"

namespace colibri {
namespace {

std::string firstLine(const std::string& path) {
    std::ifstream in(path);
    std::string line;
    std::getline(in, line);
    return line;
}

int64_t number(const std::string& text) {
    try {
        return text.empty() ? -1 : std::stoll(text);
    } catch (const std::exception&) {  // "max", or more digits than a number holds
        return -1;
    }
}

// "MemAvailable:   123 kB" of a /proc file, in bytes; -1 when absent.
int64_t procKiB(const char* path, const std::string& key) {
    std::ifstream in(path);
    for (std::string line; std::getline(in, line);) {
        if (line.starts_with(key + ":")) {
            std::istringstream fields(line.substr(key.size() + 1));
            int64_t value = -1;
            fields >> value;
            return value < 0 ? -1 : value * 1024;
        }
    }
    return -1;
}

struct CgroupMemory {
    int64_t limit = -1, used = -1;  // -1: no limit
};

// The tightest memory limit over this process's cgroup and its parents, version 1 or 2.
CgroupMemory cgroupMemory() {
    CgroupMemory tightest;
    std::ifstream groups("/proc/self/cgroup");
    for (std::string line; std::getline(groups, line);) {
        const size_t a = line.find(':'), b = line.find(':', a + 1);
        if (a == std::string::npos || b == std::string::npos) continue;
        const std::string controllers = line.substr(a + 1, b - a - 1);
        const bool v2 = controllers.empty();
        if (!v2 && controllers != "memory") continue;
        const std::filesystem::path root = v2 ? "/sys/fs/cgroup" : "/sys/fs/cgroup/memory";
        std::filesystem::path group = root.string() + line.substr(b + 1);
        for (int depth = 0; depth < 64; ++depth) {
            const int64_t limit =
                number(firstLine((group / (v2 ? "memory.max" : "memory.limit_in_bytes")).string()));
            const int64_t used = number(
                firstLine((group / (v2 ? "memory.current" : "memory.usage_in_bytes")).string()));
            // Version 1 writes "no limit" as a number near 2^63.
            if (limit > 0 && limit < (int64_t(1) << 60) &&
                (tightest.limit < 0 || limit - used < tightest.limit - tightest.used)) {
                tightest = {limit, std::max<int64_t>(used, 0)};
            }
            if (group == root || !group.has_relative_path()) break;
            group = group.parent_path();
        }
    }
    return tightest;
}

}  // namespace

int logicalCpus() {
    cpu_set_t set;
    if (sched_getaffinity(0, sizeof set, &set) == 0) return std::max(1, CPU_COUNT(&set));
    return std::max(1, int(sysconf(_SC_NPROCESSORS_ONLN)));
}

int physicalCores() {
    cpu_set_t set;
    if (sched_getaffinity(0, sizeof set, &set) != 0) return logicalCpus();
    std::set<std::pair<std::string, std::string>> cores;
    for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu) {
        if (!CPU_ISSET(cpu, &set)) continue;
        const std::string dir = "/sys/devices/system/cpu/cpu" + std::to_string(cpu) + "/topology/";
        const std::string core = firstLine(dir + "core_id");
        if (core.empty()) return logicalCpus();
        cores.emplace(firstLine(dir + "physical_package_id"), core);
    }
    return std::max(1, int(cores.size()));
}

int numaNodes() {
    std::error_code error;
    int count = 0;
    for (const auto& entry :
         std::filesystem::directory_iterator("/sys/devices/system/node", error)) {
        const std::string name = entry.path().filename().string();
        if (name.size() > 4 && name.starts_with("node") && std::isdigit(name[4])) ++count;
    }
    return std::max(1, count);
}

std::vector<int> nodeProcessors(int node) {
    std::vector<int> processors;
    std::istringstream list(
        firstLine("/sys/devices/system/node/node" + std::to_string(node) + "/cpulist"));
    for (std::string range; std::getline(list, range, ',');) {  // "0-3,8"
        const size_t dash = range.find('-');
        const int64_t first = number(range.substr(0, dash));
        const int64_t last = dash == std::string::npos ? first : number(range.substr(dash + 1));
        for (int64_t i = first; i >= 0 && i <= last; ++i) processors.push_back(int(i));
    }
    return processors;
}

std::string processorName() {
    std::ifstream in("/proc/cpuinfo");
    for (std::string line; std::getline(in, line);) {
        if (line.starts_with("model name")) {
            const size_t colon = line.find(": ");
            if (colon != std::string::npos) return line.substr(colon + 2);
        }
    }
    return "unknown processor";
}

int64_t memoryTotal() {
    const int64_t machine = procKiB("/proc/meminfo", "MemTotal");
    const int64_t limit = cgroupMemory().limit;
    if (machine < 0) return std::max<int64_t>(limit, 0);
    return limit > 0 ? std::min(machine, limit) : machine;
}

int64_t memoryFreeNow() {
    const int64_t machine = procKiB("/proc/meminfo", "MemAvailable");
    const CgroupMemory group = cgroupMemory();
    if (group.limit < 0) return std::max<int64_t>(machine, 0);
    const int64_t left = std::max<int64_t>(group.limit - group.used, 0);
    return machine < 0 ? left : std::min(machine, left);
}

NodeMemory nodeMemory(int node) {
    NodeMemory memory;
    int64_t cached = 0;  // clean copies of files: the kernel gives them up when asked
    std::ifstream in("/sys/devices/system/node/node" + std::to_string(node) + "/meminfo");
    std::string label, number, key;
    int64_t kib = 0;
    for (std::string line; std::getline(in, line);) {  // "Node 0 MemFree:   123 kB"
        std::istringstream fields(line);
        if (!(fields >> label >> number >> key >> kib)) continue;
        const int64_t bytes = kib * 1024;
        if (key == "MemTotal:") memory.total = bytes;
        if (key == "MemFree:") memory.free = bytes;
        if (key == "Active(file):" || key == "Inactive(file):" || key == "SReclaimable:")
            cached += bytes;
        if (key == "Dirty:") cached -= bytes;
    }
    if (memory.free >= 0) memory.free += std::max<int64_t>(cached, 0);
    return memory;
}

int64_t processRss() {
    std::ifstream in("/proc/self/statm");
    int64_t size = 0, resident = 0;
    in >> size >> resident;
    return resident * sysconf(_SC_PAGESIZE);
}

ThreadTimes threadTimes() {
    timespec cpu{};
    rusage usage{};
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &cpu);
    getrusage(RUSAGE_THREAD, &usage);
    return {uint64_t(cpu.tv_sec) * 1'000'000'000 + uint64_t(cpu.tv_nsec), uint64_t(usage.ru_minflt),
            uint64_t(usage.ru_majflt)};
}

int64_t processPeakRss() {
    rusage usage{};
    getrusage(RUSAGE_SELF, &usage);
    return int64_t(usage.ru_maxrss) * 1024;
}

std::filesystem::path cacheDirectory() {
    const auto folder = [](const char* name) {
        const char* value = std::getenv(name);
        return std::filesystem::path(value == nullptr ? "" : value);
    };
    if (const auto cache = folder("XDG_CACHE_HOME"); cache.is_absolute()) return cache / "colibri";
    const auto home = folder("HOME");
    return home.is_absolute() ? home / ".cache" / "colibri" : std::filesystem::path();
}

namespace {

// Empty: leaves the thread where it is.
bool runOn(const std::vector<int>& processors) {
    if (processors.empty()) return true;
    cpu_set_t set;
    CPU_ZERO(&set);
    for (const int p : processors) CPU_SET(size_t(p), &set);
    return pthread_setaffinity_np(pthread_self(), sizeof set, &set) == 0;
}

}  // namespace

double measureMemoryRead(int threads, double seconds, const MemoryRoute& route) {
    constexpr size_t kWords = (64 << 20) / 8;  // per thread: larger than its share of the caches
    using Clock = std::chrono::steady_clock;
    std::atomic<bool> failed{false};
    std::atomic<uint64_t> sink{0}, words{0};
    Clock::time_point start;  // written before any thread passes `filled`
    std::barrier filled(threads, [&]() noexcept { start = Clock::now(); });
    const auto spent = [&] { return std::chrono::duration<double>(Clock::now() - start).count(); };
    const auto read = [&](uint64_t value) {
        std::vector<uint64_t> buffer;
        try {
            // The first touch decides on which node a page is.
            const bool placed = runOn(route.memory);
            if (placed) buffer.assign(kWords, value);
            if (!placed || !runOn(route.readers)) failed = true;
        } catch (const std::bad_alloc&) {
            failed = true;
        }
        filled.arrive_and_wait();
        if (failed) return;
        do {
            uint64_t sums[8] = {};
            for (size_t w = 0; w < kWords; w += 8)
                for (size_t j = 0; j < 8; ++j) sums[j] ^= buffer[w + j];
            for (const uint64_t s : sums) sink.fetch_xor(s);
            words.fetch_add(kWords);
        } while (spent() < seconds);
    };
    {
        std::vector<std::jthread> readers;
        for (int i = 0; i < threads; ++i) {
            try {
                readers.emplace_back(read, uint64_t(i) + 1);
            } catch (const std::system_error&) {
                failed = true;
                filled.arrive_and_drop();
            }
        }
    }
    return failed ? 0 : double(words.load()) * 8 / spent();
}

std::string machineFingerprint() {
    return processorName() + ", " + std::to_string(physicalCores()) + " cores, " +
           formatGiB(double(memoryTotal()));
}

}  // namespace colibri
