// SPDX-License-Identifier: GPL-3.0-or-later
// Common parts of the kernel tests: the available kernel sets, and random data.
#pragma once

#include <cmath>
#include <cstdint>
#include <cstring>
#include <random>
#include <string>
#include <vector>

#include "kernels/kernels.h"
#include "kernels/layout.h"

namespace colibri {

struct NamedSet {
    std::string name;
    const KernelSet* kernels;
};

// With VNNI both AVX-512 sets are tested, although only one of them is dispatched.
inline std::vector<NamedSet> allKernelSets() {
    std::vector<NamedSet> sets = {{"scalar", &scalarKernels()}};
#ifdef COLIBRI_X86_KERNELS
    for (Isa isa : availableIsas()) {
        if (isa == Isa::Avx2) sets.push_back({"avx2", &avx2Kernels()});
        if (isa == Isa::Avx512) sets.push_back({"avx512", &avx512Kernels()});
    }
    if (hasVnni()) sets.push_back({"avx512vnni", &avx512VnniKernels()});
#endif
    return sets;
}

inline const std::vector<DType>& allTypes() {
    static const std::vector<DType> types = [] {
        std::vector<DType> all;
        for (int i = 0; i < kDTypeCount; ++i) all.push_back(DType(i));
        return all;
    }();
    return types;
}

inline std::vector<DType> typesWhere(bool (*wanted)(DType)) {
    std::vector<DType> out;
    for (DType type : allTypes()) {
        if (wanted(type)) out.push_back(type);
    }
    return out;
}
inline std::vector<DType> encodableTypes() {
    return typesWhere(hasEncoder);
}
inline std::vector<DType> quantisedTypes() {
    return typesWhere(isQuantised);
}

constexpr double kEpsilon = 0x1p-24;  // unit roundoff of f32

inline std::vector<float> randomFloats(int64_t n, uint32_t seed, float scale = 1.0f) {
    std::mt19937 random(seed);
    std::normal_distribution<float> normal(0.0f, scale);
    std::vector<float> out(size_t(n), 0.0f);
    for (float& v : out) v = normal(random);
    return out;
}

inline uint32_t bitsOf(float v) {
    uint32_t bits;
    std::memcpy(&bits, &v, sizeof bits);
    return bits;
}

inline bool sameBits(const std::vector<float>& a, const std::vector<float>& b) {
    return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size() * sizeof(float)) == 0;
}

}  // namespace colibri
