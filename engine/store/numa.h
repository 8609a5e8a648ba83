// SPDX-License-Identifier: Apache-2.0
// On which NUMA node memory lies. The system's own answers come through libnuma, looked for at run
// time; tests hand in a machine of their own. Any thread.
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
    int node = 0;  // of Bind
    bool operator==(const NumaPlace&) const = default;
};

class Numa {
public:
    virtual ~Numa() = default;
    virtual int nodes() const = 0;
    // Why nothing can be placed here; "" when it can.
    virtual std::string refusal() const = 0;
    // Says where the memory's pages are taken from, and moves those already taken. False: some
    // could not be moved now, because the kernel uses them or their node is full. Errors carry the
    // reason: the kernel's, or that a node to bind to has no room, which would end the process at
    // the first touch. REQUIRES: memory starts on a page
    virtual Result<bool> place(std::span<std::byte> memory, NumaPlace place) = 0;
    // What the kernel holds to be said of this memory.
    virtual Result<NumaPlace> placeOf(const std::byte* memory) const = 0;
    // The node of the page at each address; -1: none taken yet, or not known.
    virtual std::vector<int> nodesOf(std::span<std::byte* const> pages) const = 0;

    static std::unique_ptr<Numa> system();
};

std::string numaNodesText(int nodes);  // "this machine has one NUMA node"

}  // namespace colibri
