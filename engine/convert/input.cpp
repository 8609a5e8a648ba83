// SPDX-License-Identifier: Apache-2.0
#include "engine/convert/input.h"

#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <memory>
#include <new>
#include <utility>

namespace colibri {

namespace {

constexpr size_t kLong = 128 << 10;        // bytes from which a read may go past the cache
constexpr int64_t kWindowBytes = 1 << 20;  // of one direct read
constexpr int64_t kPageBytes = 4096;       // of direct reads: memory, place and length

struct FreeWindow {
    void operator()(std::byte* block) const {
        ::operator delete(block, std::align_val_t(kPageBytes));
    }
};

}  // namespace

Result<InputFile> InputFile::open(const std::filesystem::path& path) {
    Result<File> file = File::open(path, File::Mode::Read);
    if (!file) return file.status();
    Result<File> direct = File::open(path, File::Mode::ReadDirect);
    if (!direct) return direct.status();
    return InputFile(std::move(*file), std::move(*direct));
}

Status InputFile::readAt(int64_t offset, std::span<std::byte> out) const {
    if (m_direct.direct() && out.size() >= kLong) {
        size_t done = readCached(offset, out);
        if (out.size() - done >= kLong) {
            done += readDirect(offset + int64_t(done), out.subspan(done));
        }
        offset += int64_t(done);
        out = out.subspan(done);
    }
    return m_file.readAt(offset, out);  // also says what is wrong with the rest
}

// How many bytes from the beginning the page cache had.
size_t InputFile::readCached(int64_t offset, std::span<std::byte> out) const {
    size_t done = 0;
    while (done < out.size()) {
        const iovec rest = {out.data() + done, out.size() - done};
        const ssize_t n = ::preadv2(m_file.fd(), &rest, 1, offset + int64_t(done), RWF_NOWAIT);
        if (n <= 0) break;
        done += size_t(n);
    }
    return done;
}

// How many bytes from the beginning could be read past the cache: all, unless something is wrong.
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
