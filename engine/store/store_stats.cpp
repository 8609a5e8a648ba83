// SPDX-License-Identifier: Apache-2.0
#include "engine/store/store_stats.h"

#include <bit>
#include <functional>
#include <type_traits>

namespace colibri {

namespace {

// Subtracts all counters generically, so that none can be forgotten.
template <typename Operation>
StoreCounters combined(const StoreCounters& a, const StoreCounters& b, Operation operation) {
    static_assert(std::has_unique_object_representations_v<StoreCounters> &&
                  sizeof(StoreCounters) % sizeof(uint64_t) == 0);
    using Words = std::array<uint64_t, sizeof(StoreCounters) / sizeof(uint64_t)>;
    Words words = std::bit_cast<Words>(a);
    const Words others = std::bit_cast<Words>(b);
    for (size_t i = 0; i < words.size(); ++i) words[i] = operation(words[i], others[i]);
    return std::bit_cast<StoreCounters>(words);
}

}  // namespace

StoreStats difference(const StoreStats& after, const StoreStats& before) {
    StoreStats out = after;
    static_cast<StoreCounters&>(out) = combined(after, before, std::minus());
    return out;
}

StoreCounters& operator+=(StoreCounters& to, const StoreCounters& more) {
    return to = combined(to, more, std::plus());
}

}  // namespace colibri
