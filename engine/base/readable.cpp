// SPDX-License-Identifier: Apache-2.0
#include "engine/base/readable.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>

#include "engine/base/file.h"

namespace colibri {

Status checkReadable(const std::filesystem::path& path) {
    const int fd = ::open(path.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC);
    if (fd < 0) {
        const bool absent = errno == ENOENT || errno == ENOTDIR;
        return absent ? Status() : systemError("cannot open", path, errno);
    }
    // Of a folder that may be read but not searched only the names can be seen.
    struct stat info;
    const bool folder = ::fstat(fd, &info) == 0 && S_ISDIR(info.st_mode);
    const bool closed = folder && ::faccessat(fd, ".", X_OK, AT_EACCESS) != 0;
    const int error = errno;
    ::close(fd);
    return closed ? systemError("cannot open", path, error) : Status();
}

}  // namespace colibri
