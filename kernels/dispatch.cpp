// SPDX-License-Identifier: Apache-2.0
#ifdef COLIBRI_X86_KERNELS
#include <cpuid.h>
#endif

#include <cmath>

#include "kernels/kernels.h"
#include "kernels/layout.h"

namespace colibri {
namespace {

struct Cpu {
    bool avx2 = false;
    bool avx512 = false;
    bool vnni = false;
};

#ifdef COLIBRI_X86_KERNELS
// clang supports this feature name from version 15 on.
bool hasF16c() {
    unsigned a = 0, b = 0, c = 0, d = 0;
    return __get_cpuid(1, &a, &b, &c, &d) && (c & bit_F16C);
}
#endif

// The builtin reads CPUID and XGETBV, so an instruction set counts only if the system saves its
// registers.
Cpu detectCpu() {
    Cpu cpu;
#ifdef COLIBRI_X86_KERNELS
    __builtin_cpu_init();
    cpu.avx2 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") && hasF16c();
    cpu.avx512 = cpu.avx2 && __builtin_cpu_supports("avx512f") &&
                 __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512vl") &&
                 __builtin_cpu_supports("avx512dq");
    cpu.vnni = cpu.avx512 && __builtin_cpu_supports("avx512vnni");
#endif
    return cpu;
}

const Cpu& cpu() {
    static const Cpu detected = detectCpu();
    return detected;
}

}  // namespace

std::string_view isaName(Isa isa) {
    switch (isa) {
        case Isa::Scalar:
            return "scalar";
        case Isa::Avx2:
            return "AVX2";
        case Isa::Avx512:
            return "AVX-512";
    }
    return "unknown";
}

const std::vector<Isa>& availableIsas() {
    static const std::vector<Isa> isas = [] {
        std::vector<Isa> found = {Isa::Scalar};
        if (cpu().avx2) found.push_back(Isa::Avx2);
        if (cpu().avx512) found.push_back(Isa::Avx512);
        return found;
    }();
    return isas;
}

bool hasVnni() {
    return cpu().vnni;
}

const KernelSet& kernelsFor(Isa isa) {
#ifdef COLIBRI_X86_KERNELS
    if (isa == Isa::Avx512 && cpu().vnni) return avx512VnniKernels();
    if (isa == Isa::Avx512 && cpu().avx512) return avx512Kernels();
    if (isa == Isa::Avx2 && cpu().avx2) return avx2Kernels();
#else
    (void)isa;
#endif
    return scalarKernels();
}

const KernelSet& bestKernels() {
    return kernelsFor(availableIsas().back());
}

void topK(const float* scores, int n, int k, int* indices) {
    // Insertion into the sorted prefix: k is small, and most scores fail the first comparison.
    const auto better = [scores](int a, int b) {
        if (std::isnan(scores[a])) return false;
        return std::isnan(scores[b]) || scores[a] > scores[b];
    };
    int kept = 0;
    for (int i = 0; i < n && k > 0; ++i) {
        if (kept == k && !better(i, indices[k - 1])) continue;
        int at = kept < k ? kept++ : k - 1;
        for (; at > 0 && better(i, indices[at - 1]); --at) indices[at] = indices[at - 1];
        indices[at] = i;
    }
}

}  // namespace colibri
