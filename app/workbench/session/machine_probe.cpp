// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/workbench/session/machine_probe.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdlib>
#include <memory>
#include <mutex>
#include <new>
#include <random>
#include <thread>

#include "engine/base/file.h"
#include "engine/base/machine.h"

namespace colibri::ui {
namespace {

constexpr int kReaders = 4;
constexpr size_t kAlign = 4096;
constexpr int64_t kOwnFileBytes = 256ll << 20;

using Clock = std::chrono::steady_clock;

double secondsSince(Clock::time_point start) {
    return std::chrono::duration<double>(Clock::now() - start).count();
}

struct AlignedDelete {
    void operator()(std::byte* p) const { std::free(p); }
};
using AlignedBytes = std::unique_ptr<std::byte, AlignedDelete>;

AlignedBytes allocate(int64_t bytes) {
    return AlignedBytes(static_cast<std::byte*>(
        std::aligned_alloc(kAlign, (size_t(bytes) + kAlign - 1) / kAlign * kAlign)));
}

struct Piece {
    const File* file;
    int64_t size;
};

struct Reading {
    std::atomic<int64_t> bytes{0};
    std::atomic<bool> stop{false};
    std::mutex mutex;  // guards status
    Status status;
};

void readRandomly(const std::vector<Piece>& pieces, int64_t readBytes, unsigned seed,
                  Reading& reading) {
    const AlignedBytes buffer = allocate(readBytes);
    if (!buffer) return;
    std::mt19937_64 random(seed);
    while (!reading.stop.load(std::memory_order_relaxed)) {
        const Piece& piece = pieces[random() % pieces.size()];
        const int64_t places = (piece.size - readBytes) / int64_t(kAlign) + 1;
        const int64_t offset = int64_t(random() % uint64_t(places)) * int64_t(kAlign);
        const Status status = piece.file->readAt(offset, {buffer.get(), size_t(readBytes)});
        if (!status.ok()) {
            const std::lock_guard lock(reading.mutex);
            reading.status = status;
            reading.stop = true;
            return;
        }
        reading.bytes.fetch_add(readBytes, std::memory_order_relaxed);
    }
}

// Reports progress in tenths of a second until the time is over or something stops it.
void waitFor(double seconds, const char* stage, Clock::time_point start,
             const std::atomic<bool>& stop, const ProgressFn& progress, const CancelFlag* cancel) {
    while (!stop.load() && secondsSince(start) < seconds && !(cancel && cancel->load())) {
        std::this_thread::sleep_for(std::chrono::milliseconds(40));
        if (progress) {
            const auto tenths = [](double s) { return uint64_t(s * 10); };
            progress({stage, std::min(tenths(secondsSince(start)), tenths(seconds)),
                      tenths(seconds), "tenths of a second"});
        }
    }
}

Status cancelled() {
    return Status(Code::Cancelled, "The measurement was cancelled");
}

}  // namespace

Result<DiskRate> measureDisk(const std::vector<std::filesystem::path>& files, int64_t readBytes,
                             double seconds, const ProgressFn& progress, const CancelFlag* cancel) {
    readBytes = std::max<int64_t>(int64_t(kAlign), readBytes / int64_t(kAlign) * int64_t(kAlign));
    DiskRate rate;
    rate.readBytes = readBytes;
    std::vector<File> open;
    for (const auto& path : files) {
        auto file = File::open(path, File::Mode::ReadDirect);
        if (!file) return file.status();
        rate.direct = rate.direct && file->direct();
        open.push_back(std::move(*file));
    }
    std::vector<Piece> pieces;
    for (const File& file : open) {
        const auto size = file.size();
        if (size && *size >= readBytes) pieces.push_back({&file, *size});
    }
    if (pieces.empty())
        return Status(Code::InvalidArgument, "No file is large enough to measure the disk with");
    Reading reading;
    const auto start = Clock::now();
    std::vector<std::thread> threads;
    for (unsigned i = 0; i < kReaders; ++i) {
        threads.emplace_back([&, i] { readRandomly(pieces, readBytes, i + 1, reading); });
    }
    waitFor(seconds, "Disk", start, reading.stop, progress, cancel);
    const double elapsed = secondsSince(start);
    const int64_t bytes = reading.bytes.load();
    reading.stop = true;
    for (std::thread& thread : threads) thread.join();
    if (cancel && cancel->load()) return cancelled();
    if (!reading.status.ok()) return reading.status;
    rate.bytesPerSecond = double(bytes) / elapsed;
    return rate;
}

Result<DiskRate> measureDiskOf(const std::filesystem::path& dir, int64_t readBytes, double seconds,
                               const ProgressFn& progress, const CancelFlag* cancel) {
    const std::filesystem::path path = dir / "disk-measurement.tmp";
    const auto write = [&]() -> Status {
        auto file = File::open(path, File::Mode::Create);
        if (!file) return file.status();
        constexpr int64_t kChunk = 4 << 20;
        const AlignedBytes buffer = allocate(kChunk);
        if (!buffer) return Status(Code::OutOfMemory, "No memory for the measurement");
        // Not zeros: some disks and file systems do not store those.
        std::mt19937_64 random(7);
        auto* words = reinterpret_cast<uint64_t*>(buffer.get());
        for (int64_t i = 0; i < kChunk / 8; ++i) words[i] = random();
        for (int64_t at = 0; at < kOwnFileBytes; at += kChunk) {
            if (cancel && cancel->load()) return cancelled();
            COLIBRI_TRY(file->writeAt(at, {buffer.get(), size_t(kChunk)}));
            if (progress) progress({"Writing a file to read", uint64_t(at), kOwnFileBytes});
        }
        return file->sync();
    };
    const Status written = write();
    auto rate = written.ok() ? measureDisk({path}, readBytes, seconds, progress, cancel)
                             : Result<DiskRate>(written);
    std::error_code error;
    std::filesystem::remove(path, error);
    return rate;
}

Result<double> measureMemory(double seconds, const ProgressFn& progress, const CancelFlag* cancel) {
    // Per core a block well over its share of the last cache, read over and over.
    constexpr int64_t kBlock = 64 << 20;
    const int cores = std::max(1, physicalCores());
    std::vector<AlignedBytes> blocks;
    for (int i = 0; i < cores && int64_t(i) * kBlock < memoryFreeNow() / 4; ++i) {
        blocks.push_back(allocate(kBlock));
        if (!blocks.back()) return Status(Code::OutOfMemory, "No memory for the measurement");
        std::fill_n(blocks.back().get(), kBlock, std::byte(i + 1));
    }
    if (blocks.empty())
        return Status(Code::OutOfMemory, "Too little memory is free to measure its speed");
    std::atomic<int64_t> bytes{0};
    std::atomic<bool> stop{false};
    std::atomic<uint64_t> sink{0};
    std::vector<std::thread> threads;
    const auto start = Clock::now();
    for (const AlignedBytes& block : blocks) {
        threads.emplace_back([&, data = reinterpret_cast<const uint64_t*>(block.get())] {
            constexpr int64_t kStep = (4 << 20) / 8;
            uint64_t total = 0;
            for (int64_t at = 0; !stop.load(std::memory_order_relaxed);
                 at = (at + kStep) % (kBlock / 8)) {
                uint64_t a = 0, b = 0, c = 0, d = 0;
                for (int64_t i = at; i < at + kStep; i += 4) {
                    a += data[i];
                    b += data[i + 1];
                    c += data[i + 2];
                    d += data[i + 3];
                }
                total += a + b + c + d;
                bytes.fetch_add(kStep * 8, std::memory_order_relaxed);
            }
            sink += total;
        });
    }
    waitFor(seconds, "Memory", start, stop, progress, cancel);
    const double elapsed = secondsSince(start);
    const int64_t read = bytes.load();
    stop = true;
    for (std::thread& thread : threads) thread.join();
    if (cancel && cancel->load()) return cancelled();
    return double(read) / elapsed;
}

}  // namespace colibri::ui
