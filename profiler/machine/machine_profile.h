// SPDX-License-Identifier: Apache-2.0
// What `colibri diagnose --measure` measured on a machine, and the file in the user's cache folder
// that keeps it.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "engine/base/status.h"
#include "kernels/dtype.h"

namespace colibri {

std::string measurementDate(int64_t secondsSince1970);  // local: "2026-12-01 16:30"

struct MachineProfile {
    // Sequential reads of memory larger than the caches.
    struct Memory {
        int threads;
        int readerNode, memoryNode;  // NUMA nodes of threads and memory; -1: any
        double bytesPerSecond;
    };
    // Random reads of blocks.
    struct Disk {
        int64_t blockBytes;
        int depth;  // reads in flight
        double bytesPerSecond;
    };
    // Products of packed weights with activations, on all physical cores.
    struct Kernel {
        DType type;
        double weightBytesPerSecond;  // one row of activations, weights from memory: decode
        double flopsPerSecond;        // many rows, weights from the cache: prefill
    };

    // Copies between page-locked host memory and the first GPU.
    struct Gpu {
        double toGpu = 0, fromGpu = 0;  // bytes per second; 0: not measured
        std::string reason;             // why not
    };

    std::string machine;     // machineFingerprint()
    std::string folder;      // on the disk that was measured
    std::string readPath;    // how it was read: "io_uring, registered buffers"
    bool direct = false;     // reads bypassed the page cache
    std::string isa;         // of the kernels
    int64_t measuredAt = 0;  // seconds since 1970
    std::vector<Memory> memory;
    std::vector<Disk> disk;
    std::vector<Kernel> kernels;
    Gpu gpu;

    double bestMemory() const;  // bytes/s; 0: not measured
    // Rate of another NUMA node's memory relative to the own node's; 0: one node, or not measured.
    double remoteMemoryShare() const;
    const Kernel* kernel(DType type) const;  // nullptr: not measured
};

nlohmann::ordered_json profileJson(const MachineProfile& profile);
// Errors: BadInput naming the key.
Result<MachineProfile> parseProfile(const nlohmann::ordered_json& json);

// The profile of this machine. A file of another machine, or one that cannot be read, is ignored.
std::optional<MachineProfile> keptProfile();
// Errors: those of writing.
Status keepProfile(const MachineProfile& profile);

}  // namespace colibri
