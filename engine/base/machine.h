// SPDX-License-Identifier: Apache-2.0
// The machine: processors, memory, and the part that this process may use.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

namespace colibri {

int logicalCpus();    // that this process may run on (affinity mask)
int physicalCores();  // among those
int numaNodes();
std::string processorName();  // "AMD EPYC"
int64_t memoryTotal();        // bytes, the smaller of the machine's and the cgroup's limit
int64_t memoryFreeNow();      // bytes available without swapping; 0: unknown
// Memory of one NUMA node, in bytes; -1: unknown.
struct NodeMemory {
    int64_t total = -1;
    int64_t free = -1;  // available without swapping
};
NodeMemory nodeMemory(int node);
std::vector<int> nodeProcessors(int node);  // in order; empty: no such node
int64_t processRss();                       // bytes
int64_t processPeakRss();                   // bytes
// What the calling thread has used so far: processor time, and page faults without and with a read
// from disk.
struct ThreadTimes {
    uint64_t cpuNs = 0;
    uint64_t minorFaults = 0, majorFaults = 0;
};
ThreadTimes threadTimes();
// The folder for data that can be recreated at any time: XDG_CACHE_HOME/colibri or
// ~/.cache/colibri. The function does not create it; empty if the user has no home folder.
std::filesystem::path cacheDirectory();
// Where the threads of a memory measurement run, and the processors on whose NUMA node their memory
// is. Empty: any.
struct MemoryRoute {
    std::vector<int> readers, memory;
};
// Bytes per second that `threads` threads read from memory together, measured for about `seconds`;
// 0: no memory, or the processors are not available.
double measureMemoryRead(int threads, double seconds, const MemoryRoute& route = {});
std::string machineFingerprint();  // processor, cores, memory: "AMD EPYC, 2 cores, 23.4 GiB"

}  // namespace colibri
