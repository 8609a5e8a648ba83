// SPDX-License-Identifier: Apache-2.0
#include "engine/base/file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "engine/base/format.h"
#include "engine/base/printable.h"

namespace colibri {

Status systemError(std::string_view what, const std::filesystem::path& path, int error) {
    const std::string message =
        std::string(what) + " " + printable(path.string()) + ": " + std::strerror(error);
    switch (error) {
        case ENOSPC:
        case EDQUOT:
        case EFBIG:
            return {Code::NoSpace, message, "Free some space, or choose another folder"};
        case ENOENT:
        case ENOTDIR:
            return {Code::BadInput, message, "Check the path"};
        case EACCES:
        case EPERM:
            return {Code::IoError, message, "Check the permissions of the file and its folder"};
        case EROFS:
            return {Code::IoError, message, "The file system is read-only: choose another folder"};
        case EISDIR:
            return {Code::BadInput, message, "Give a file, not a folder"};
        case ENAMETOOLONG:
            return {Code::BadInput, message, "Choose a shorter name"};
        case ELOOP:
            return {Code::BadInput, message, "Its symbolic links form a loop"};
        case EMFILE:
        case ENFILE:
            return {Code::IoError, message, "Too many files are open: raise the limit (ulimit -n)"};
        case ENOMEM:
            return {Code::OutOfMemory, message, "Close other programs"};
        default:
            return {Code::IoError, message, "Check the disk"};
    }
}

File& File::operator=(File&& other) noexcept {
    if (this != &other) {
        if (m_fd >= 0) ::close(m_fd);
        m_fd = std::exchange(other.m_fd, -1);
        m_direct = other.m_direct;
        m_path = std::move(other.m_path);
    }
    return *this;
}

File::~File() {
    if (m_fd >= 0) ::close(m_fd);
}

Result<File> File::open(const std::filesystem::path& path, Mode mode) {
    File file;
    file.m_path = path;
    // Without O_NONBLOCK a named pipe would wait for a writer here, before it can be refused.
    const int flags = mode == Mode::Create ? O_RDWR | O_CREAT | O_TRUNC : O_RDONLY | O_NONBLOCK;
    if (mode == Mode::ReadDirect) {
        file.m_fd = ::open(path.c_str(), flags | O_CLOEXEC | O_DIRECT);
        file.m_direct = file.m_fd >= 0;
    }
    if (file.m_fd < 0) file.m_fd = ::open(path.c_str(), flags | O_CLOEXEC, 0644);
    if (file.m_fd < 0) return systemError("cannot open", path, errno);
    struct stat info;
    if (::fstat(file.m_fd, &info) != 0) return systemError("cannot examine", path, errno);
    if (!S_ISREG(info.st_mode) && mode != Mode::Create) {
        return Status(Code::BadInput, printable(path.string()) + " is not a regular file",
                      "Check the path");
    }
    return file;
}

Result<int64_t> File::size() const {
    struct stat info;
    if (::fstat(m_fd, &info) != 0) return systemError("cannot examine", m_path, errno);
    return int64_t(info.st_size);
}

Status File::readAt(int64_t offset, std::span<std::byte> out) const {
    size_t done = 0;
    while (done < out.size()) {
        const ssize_t n =
            ::pread(m_fd, out.data() + done, out.size() - done, offset + int64_t(done));
        if (n < 0 && errno == EINTR) continue;
        if (n < 0) {
            return systemError("cannot read byte " + formatCount(offset + int64_t(done)) + " of",
                               m_path, errno);
        }
        if (n == 0) {
            return {Code::BadInput,
                    m_path.string() + " ends at byte " + formatCount(offset + int64_t(done)) +
                        " where " + formatCount(int64_t(out.size() - done)) +
                        " more bytes were expected",
                    "The file was truncated; copy or convert it again"};
        }
        done += size_t(n);
    }
    return {};
}

Status File::writeAt(int64_t offset, std::span<const std::byte> data) const {
    size_t done = 0;
    while (done < data.size()) {
        const ssize_t n =
            ::pwrite(m_fd, data.data() + done, data.size() - done, offset + int64_t(done));
        if (n < 0 && errno == EINTR) continue;
        if (n <= 0) {
            return systemError("cannot write byte " + formatCount(offset + int64_t(done)) + " of",
                               m_path, n < 0 ? errno : EIO);
        }
        done += size_t(n);
    }
    return {};
}

Status File::sync() const {
    if (::fsync(m_fd) != 0) return systemError("cannot flush", m_path, errno);
    return {};
}

Result<std::string> readTextFile(const std::filesystem::path& path, int64_t limit) {
    auto file = File::open(path, File::Mode::Read);
    if (!file) return file.status();
    const auto size = file->size();
    if (!size) return size.status();
    if (*size > limit) {
        return Status(Code::BadInput, path.string() + " has " + formatCount(*size) +
                                          " bytes; a text file may have at most " +
                                          formatCount(limit));
    }
    std::string text(size_t(*size), '\0');
    COLIBRI_TRY(file->readAt(0, std::as_writable_bytes(std::span(text))));
    return text;
}

Status writeFileAtomically(const std::filesystem::path& path, std::string_view content) {
    const std::filesystem::path temporary = path.string() + ".new-" + std::to_string(::getpid());
    const auto write = [&]() -> Status {
        auto file = File::open(temporary, File::Mode::Create);
        if (!file) return file.status();
        COLIBRI_TRY(file->writeAt(0, std::as_bytes(std::span(content))));
        return file->sync();
    };
    Status status = write();
    if (status.ok() && ::rename(temporary.c_str(), path.c_str()) != 0) {
        status = systemError("cannot replace", path, errno);
    }
    if (!status.ok()) ::unlink(temporary.c_str());
    return status;
}

}  // namespace colibri
