// SPDX-License-Identifier: Apache-2.0
#include "profiler/machine/kernel_probe.h"

#include <atomic>
#include <barrier>
#include <chrono>
#include <new>
#include <system_error>
#include <thread>
#include <vector>

namespace colibri {
namespace {

using Clock = std::chrono::steady_clock;

constexpr int64_t kCols = 2048;
constexpr int64_t kStreamedBytes = 48 << 20;  // of a thread: larger than its share of the caches
constexpr int64_t kCachedBytes = 128 << 10;
constexpr int64_t kPrefillRows = 32;
constexpr int kMatrixParts = 64;  // parts of a matrix between two looks at the clock
// As the scale of a block, these bytes are a small normal number, in f16 and as an exponent.
constexpr std::byte kWeightByte{0x2e};

// A matrix of about so many bytes, and its input.
struct Product {
    Product(const KernelSet& kernels, DType type, int64_t bytes, int64_t inputRows)
        : rows(std::max<int64_t>(1, bytes / panelBytes(type, kCols)) * kPanel),
          weights(size_t(packedBytes(type, rows, kCols)), kWeightByte),
          input(size_t(inputRows * inputRowBytes(type, kCols))),
          out(size_t(inputRows * rows)) {
        const std::vector<float> x(size_t(inputRows * kCols), 0.5f);
        kernels.prepareInput(type, x.data(), kCols, inputRows, kCols, input.data());
    }
    int64_t rows;
    std::vector<std::byte> weights, input;
    std::vector<float> out;
};

// Passes over matrices per second, summed over the threads: each has its own matrix.
double passesPerSecond(const KernelSet& kernels, DType type, int64_t bytes, int64_t inputRows,
                       int threads, double seconds) {
    std::atomic<bool> failed{false};
    std::atomic<uint64_t> parts{0};
    Clock::time_point start;  // written before any thread passes `made`
    std::barrier made(threads, [&]() noexcept { start = Clock::now(); });
    const auto spent = [&] { return std::chrono::duration<double>(Clock::now() - start).count(); };
    const auto run = [&] {
        std::optional<Product> p;
        try {
            p.emplace(kernels, type, bytes, inputRows);
        } catch (const std::bad_alloc&) {
            failed = true;
        }
        made.arrive_and_wait();
        if (failed) return;
        const int64_t panels = panelCount(p->rows);
        uint64_t done = 0;
        for (int64_t step = 0; spent() < seconds; ++step, ++done) {
            const int64_t part = step % kMatrixParts;
            kernels.matmul(type, p->weights.data(), p->rows, kCols, panels * part / kMatrixParts,
                           panels * (part + 1) / kMatrixParts, p->input.data(), inputRows,
                           p->out.data(), p->rows);
        }
        parts.fetch_add(done);
    };
    {
        std::vector<std::jthread> all;
        for (int i = 0; i < threads; ++i) {
            try {
                all.emplace_back(run);
            } catch (const std::system_error&) {
                failed = true;
                made.arrive_and_drop();
            }
        }
    }
    return failed ? 0 : double(parts.load()) / kMatrixParts / spent();
}

}  // namespace

double probeDecodeKernel(const KernelSet& kernels, DType type, int threads, double seconds) {
    const int64_t panels = std::max<int64_t>(1, kStreamedBytes / panelBytes(type, kCols));
    return passesPerSecond(kernels, type, kStreamedBytes, 1, threads, seconds) *
           double(panels * panelBytes(type, kCols));
}

double probePrefillKernel(const KernelSet& kernels, DType type, int threads, double seconds) {
    const int64_t panels = std::max<int64_t>(1, kCachedBytes / panelBytes(type, kCols));
    return passesPerSecond(kernels, type, kCachedBytes, kPrefillRows, threads, seconds) *
           double(2 * panels * kPanel * kCols * kPrefillRows);
}

}  // namespace colibri
