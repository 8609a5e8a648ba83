// SPDX-License-Identifier: Apache-2.0
#include "engine/store/probe_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <string>
#include <vector>

#include "engine/base/file.h"

namespace colibri {

namespace {

namespace fs = std::filesystem;

constexpr int64_t kWriteBytes = 4 << 20;
constexpr int64_t kSmallestFile = 64 << 20;
constexpr int64_t kTemporaryFile = 128 << 20;

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
        // A file of a kernel file system has a size but no blocks.
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
    std::vector<std::byte> record(kWriteBytes);
    for (size_t i = 0; i < record.size(); ++i) record[i] = std::byte(i * 131);
    for (int64_t at = 0; at < kTemporaryFile; at += kWriteBytes)
        COLIBRI_TRY(file->writeAt(at, record));
    COLIBRI_TRY(file->sync());
    // Drop it from the page cache, for file systems without direct reads.
    posix_fadvise(file->fd(), 0, 0, POSIX_FADV_DONTNEED);
    return {};
}

}  // namespace

Result<ProbeFile> ProbeFile::in(const fs::path& folder) {
    std::error_code error;
    if (!fs::is_directory(folder, error))
        return Status(Code::BadInput, folder.string() + " is not a folder");
    if (fs::path found = largestFile(folder); !found.empty())
        return ProbeFile(std::move(found), false);
    ProbeFile file(folder / (".colibri-read-test." + std::to_string(getpid())), true);
    COLIBRI_TRY(writeTemporary(file.m_path));
    return file;
}

ProbeFile::~ProbeFile() {
    std::error_code ignored;
    if (m_temporary) fs::remove(m_path, ignored);
}

Result<ContainerInfo> ProbeFile::inRecords(int64_t recordBytes) const {
    std::error_code error;
    ContainerInfo info;
    info.dir = m_path.parent_path();
    info.config.numExperts = int64_t(fs::file_size(m_path, error)) / recordBytes;
    if (error) return systemError("cannot read", m_path, error.value());
    ExpertLayer layer;
    layer.file = m_path.filename();
    layer.recordBytes = recordBytes;
    info.expertLayers.push_back(layer);
    return info;
}

}  // namespace colibri
