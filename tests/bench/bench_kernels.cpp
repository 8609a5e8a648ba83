// SPDX-License-Identifier: GPL-3.0-or-later
// Speed of the products on one core: how close one row comes to plain memory reads, and how many
// multiply-accumulates per second many rows reach.
//
//   bench_kernels [dtype ...]      default: every type
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <new>
#include <random>
#include <string_view>
#include <vector>

#include "kernels/kernels.h"
#include "kernels/layout.h"

using namespace colibri;

namespace {

constexpr int64_t kCols = 2048;
constexpr int64_t kStreamBytes = int64_t(256) << 20;  // far beyond the caches
constexpr int kRepeats = 5;

struct Free {
    void operator()(std::byte* p) const { std::free(p); }
};
using Buffer = std::unique_ptr<std::byte, Free>;

Buffer allocate(int64_t bytes) {
    const auto rounded = size_t(bytes + 4095) / 4096 * 4096;
    auto* p = static_cast<std::byte*>(std::aligned_alloc(4096, rounded));
    if (!p) throw std::bad_alloc();
    return Buffer(p);
}

// Best of a few runs, in seconds: the machine may be doing something else in the others.
template <typename Body>
double secondsOf(Body body) {
    double best = 1e30;
    for (int i = 0; i < kRepeats; ++i) {
        const auto start = std::chrono::steady_clock::now();
        body();
        const std::chrono::duration<double> took = std::chrono::steady_clock::now() - start;
        if (took.count() < best) best = took.count();
    }
    return best;
}

// Sums the buffer in 64-bit words: as plain a read as there is.
double readBandwidth(const std::byte* data, int64_t bytes) {
    uint64_t total = 0;
    const double seconds = secondsOf([&] {
        const auto* words = reinterpret_cast<const uint64_t*>(data);
        uint64_t sums[32] = {};
        for (int64_t i = 0; i < bytes / 8; i += 32) {
            for (int j = 0; j < 32; ++j) sums[j] += words[i + j];
        }
        for (uint64_t s : sums) total += s;
    });
    volatile uint64_t sink = total;
    (void)sink;
    return double(bytes) / seconds;
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

// A matrix of `bytes` at least, made of copies of one packed run of panels.
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
    const int64_t unit = packedBytes(type, kSourceRows, kCols);
    const int64_t copies = (kStreamBytes + unit - 1) / unit;
    Matrix m{allocate(unit * copies), kSourceRows * copies, unit * copies};
    packRows(type, source.data(), kSourceRows, kCols, m.data.get());
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

void benchSet(const Set& set, DType type, const Matrix& m, double readBytesPerSecond) {
    const bool scalar = set.kernels->isa == Isa::Scalar;
    std::vector<float> y(m.rows * 1);
    // The scalar set is a reference, not a product: a part of the matrix tells enough.
    const int64_t panels = scalar ? panelCount(m.rows) / 64 : panelCount(m.rows);
    const Buffer one = makeInput(*set.kernels, type, 1);
    const double single = secondsOf([&] {
        set.kernels->matmul(type, m.data.get(), m.rows, kCols, 0, panels, one.get(), 1, y.data(),
                            m.rows);
    });
    const double weightBytes = double(panels * panelBytes(type, kCols));
    const double fused = secondsOf([&] {
        const std::byte* up = m.data.get() + panels / 2 * panelBytes(type, kCols);
        set.kernels->gateUp(type, m.data.get(), up, m.rows / 2, kCols, 0, panels / 2, one.get(), 1,
                            y.data(), m.rows);
    });
    std::printf("%-6s %-13s %7.2f %5.2f %7.2f %5.2f |", dtypeName(type).data(), set.name,
                weightBytes / single / 1e9, weightBytes / single / readBytesPerSecond,
                weightBytes / fused / 1e9, weightBytes / fused / readBytesPerSecond);
    for (const int64_t rows : {1, 2, 3, 4, 6, 8, 12, 16, 32, 64, 512}) {
        if (scalar && rows > 8) break;
        // 64 panels: one expert matrix of 1024 outputs, over and over.
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

}  // namespace

int main(int argc, char** argv) {
    Buffer plain = allocate(kStreamBytes);
    std::memset(plain.get(), 1, kStreamBytes);
    const double read = readBandwidth(plain.get(), kStreamBytes);
    std::printf("one core; plain reads: %.2f GB/s; weights %lld columns wide\n", read / 1e9,
                static_cast<long long>(kCols));
    std::printf("%-6s %-13s %7s %5s %7s %5s | GMAC/s for rows = 1 2 3 4 6 8 12 16 32 64 512\n", "type",
                "set", "GB/s", "ratio", "gateUp", "ratio");
    for (DType type : {DType::F32, DType::F16, DType::BF16, DType::Q8_0, DType::Q4_0}) {
        bool wanted = argc < 2;
        for (int i = 1; i < argc; ++i) wanted = wanted || dtypeName(type) == argv[i];
        if (!wanted) continue;
        const Matrix m = makeMatrix(type);
        for (const Set& set : allSets()) benchSet(set, type, m, read);
    }
    return 0;
}
