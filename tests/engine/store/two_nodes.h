// SPDX-License-Identifier: GPL-3.0-or-later
// Queries the kernel, without the engine, about memory and threads; for tests on machines with at
// least two NUMA nodes.
#pragma once

#include <linux/mempolicy.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cstddef>
#include <filesystem>
#include <fstream>
#include <map>
#include <set>
#include <string>
#include <vector>

namespace colibri::test {

// Pages of `bytes` at `memory` on each node; -1: not allocated yet.
inline std::map<int, int64_t> pagesByNode(const std::byte* memory, int64_t bytes) {
    std::vector<void*> pages;
    for (int64_t at = 0; at < bytes; at += 4096)
        pages.push_back(const_cast<std::byte*>(memory) + at);
    std::vector<int> nodes(pages.size(), -1);
    syscall(SYS_move_pages, 0, pages.size(), pages.data(), nullptr, nodes.data(), 0);
    std::map<int, int64_t> counts;
    for (const int node : nodes) ++counts[node < 0 ? -1 : node];
    return counts;
}

inline int policyAt(const std::byte* memory) {
    int mode = -1;
    unsigned long mask[16] = {};
    syscall(SYS_get_mempolicy, &mode, mask, 1024UL, memory, MPOL_F_ADDR);
    return mode;
}

// Cpus_allowed_list of this process's threads whose name has this prefix: "0-3" or "2".
inline std::multiset<std::string> coresOfThreads(const std::string& name) {
    std::multiset<std::string> lists;
    for (const auto& task : std::filesystem::directory_iterator("/proc/self/task")) {
        std::ifstream status(task.path() / "status");
        bool wanted = false;
        for (std::string line; std::getline(status, line);) {
            if (line.starts_with("Name:\t")) wanted = line.substr(6).starts_with(name);
            const std::string key = "Cpus_allowed_list:\t";
            if (wanted && line.starts_with(key)) lists.insert(line.substr(key.size()));
        }
    }
    return lists;
}

}  // namespace colibri::test
