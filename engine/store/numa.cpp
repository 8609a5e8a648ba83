// SPDX-License-Identifier: Apache-2.0
#include "engine/store/numa.h"

#include <dlfcn.h>
#include <linux/mempolicy.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <unordered_map>

#include "engine/base/machine.h"
#include "engine/base/mutex.h"
#include "engine/store/page_sizes.h"

namespace colibri {

namespace {

constexpr int kMostNodes = 1024;
using NodeMask = std::array<unsigned long, kMostNodes / (8 * sizeof(unsigned long))>;
constexpr int kWordBits = 8 * sizeof(unsigned long);
// Memory kept free on a node for other programs and for the kernel's watermarks, which matter more
// on small nodes: a fraction (1 / kKeptPart) plus a number of bytes.
constexpr int64_t kKeptPart = 32, kKeptBytes = 64 << 20;

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
            m_refusal = "the kernel does not support NUMA policies";
        if (!m_refusal.empty()) return;
        if (m_getPolicy(nullptr, m_allowed.data(), kMostNodes, nullptr, MPOL_F_MEMS_ALLOWED) != 0)
            m_allowed[0] = 1;  // the first exists
        for (int n = 0; n < kMostNodes; ++n)
            if (m_allowed[size_t(n / kWordBits)] >> (n % kWordBits) & 1) m_nodesInUse.push_back(n);
    }
    // The library stays loaded: it has none of this object's state, and others may use it.

    int nodes() const override { return m_nodes; }
    std::string refusal() const override { return m_refusal; }

    Result<bool> place(std::span<std::byte> memory, NumaPlace place) override {
        if (!m_refusal.empty()) return Status(Code::Unsupported, m_refusal);
        const bool taken = anyTaken(memory);
        NodeMask mask{};
        int mode = MPOL_DEFAULT;
        if (place.mode == NumaMode::Bind) {
            mode = MPOL_BIND;
            mask[size_t(place.node / kWordBits)] |= 1UL << (place.node % kWordBits);
            COLIBRI_TRY(findRoom(memory, place.node, taken));
        } else if (place.mode == NumaMode::Interleave) {
            mode = MPOL_INTERLEAVE;
            mask = m_allowed;
        }
        const bool free = mode == MPOL_DEFAULT;
        // Moving waits for every processor, so only do it if this call has pages to move.
        const unsigned flags = mode == MPOL_BIND && taken ? MPOL_MF_MOVE : 0;
        if (m_mbind(memory.data(), memory.size(), mode, free ? nullptr : mask.data(),
                    free ? 0 : kMostNodes, flags) != 0)
            return Status(Code::Unsupported, std::string("mbind: ") + std::strerror(errno));
        if (free || !taken) return true;
        if (mode == MPOL_INTERLEAVE) return spread(memory);
        return misplaced(memory, kPage, [&](const std::byte*) { return place.node; }).empty();
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
        if (!m_refusal.empty()) return std::vector<int>(pages.size(), -1);
        std::vector<int> nodes = ask({pages.begin(), pages.end()});
        for (int& node : nodes) node = std::max(node, -1);
        return nodes;
    }

private:
    using Pages = std::vector<std::byte*>;

    // The node of each page, or the kernel's -errno: ENOENT, nobody has written to it yet.
    std::vector<int> ask(const Pages& pages) const {
        std::vector<int> nodes(pages.size(), -EFAULT);
        std::vector<void*> at(pages.begin(), pages.end());
        // Without a list of target nodes the call moves nothing and only reports.
        if (!at.empty() && m_movePages(0, at.size(), at.data(), nullptr, nodes.data(), 0) != 0)
            std::fill(nodes.begin(), nodes.end(), -EFAULT);
        return nodes;
    }

    static Pages pagesOf(std::span<std::byte> memory, size_t step) {
        Pages pages;
        for (size_t at = 0; at < memory.size(); at += step) pages.push_back(memory.data() + at);
        return pages;
    }

    // One page is not enough: while the kernel works on it, it reads as not allocated.
    bool anyTaken(std::span<std::byte> memory) const {
        const std::vector<int> nodes = ask(pagesOf(memory, kPage));
        return std::any_of(nodes.begin(), nodes.end(), [](int node) { return node >= 0; });
    }

    // The allocated pages, one per `step` bytes, that are not on target(page).
    template <typename Target>
    Pages misplaced(std::span<std::byte> memory, size_t step, const Target& target) const {
        const Pages pages = pagesOf(memory, step);
        Pages elsewhere;
        const std::vector<int> nodes = ask(pages);
        for (size_t i = 0; i < pages.size(); ++i)
            if (nodes[i] >= 0 && nodes[i] != target(pages[i])) elsewhere.push_back(pages[i]);
        return elsewhere;
    }

    // Fails if the node has too little free memory for the pages not on it yet. Counts memory that
    // was bound but not written to so far, and keeps a part free for others.
    Status findRoom(std::span<std::byte> memory, int node, bool taken) {
        const NodeMemory all = nodeMemory(node);
        if (all.free < 0) return {};
        const auto here = [node](const std::byte*) { return node; };
        size_t needed = taken ? misplaced(memory, kPage, here).size() * kPage : memory.size();
        if (needed == 0) return {};
        MutexLock lock(m_mutex);
        std::erase_if(m_promised, [&](const auto& one) {  // written to by now, or unmapped
            return ask({one.first + (one.second.bytes - 1) / kPage * kPage})[0] != -ENOENT;
        });
        for (const auto& [start, promise] : m_promised)
            if (promise.node == node && start != memory.data()) needed += promise.bytes;
        if (int64_t(needed) > all.free - all.total / kKeptPart - kKeptBytes)
            return {Code::OutOfMemory,
                    "node " + std::to_string(node) + " has too little free memory for all experts"};
        if (!taken) m_promised[memory.data()] = {memory.size(), node};
        return {};
    }

    // Moves pages to the node that the kernel would have chosen for huge ones, by their address.
    // The interleave policy by itself does not move pages. Small pages move in the same large
    // pieces, because the pages of several small slots may form one huge page.
    bool spread(std::span<std::byte> memory) const {
        const auto target = [&](const std::byte* page) {
            const size_t number = size_t(reinterpret_cast<uintptr_t>(page)) / kHugePage;
            return m_nodesInUse[number % m_nodesInUse.size()];
        };
        for (const size_t step : {kHugePage, kPage}) {  // a huge page moves as a whole
            const Pages pages = misplaced(memory, step, target);
            if (pages.empty()) continue;
            std::vector<void*> at(pages.begin(), pages.end());
            std::vector<int> targets, results(pages.size());
            for (const std::byte* page : pages) targets.push_back(target(page));
            m_movePages(0, at.size(), at.data(), targets.data(), results.data(), MPOL_MF_MOVE);
        }
        return misplaced(memory, kPage, target).empty();
    }

    using Mbind = long (*)(void*, unsigned long, int, const unsigned long*, unsigned long,
                           unsigned);
    using GetPolicy = long (*)(int*, unsigned long*, unsigned long, void*, unsigned long);
    using MovePages = long (*)(int, unsigned long, void**, const int*, int*, int);

    struct Promise {
        size_t bytes = 0;
        int node = 0;
    };

    const int m_nodes;
    NodeMask m_allowed{};           // what this process may use
    std::vector<int> m_nodesInUse;  // the same
    Mutex m_mutex;
    std::unordered_map<std::byte*, Promise> m_promised GUARDED_BY(m_mutex);  // not written to yet
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
