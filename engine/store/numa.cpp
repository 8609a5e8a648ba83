// SPDX-License-Identifier: Apache-2.0
#include "engine/store/numa.h"

#include <dlfcn.h>
#include <linux/mempolicy.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>

#include "engine/base/machine.h"

namespace colibri {

namespace {

constexpr int kMostNodes = 1024;
using NodeMask = std::array<unsigned long, kMostNodes / (8 * sizeof(unsigned long))>;
constexpr int kWordBits = 8 * sizeof(unsigned long);

// libnuma's calls as of its interface 1.1, found at run time: the program starts without it.
class SystemNuma final : public Numa {
public:
    SystemNuma() : m_nodes(numaNodes()) {
        m_library = dlopen("libnuma.so.1", RTLD_NOW | RTLD_LOCAL);
        if (m_library == nullptr) {
            m_refusal = "libnuma.so.1 is not installed";
            return;
        }
        const auto find = [&](const char* name) { return dlsym(m_library, name); };
        const auto available = reinterpret_cast<int (*)()>(find("numa_available"));
        m_mbind = reinterpret_cast<Mbind>(find("mbind"));
        m_getPolicy = reinterpret_cast<GetPolicy>(find("get_mempolicy"));
        m_movePages = reinterpret_cast<MovePages>(find("move_pages"));
        if (available == nullptr || m_mbind == nullptr || m_getPolicy == nullptr ||
            m_movePages == nullptr)
            m_refusal = "libnuma.so.1 lacks a function";
        else if (available() < 0)
            m_refusal = "the kernel offers no NUMA policy";
    }
    // The library stays loaded: it keeps no state of ours, and others may use it.

    int nodes() const override { return m_nodes; }
    std::string refusal() const override { return m_refusal; }

    Status place(std::span<std::byte> memory, NumaPlace place) override {
        if (!m_refusal.empty()) return {Code::Unsupported, m_refusal};
        NodeMask mask{};
        int mode = MPOL_DEFAULT;
        if (place.mode == NumaMode::Bind) {
            mode = MPOL_BIND;
            mask[size_t(place.node / kWordBits)] |= 1UL << (place.node % kWordBits);
        } else if (place.mode == NumaMode::Interleave) {
            mode = MPOL_INTERLEAVE;
            for (int n = 0; n < m_nodes; ++n) mask[size_t(n / kWordBits)] |= 1UL << (n % kWordBits);
        }
        const bool free = mode == MPOL_DEFAULT;
        const unsigned flags = free ? 0 : MPOL_MF_MOVE;
        if (m_mbind(memory.data(), memory.size(), mode, free ? nullptr : mask.data(),
                    free ? 0 : kMostNodes, flags) == 0)
            return {};
        return {Code::Unsupported, std::string("mbind: ") + std::strerror(errno)};
    }

    Result<NumaPlace> placeOf(const std::byte* memory) const override {
        if (!m_refusal.empty()) return Status(Code::Unsupported, m_refusal);
        NodeMask mask{};
        int mode = 0;
        if (m_getPolicy(&mode, mask.data(), kMostNodes, const_cast<std::byte*>(memory),
                        MPOL_F_ADDR) != 0)
            return Status(Code::Unsupported, std::string("get_mempolicy: ") + std::strerror(errno));
        int first = 0;
        while (first < kMostNodes - 1 &&
               (mask[size_t(first / kWordBits)] >> (first % kWordBits) & 1) == 0)
            ++first;
        if (mode == MPOL_BIND) return NumaPlace{NumaMode::Bind, first};
        if (mode == MPOL_INTERLEAVE) return NumaPlace{NumaMode::Interleave, 0};
        return NumaPlace{};
    }

    std::vector<int> nodesOf(std::span<std::byte* const> pages) const override {
        std::vector<int> nodes(pages.size(), -1);
        if (!m_refusal.empty() || pages.empty()) return nodes;
        std::vector<void*> at(pages.begin(), pages.end());
        // Without a list of target nodes the call moves nothing and only tells.
        if (m_movePages(0, at.size(), at.data(), nullptr, nodes.data(), 0) != 0)
            std::fill(nodes.begin(), nodes.end(), -1);
        for (int& node : nodes) node = std::max(node, -1);
        return nodes;
    }

private:
    using Mbind = long (*)(void*, unsigned long, int, const unsigned long*, unsigned long,
                           unsigned);
    using GetPolicy = long (*)(int*, unsigned long*, unsigned long, void*, unsigned long);
    using MovePages = long (*)(int, unsigned long, void**, const int*, int*, int);

    const int m_nodes;
    void* m_library = nullptr;
    Mbind m_mbind = nullptr;
    GetPolicy m_getPolicy = nullptr;
    MovePages m_movePages = nullptr;
    std::string m_refusal;
};

}  // namespace

std::unique_ptr<Numa> Numa::system() {
    return std::make_unique<SystemNuma>();
}

std::string numaNodesText(int nodes) {
    return nodes == 1 ? "this machine has one NUMA node"
                      : "this machine has " + std::to_string(nodes) + " NUMA nodes";
}

}  // namespace colibri
