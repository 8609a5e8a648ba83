// SPDX-License-Identifier: Apache-2.0
#include "engine/convert/pipeline/output.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <new>
#include <system_error>
#include <utility>
#include <vector>

#include "engine/base/file.h"

namespace colibri {

namespace {
constexpr int64_t kWriteBytes = 4 << 20;  // size of one write
constexpr int64_t kAlign = 4096;          // of direct writes: memory, file offset and length

}  // namespace

struct OutputFile::Target {
    Target(int fd, std::filesystem::path path, bool direct)
        : fd(fd), path(std::move(path)), direct(direct) {}
    ~Target() { ::close(fd); }
    Status write(const std::byte* data, int64_t bytes, int64_t at);

    const int fd;
    const std::filesystem::path path;
    bool direct;  // changed only by write(), whose calls never overlap
};

OutputFile::Block OutputFile::newBlock() {
    return Block(static_cast<std::byte*>(::operator new(kWriteBytes, std::align_val_t(kAlign))));
}

void OutputFile::Free::operator()(std::byte* block) const {
    ::operator delete(block, std::align_val_t(kAlign));
}

int64_t freeBytes(const std::filesystem::path& folder, const DiskHooks& hooks) {
    if (hooks.freeBytes) return hooks.freeBytes(folder);
    struct statvfs info;
    if (::statvfs(folder.c_str(), &info) != 0) return -1;
    return int64_t(info.f_bavail) * int64_t(info.f_frsize);
}

Result<OutputFile> OutputFile::open(const std::filesystem::path& path, int64_t keep,
                                    const DiskHooks* hooks) {
    const int flags = O_RDWR | O_CREAT | O_CLOEXEC;
    int fd = ::open(path.c_str(), flags | O_DIRECT, 0644);
    const bool direct = fd >= 0;
    if (!direct) fd = ::open(path.c_str(), flags, 0644);
    if (fd < 0) return systemError("cannot create", path, errno);
    OutputFile file(std::make_shared<Target>(fd, path, direct), hooks);
    COLIBRI_TRY(file.resume(keep));
    return file;
}

Status OutputFile::resume(int64_t keep) {
    struct stat info;
    if (::fstat(m_target->fd, &info) != 0) {
        return systemError("cannot examine", m_target->path, errno);
    }
    if (info.st_size < keep) {
        return Status(Code::BadInput,
                      m_target->path.string() + ": shorter than its journal states");
    }
    if (::ftruncate(m_target->fd, keep) != 0) {
        return systemError("cannot write", m_target->path, errno);
    }
    m_position = keep;
    m_start = keep / kAlign * kAlign;
    m_fill = keep - m_start;
    if (m_fill == 0) return {};
    m_block = newBlock();
    const ssize_t n = ::pread(m_target->fd, m_block.get(), kAlign, m_start);
    if (n < 0) return systemError("cannot read", m_target->path, errno);
    if (n < m_fill) return systemError("cannot read", m_target->path, EIO);
    return {};
}

OutputFile::OutputFile(std::shared_ptr<Target> target, const DiskHooks* hooks)
    : m_target(std::move(target)), m_hooks(hooks) {}
OutputFile::OutputFile(OutputFile&& other) noexcept = default;
OutputFile::~OutputFile() = default;

Status OutputFile::Target::write(const std::byte* data, int64_t bytes, int64_t at) {
    while (bytes > 0) {
        ssize_t n = ::pwrite(fd, data, size_t(bytes), at);
        if (n < 0 && errno == EINTR) continue;
        // Needs larger blocks, or does not support direct writes.
        if (n < 0 && errno == EINVAL && direct) {
            direct = false;
            if (::fcntl(fd, F_SETFL, 0) == 0) continue;
        }
        if (n < 0) return systemError("cannot write", path, errno);
        if (direct && n < bytes) n = n / kAlign * kAlign;
        if (n == 0) return systemError("cannot write", path, ENOSPC);
        data += n;
        bytes -= n;
        at += n;
    }
    return {};
}

Status OutputFile::finishWrite() {
    return m_writing.valid() ? m_writing.get() : Status();
}

Status OutputFile::append(std::span<const std::byte> data) {
    m_hasher.update(data.data(), data.size());
    if (m_hooks && m_hooks->beforeWrite) {
        if (int error = m_hooks->beforeWrite(m_target->path, m_position); error != 0) {
            return systemError("cannot write", m_target->path, error);
        }
    }
    while (!data.empty()) {
        if (!m_block) m_block = newBlock();
        const size_t n = std::min(data.size(), size_t(kWriteBytes - m_fill));
        std::memcpy(m_block.get() + m_fill, data.data(), n);
        data = data.subspan(n);
        m_fill += int64_t(n);
        m_position += int64_t(n);
        if (m_fill < kWriteBytes) break;
        COLIBRI_TRY(finishWrite());
        m_block.swap(m_written);
        const auto write = [target = m_target, block = m_written.get(), at = m_start] {
            return target->write(block, kWriteBytes, at);
        };
        try {
            m_writing = std::async(std::launch::async, write);
        } catch (const std::system_error&) {  // the system cannot start a thread
            COLIBRI_TRY(write());
        }
        m_start += kWriteBytes;
        m_fill = 0;
    }
    return {};
}

Status OutputFile::padTo(int64_t position) {
    static const std::vector<std::byte> zeros(4096);
    while (m_position < position) {
        auto n = size_t(std::min<int64_t>(position - m_position, int64_t(zeros.size())));
        COLIBRI_TRY(append({zeros.data(), n}));
    }
    return {};
}

// Writes the last block as whole pages, and keeps it in memory so that more data can be appended.
Status OutputFile::flush() {
    COLIBRI_TRY(finishWrite());
    if (m_fill == 0) return {};
    const int64_t whole = m_fill / kAlign * kAlign, bytes = (m_fill + kAlign - 1) / kAlign * kAlign;
    std::memset(m_block.get() + m_fill, 0, size_t(bytes - m_fill));
    COLIBRI_TRY(m_target->write(m_block.get(), bytes, m_start));
    if (bytes > m_fill && ::ftruncate(m_target->fd, m_position) != 0) {
        return systemError("cannot write", m_target->path, errno);
    }
    std::memmove(m_block.get(), m_block.get() + whole, size_t(m_fill - whole));
    m_start += whole;
    m_fill -= whole;
    return {};
}

Status OutputFile::sync() {
    COLIBRI_TRY(flush());
    if (::fdatasync(m_target->fd) != 0) return systemError("cannot write", m_target->path, errno);
    return {};
}

Status syncFolder(const std::filesystem::path& folder) {
    int fd = ::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0) return systemError("cannot open", folder, errno);
    int error = ::fsync(fd) != 0 ? errno : 0;
    ::close(fd);
    // Some file systems cannot sync a folder. The rename has been done in any case.
    if (error != 0 && error != EINVAL && error != ENOTSUP) {
        return systemError("cannot write", folder, error);
    }
    return {};
}

Status syncFileSystem(const std::filesystem::path& folder) {
    int fd = ::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0) return systemError("cannot open", folder, errno);
    int error = ::syncfs(fd) != 0 ? errno : 0;
    ::close(fd);
    return error != 0 ? systemError("cannot write", folder, error) : Status();
}

}  // namespace colibri
