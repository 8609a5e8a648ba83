// SPDX-License-Identifier: Apache-2.0
#include "engine/convert/source/input.h"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <memory>
#include <new>
#include <utility>
#include <vector>

namespace colibri {

namespace {

constexpr size_t kLong = 128 << 10;        // smallest size of a direct read, in bytes
constexpr int64_t kWindowBytes = 1 << 20;  // size of one direct read
constexpr int64_t kPageBytes = 4096;       // of direct reads: memory, file offset and length

struct FreeWindow {
    void operator()(std::byte* block) const {
        ::operator delete(block, std::align_val_t(kPageBytes));
    }
};

}  // namespace

void InputFile::Unmap::operator()(std::byte* start) const {
    ::munmap(start, bytes);
}

Result<InputFile> InputFile::open(const std::filesystem::path& path) {
    Result<File> file = File::open(path, File::Mode::Read);
    if (!file) return file.status();
    Result<File> direct = File::open(path, File::Mode::ReadDirect);
    if (!direct) return direct.status();
    Result<int64_t> size = file->size();
    if (!size) return size.status();
    InputFile input(std::move(*file), std::move(*direct), *size);
    if (*size == 0 || !input.m_direct.direct()) return input;
    void* map = ::mmap(nullptr, size_t(*size), PROT_READ, MAP_SHARED, input.m_file.fd(), 0);
    if (map != MAP_FAILED) {
        input.m_map =
            std::unique_ptr<std::byte[], Unmap>(static_cast<std::byte*>(map), Unmap{size_t(*size)});
    }
    return input;
}

Status InputFile::readAt(int64_t offset, std::span<std::byte> out) const {
    const bool within = offset + int64_t(out.size()) <= m_size;
    if (within && out.size() >= kLong && !cached(offset, out.size())) {
        const size_t done = readDirect(offset, out);
        offset += int64_t(done);
        out = out.subspan(done);
    }
    return m_file.readAt(offset, out);  // also reports errors of the rest
}

// Uses a mapping to query which pages are in the page cache, without reading through it. (A read
// with RWF_NOWAIT would start read-ahead.)
bool InputFile::cached(int64_t offset, size_t bytes) const {
    const int64_t start = offset / kPageBytes * kPageBytes;
    const auto length = size_t(offset + int64_t(bytes) - start);
    std::vector<unsigned char> held((length + kPageBytes - 1) / kPageBytes);
    if (!m_map || ::mincore(m_map.get() + start, length, held.data()) != 0) return true;
    return std::all_of(held.begin(), held.end(), [](unsigned char page) { return page & 1; });
}

// Reads the beginning of the range directly. Returns the number of bytes read: all unless there is
// a problem.
size_t InputFile::readDirect(int64_t offset, std::span<std::byte> out) const {
    static thread_local const std::unique_ptr<std::byte[], FreeWindow> block(
        static_cast<std::byte*>(::operator new(kWindowBytes, std::align_val_t(kPageBytes))));
    size_t done = 0;
    while (done < out.size()) {
        const int64_t at = offset + int64_t(done), start = at / kPageBytes * kPageBytes;
        const int64_t end = std::min(offset + int64_t(out.size()), start + kWindowBytes);
        const int64_t bytes = (end - start + kPageBytes - 1) / kPageBytes * kPageBytes;
        const ssize_t n = ::pread(m_direct.fd(), block.get(), size_t(bytes), start);
        if (n < end - start) break;
        std::memcpy(out.data() + done, block.get() + (at - start), size_t(end - at));
        done += size_t(end - at);
    }
    return done;
}

}  // namespace colibri
