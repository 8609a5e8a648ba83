// SPDX-License-Identifier: Apache-2.0
#include "profiler/session/session_files.h"

#include <system_error>

namespace colibri {

namespace {
constexpr const char* kWalSuffix = "-wal";
}

std::filesystem::path sessionWal(const std::filesystem::path& path) {
    return path.string() + kWalSuffix;
}

std::vector<std::filesystem::path> sessionFiles(const std::filesystem::path& path) {
    std::vector<std::filesystem::path> files{path};
    for (const char* suffix : {kWalSuffix, "-shm", "-journal"}) {
        files.push_back(path.string() + suffix);
    }
    return files;
}

int64_t sessionBytes(const std::filesystem::path& path) {
    int64_t total = 0;
    for (const std::filesystem::path& file : {path, sessionWal(path)}) {
        std::error_code error;
        const auto size = std::filesystem::file_size(file, error);
        if (!error) total += int64_t(size);
    }
    return total;
}

void removeSession(const std::filesystem::path& path) {
    for (const std::filesystem::path& file : sessionFiles(path)) {
        std::error_code ignored;
        std::filesystem::remove(file, ignored);
    }
}

}  // namespace colibri
