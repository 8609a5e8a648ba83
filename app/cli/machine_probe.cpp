// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/cli/machine_probe.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <thread>
#include <vector>

#include "engine/base/file.h"
#include "engine/telemetry/telemetry.h"

namespace colibri::cli {

namespace {

namespace fs = std::filesystem;

constexpr int64_t kBlock = 4 << 20;
constexpr int64_t kSmallestFile = 64 << 20;
constexpr int64_t kTemporaryFile = 128 << 20;
constexpr uint64_t kLongestNs = 1'000'000'000;
constexpr int kReaders = 4;

struct Aligned {
    explicit Aligned(int64_t bytes)
        : data(static_cast<std::byte*>(std::aligned_alloc(4096, size_t(bytes)))) {}
    ~Aligned() { std::free(data); }
    std::byte* data;
};

fs::path largestFile(const fs::path& folder) {
    fs::path best;
    uintmax_t size = kSmallestFile - 1;
    std::error_code error;
    for (auto it = fs::recursive_directory_iterator(
             folder, fs::directory_options::skip_permission_denied, error);
         !error && it != fs::recursive_directory_iterator(); it.increment(error)) {
        if (it.depth() > 1) it.disable_recursion_pending();
        std::error_code ignored;
        if (!it->is_regular_file(ignored)) continue;
        const uintmax_t bytes = it->file_size(ignored);
        // A file of the kernel's has a size but no blocks.
        struct stat info {};
        if (stat(it->path().c_str(), &info) != 0 || uintmax_t(info.st_blocks) * 512 < bytes / 2)
            continue;
        if (!ignored && bytes > size) {
            size = bytes;
            best = it->path();
        }
    }
    return best;
}

Status writeTemporary(const fs::path& path) {
    Result<File> file = File::open(path, File::Mode::Create);
    if (!file.ok()) return file.status();
    Aligned block(kBlock);
    if (!block.data) return {Code::OutOfMemory, "no memory for a read buffer"};
    for (int64_t i = 0; i < kBlock; ++i) block.data[i] = std::byte(i * 131);
    for (int64_t at = 0; at < kTemporaryFile; at += kBlock) {
        COLIBRI_TRY(file->writeAt(at, {block.data, size_t(kBlock)}));
    }
    COLIBRI_TRY(file->sync());
    // Out of the page cache, for file systems without direct reads.
    posix_fadvise(file->fd(), 0, 0, POSIX_FADV_DONTNEED);
    return {};
}

Result<ReadRate> readFile(const fs::path& path, const CancelFlag* cancel) {
    Result<File> file = File::open(path, File::Mode::ReadDirect);
    if (!file.ok()) return file.status();
    Result<int64_t> size = file->size();
    if (!size.ok()) return size.status();
    const int64_t blocks = *size / kBlock;
    std::atomic<int64_t> next{0}, bytes{0};
    std::vector<Status> status(kReaders);
    const uint64_t start = monotonicNs();
    std::vector<std::thread> readers;
    for (int i = 0; i < kReaders; ++i) {
        readers.emplace_back([&, i] {
            Aligned buffer(kBlock);
            if (!buffer.data) return;
            for (;;) {
                const int64_t block = next.fetch_add(1);
                if (block >= blocks || monotonicNs() - start > kLongestNs) return;
                if (cancel && cancel->load()) return;
                status[size_t(i)] = file->readAt(block * kBlock, {buffer.data, size_t(kBlock)});
                if (!status[size_t(i)].ok()) return;
                bytes.fetch_add(kBlock);
            }
        });
    }
    for (std::thread& reader : readers) reader.join();
    const double seconds = double(monotonicNs() - start) * 1e-9;
    for (const Status& s : status) COLIBRI_TRY(s);
    return ReadRate{double(bytes.load()) / seconds, bytes.load(), file->direct(), path};
}

}  // namespace

Result<ReadRate> measureDisk(const fs::path& folder, const CancelFlag* cancel) {
    std::error_code error;
    if (!fs::is_directory(folder, error)) {
        return Status(Code::BadInput, folder.string() + " is not a folder");
    }
    if (const fs::path found = largestFile(folder); !found.empty()) return readFile(found, cancel);
    const fs::path temporary = folder / (".colibri-read-test." + std::to_string(getpid()));
    Status status = writeTemporary(temporary);
    Result<ReadRate> rate = status.ok() ? readFile(temporary, cancel) : Result<ReadRate>(status);
    fs::remove(temporary, error);
    if (rate.ok()) rate->file.clear();
    return rate;
}

}  // namespace colibri::cli
