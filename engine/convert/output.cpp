// SPDX-License-Identifier: Apache-2.0
#include "engine/convert/output.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <utility>
#include <vector>

#include "engine/base/file.h"

namespace colibri {

namespace {
constexpr int64_t kPushBytes = 16 << 20;
}

int64_t freeBytes(const std::filesystem::path& folder, const DiskHooks& hooks) {
    if (hooks.freeBytes) return hooks.freeBytes(folder);
    struct statvfs info;
    if (::statvfs(folder.c_str(), &info) != 0) return -1;
    return int64_t(info.f_bavail) * int64_t(info.f_frsize);
}

Result<OutputFile> OutputFile::open(const std::filesystem::path& path, int64_t keep,
                                    const DiskHooks* hooks) {
    int fd = ::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0644);
    if (fd < 0) return systemError("cannot create", path, errno);
    OutputFile file(fd, path, hooks);
    struct stat info;
    if (::fstat(fd, &info) != 0) return systemError("cannot examine", path, errno);
    if (info.st_size < keep) {
        return Status(Code::BadInput, path.string() + ": shorter than its journal says");
    }
    if (::ftruncate(fd, keep) != 0) return systemError("cannot write", path, errno);
    file.m_position = file.m_pushed = keep;
    return file;
}

OutputFile::OutputFile(OutputFile&& other) noexcept
    : m_fd(std::exchange(other.m_fd, -1)),
      m_path(std::move(other.m_path)),
      m_hooks(other.m_hooks),
      m_position(other.m_position),
      m_pushed(other.m_pushed),
      m_hasher(std::move(other.m_hasher)) {}

OutputFile::~OutputFile() {
    if (m_fd >= 0) ::close(m_fd);
}

Status OutputFile::append(std::span<const std::byte> data) {
    m_hasher.update(data.data(), data.size());
    while (!data.empty()) {
        if (m_hooks && m_hooks->beforeWrite) {
            if (int error = m_hooks->beforeWrite(m_path, m_position); error != 0) {
                return systemError("cannot write", m_path, error);
            }
        }
        ssize_t n = ::pwrite(m_fd, data.data(), data.size(), m_position);
        if (n < 0 && errno == EINTR) continue;
        if (n < 0) return systemError("cannot write", m_path, errno);
        if (n == 0) return systemError("cannot write", m_path, ENOSPC);
        m_position += n;
        data = data.subspan(size_t(n));
    }
    // Writing back begins now, so that sync() has little left to wait for. Only advice.
    if (m_position - m_pushed >= kPushBytes) {
        (void)::sync_file_range(m_fd, m_pushed, m_position - m_pushed, SYNC_FILE_RANGE_WRITE);
        m_pushed = m_position;
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

Status OutputFile::sync() {
    if (::fdatasync(m_fd) != 0) return systemError("cannot write", m_path, errno);
    return {};
}

Status syncFolder(const std::filesystem::path& folder) {
    int fd = ::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0) return systemError("cannot open", folder, errno);
    int error = ::fsync(fd) != 0 ? errno : 0;
    ::close(fd);
    // Some file systems cannot sync a folder; the rename is in place all the same.
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
