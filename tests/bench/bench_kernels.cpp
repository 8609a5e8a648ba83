// SPDX-License-Identifier: GPL-3.0-or-later
// The speed of the products on one core: the read rate with one row compared with plain memory
// reads, and multiply-accumulates per second with many rows.
//
//   bench_kernels [dtype ...]      default: every type, and attention
#include <sys/mman.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <memory>
#include <new>
#include <random>
#include <string_view>
#include <vector>

#include "kernels/kernels.h"
#include "kernels/layout.h"
#include "tests/kernels/random_blocks.h"

using namespace colibri;

namespace {

constexpr int64_t kCols = 2048;
constexpr int64_t kStreamBytes = int64_t(256) << 20;  // much larger than the caches
constexpr int kRepeats = 5;

struct Free {
    void operator()(std::byte* p) const { std::free(p); }
};
using Buffer = std::unique_ptr<std::byte, Free>;

// Uses huge pages if possible: with small pages, page-table walks cost a third of the bandwidth.
Buffer allocate(int64_t bytes) {
    constexpr int64_t kHugePage = int64_t(2) << 20;
    const auto rounded = size_t((bytes + kHugePage - 1) / kHugePage * kHugePage);
    auto* p = static_cast<std::byte*>(std::aligned_alloc(size_t(kHugePage), rounded));
    if (!p) throw std::bad_alloc();
    madvise(p, rounded, MADV_HUGEPAGE);
    return Buffer(p);
}

double threadSeconds() {
    timespec now = {};
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return double(now.tv_sec) + double(now.tv_nsec) * 1e-9;
}

// The best of several runs, in seconds of this thread, because other programs may be running.
template <typename Body>
double secondsOf(Body body) {
    double best = 1e30;
    for (int i = 0; i < kRepeats; ++i) {
        const double start = threadSeconds();
        body();
        best = std::min(best, threadSeconds() - start);
    }
    return best;
}

// Sums the buffer in 64-bit words: the plainest read possible, with the widest registers available.
#ifdef COLIBRI_X86_KERNELS
__attribute__((target_clones("default", "avx2", "avx512f")))
#endif
uint64_t
readAll(const std::byte* data, int64_t bytes) {
    const auto* words = reinterpret_cast<const uint64_t*>(data);
    uint64_t total = 0;
    for (int64_t i = 0; i < bytes / 8; ++i) total += words[i];
    return total;
}

struct Set {
    const char* name;
    const KernelSet* kernels;
};

std::vector<Set> allSets() {
    std::vector<Set> sets = {{"scalar", &scalarKernels()}};
#ifdef COLIBRI_X86_KERNELS
    for (Isa isa : availableIsas()) {
        if (isa == Isa::Avx2) sets.push_back({"AVX2", &avx2Kernels()});
        if (isa == Isa::Avx512) sets.push_back({"AVX-512", &avx512Kernels()});
    }
    if (hasVnni()) sets.push_back({"AVX-512 VNNI", &avx512VnniKernels()});
#endif
    return sets;
}

// A matrix of at least `bytes`, made of copies of one packed run of panels.
struct Matrix {
    Buffer data;
    int64_t rows;
    int64_t bytes;
};

Matrix makeMatrix(DType type) {
    constexpr int64_t kSourceRows = 256;
    std::mt19937 random(1);
    std::normal_distribution<float> normal;
    std::vector<float> source(kSourceRows * kCols);
    for (float& v : source) v = normal(random) * 0.05f;
    const std::vector<std::byte> blocks = randomBlocks(type, kSourceRows, kCols, 1);
    const int64_t unit = packedBytes(type, kSourceRows, kCols);
    const int64_t copies = (kStreamBytes + unit - 1) / unit;
    Matrix m{allocate(unit * copies), kSourceRows * copies, unit * copies};
    if (hasEncoder(type)) {
        packRows(type, source.data(), kSourceRows, kCols, m.data.get());
    } else {
        packGgmlRows(type, blocks.data(), kSourceRows, kCols, m.data.get());
    }
    for (int64_t i = 1; i < copies; ++i) std::memcpy(m.data.get() + i * unit, m.data.get(), unit);
    return m;
}

Buffer makeInput(const KernelSet& k, DType type, int64_t rows) {
    std::mt19937 random(2);
    std::normal_distribution<float> normal;
    std::vector<float> x(rows * kCols);
    for (float& v : x) v = normal(random);
    Buffer out = allocate(inputRowBytes(type, kCols) * rows);
    k.prepareInput(type, x.data(), kCols, rows, kCols, out.get());
    return out;
}

// Streaming with one row. Reads and products alternate, so the ratios are valid on a busy machine
// too.
void benchStream(const Set& set, DType type, const Matrix& m) {
    // The scalar set is only a reference, so a part of the matrix is sufficient.
    const int64_t panels = panelCount(m.rows) / (set.kernels->isa == Isa::Scalar ? 64 : 1);
    const int64_t size = panelBytes(type, kCols);
    const Buffer one = makeInput(*set.kernels, type, 1);
    std::vector<float> y(m.rows);
    const std::byte* up = m.data.get() + panels / 2 * size;
    volatile uint64_t sink = 0;
    double read = 1e30;
    double single = 1e30;
    double fused = 1e30;
    for (int i = 0; i < kRepeats; ++i) {
        const double start = threadSeconds();
        sink = sink + readAll(m.data.get(), panels * size);
        const double afterRead = threadSeconds();
        set.kernels->matmul(type, m.data.get(), m.rows, kCols, 0, panels, one.get(), 1, y.data(),
                            m.rows);
        const double afterSingle = threadSeconds();
        set.kernels->gateUp(type, m.data.get(), type, up, m.rows / 2, kCols, 0, panels / 2,
                            one.get(), 1, y.data(), m.rows);
        read = std::min(read, afterRead - start);
        single = std::min(single, afterSingle - afterRead);
        fused = std::min(fused, threadSeconds() - afterSingle);
    }
    const double gigabytes = double(panels * size) / 1e9;
    std::printf("%-6s %-13s %6.2f %6.2f %5.2f %6.2f %5.2f |", dtypeName(type).data(), set.name,
                gigabytes / read, gigabytes / single, read / single, gigabytes / fused,
                read / fused);
}

void benchRows(const Set& set, DType type, const Matrix& m) {
    const bool scalar = set.kernels->isa == Isa::Scalar;
    for (const int64_t rows : {1, 2, 3, 4, 6, 8, 12, 16, 32, 64, 512}) {
        if (scalar && rows > 8) break;
        // 64 panels: one expert matrix with 1024 outputs, repeatedly.
        const int64_t some = 64;
        const int64_t rounds = scalar ? 1 : 1 + 128 / rows;
        const Buffer x = makeInput(*set.kernels, type, rows);
        std::vector<float> out(rows * some * kPanel);
        const double seconds = secondsOf([&] {
            for (int64_t i = 0; i < rounds; ++i) {
                set.kernels->matmul(type, m.data.get(), some * kPanel, kCols, 0, some, x.get(),
                                    rows, out.data(), some * kPanel);
            }
        });
        std::printf(" %6.1f", double(rows * some * kPanel * kCols * rounds) / seconds / 1e9);
        std::fflush(stdout);
    }
    std::printf("\n");
}

// One decoded position with a long context, KV larger than the caches: f16 pages, head size 128.
void benchAttention(const Set& set) {
    constexpr int64_t kPositions = 4096;
    constexpr int kDim = 128;
    constexpr int kKvHeads = 32;
    constexpr int64_t kPageBytes = 2 * kPageTokens * kDim * sizeof(uint16_t);
    constexpr int64_t kPages = kPositions / kPageTokens;
    const int64_t bytes = kPageBytes * kPages * kKvHeads;
    Buffer kv = allocate(bytes);
    std::memset(kv.get(), 0x12, bytes);
    std::vector<const void*> pages;
    for (int64_t i = 0; i < kPages * kKvHeads; ++i) pages.push_back(kv.get() + i * kPageBytes);
    std::printf("attention %-13s", set.name);
    for (const int heads : {1, 4, 8}) {
        std::vector<float> q(heads * kDim, 0.1f);
        std::vector<float> out(heads * kDim);
        std::vector<float> scratch(heads * kPositions);
        const double seconds = secondsOf([&] {
            for (int g = 0; g < kKvHeads; ++g) {
                set.kernels->attention({q.data(), heads, kDim, 0, pages.data() + g * kPages,
                                        KvType::F16, 0, kPositions, 0.09f, nullptr, scratch.data(),
                                        out.data()});
            }
        });
        std::printf("  %d heads per KV head: %.1f GB/s of KV, %.1f GMAC/s", heads,
                    double(bytes) / seconds / 1e9,
                    2.0 * kPositions * kDim * kKvHeads * heads / seconds / 1e9);
    }
    std::printf("\n");
}

}  // namespace

int main(int argc, char** argv) {
    std::printf(
        "one core, weights %lld columns wide; streaming from memory with one row in GB/s\n"
        "and as a part of plain reads; then GMAC/s for 1 2 3 4 6 8 12 16 32 64 512 rows\n",
        static_cast<long long>(kCols));
    std::printf("%-6s %-13s %6s %6s %5s %6s %5s |\n", "type", "set", "read", "matmul", "", "gateUp",
                "");
    for (int i = 0; i < kDTypeCount; ++i) {
        const auto type = DType(i);
        bool wanted = argc < 2;
        for (int a = 1; a < argc; ++a) wanted = wanted || dtypeName(type) == argv[a];
        if (!wanted) continue;
        const Matrix m = makeMatrix(type);
        for (const Set& set : allSets()) {
            benchStream(set, type, m);
            benchRows(set, type, m);
        }
    }
    if (argc > 1) return 0;
    for (const Set& set : allSets()) {
        if (set.kernels->isa != Isa::Scalar) benchAttention(set);
    }
    return 0;
}
