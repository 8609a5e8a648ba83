// SPDX-License-Identifier: Apache-2.0
// The NUMA node of memory. The real implementation uses libnuma, loaded at run time; tests provide
// their own machine. Any thread.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "engine/base/status.h"
#include "engine/knobs/knobs.h"

namespace colibri {

struct NumaPlace {
    NumaMode mode = NumaMode::Off;
    int node = 0;  // with Bind
    bool operator==(const NumaPlace&) const = default;
};

class Numa {
public:
    virtual ~Numa() = default;
    virtual int nodes() const = 0;
    // Why memory cannot be bound on this machine; "" if it can.
    virtual std::string refusal() const = 0;
    // Sets the node from which the memory's pages are allocated, and moves pages already allocated.
    // False: some could not be moved now, because the kernel uses them or their node is full.
    // Errors give the kernel's reason, or say that the node to bind to has too little free memory:
    // the kernel would kill the process at the first touch. REQUIRES: memory starts on a page
    virtual Result<bool> place(std::span<std::byte> memory, NumaPlace place) = 0;
    // The kernel's current policy for this memory.
    virtual Result<NumaPlace> placeOf(const std::byte* memory) const = 0;
    // The node of the page at each address; -1: not allocated yet, or unknown.
    virtual std::vector<int> nodesOf(std::span<std::byte* const> pages) const = 0;

    static std::unique_ptr<Numa> system();
};

std::string numaNodesText(int nodes);  // "this machine has one NUMA node"

}  // namespace colibri
