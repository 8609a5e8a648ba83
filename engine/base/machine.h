// SPDX-License-Identifier: Apache-2.0
// What machine this is: processors, memory, and what this process may use of them.
#pragma once

#include <cstdint>
#include <string>

namespace colibri {

int logicalCpus();              // this process may run on (affinity mask)
int physicalCores();            // among those
int numaNodes();
std::string processorName();    // "AMD EPYC"
int64_t memoryTotal();          // bytes, the smaller of the machine's and the cgroup's limit
int64_t memoryFreeNow();        // bytes it could take now without swapping; 0 when unknown
int64_t processRss();           // bytes
int64_t processPeakRss();       // bytes
std::string machineFingerprint();  // processor, cores, memory: "AMD EPYC, 2 cores, 23.4 GiB"

}  // namespace colibri
