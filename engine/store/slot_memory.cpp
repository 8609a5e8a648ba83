// SPDX-License-Identifier: Apache-2.0
#include "engine/store/slot_memory.h"

#include <sys/mman.h>

#include <algorithm>
#include <cerrno>

#include "engine/base/machine.h"
#include "engine/store/page_sizes.h"

namespace colibri {

namespace {

constexpr size_t kTurns = 8;  // even over 2, 4 and 8 nodes

size_t roundUp(size_t n, size_t unit) {
    return (n + unit - 1) / unit * unit;
}

std::byte* map(size_t bytes) {
    void* at = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    return at == MAP_FAILED ? nullptr : static_cast<std::byte*>(at);
}

}  // namespace

std::byte* SlotMemory::allocate(int64_t bytes) {
    const size_t size = roundUp(size_t(bytes), kPage);
    if (size < kHugePage) return map(size);
    // Map more than needed and cut both ends off, so that the slot starts on a huge page. The
    // kernel picks the node of an interleaved huge page by its number. If all slots started
    // at an even one, most of their memory would be on one of two nodes: the numbers alternate.
    constexpr size_t kSpare = kTurns * kHugePage;
    std::byte* const wide = map(size + kSpare);
    if (wide == nullptr) return nullptr;
    size_t number = roundUp(size_t(reinterpret_cast<uintptr_t>(wide)), kHugePage) / kHugePage;
    number += (m_large++ + kTurns - number % kTurns) % kTurns;
    const size_t head = number * kHugePage - size_t(reinterpret_cast<uintptr_t>(wide));
    std::byte* const slot = wide + head;
    if (head > 0) munmap(wide, head);
    if (head < kSpare) munmap(slot + size, kSpare - head);
    // A hint only: fewer page faults and TLB misses. A last part smaller than a huge page uses
    // small pages, so that a slot never takes more than its record.
    madvise(slot, size, MADV_HUGEPAGE);
    return slot;
}

bool SlotMemory::populate(std::byte* memory, int64_t bytes, const std::function<bool()>& goOn) {
    const size_t size = roundUp(size_t(bytes), kPage);
    // In steps: each holds the lock of the process's memory map, which other threads may need.
    for (size_t at = 0; at < size; at += kHugePage) {
        if (!goOn()) return false;
        const size_t step = std::min(kHugePage, size - at);
        if (madvise(memory + at, step, MADV_POPULATE_WRITE) == 0) continue;
        if (errno != EINVAL) return false;  // else a kernel before 5.14, which has no such advice
        for (size_t page = at; page < at + step; page += kPage) {
            *const_cast<volatile std::byte*>(memory + page) = std::byte{0};
        }
    }
    return true;
}

void SlotMemory::free(std::byte* memory, int64_t bytes) {
    if (memory != nullptr) munmap(memory, roundUp(size_t(bytes), kPage));
}

int64_t SlotMemory::freeBytes() {
    return memoryFreeNow();
}

}  // namespace colibri
