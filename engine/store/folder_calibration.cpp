// SPDX-License-Identifier: Apache-2.0
#include "engine/store/folder_calibration.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <vector>

#include "engine/base/file.h"

namespace colibri {

namespace {

namespace fs = std::filesystem;

constexpr int64_t kRecord = 4 << 20;
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
    std::vector<std::byte> record(kRecord);
    for (size_t i = 0; i < record.size(); ++i) record[i] = std::byte(i * 131);
    for (int64_t at = 0; at < kTemporaryFile; at += kRecord) COLIBRI_TRY(file->writeAt(at, record));
    COLIBRI_TRY(file->sync());
    // Drop it from the page cache, for file systems without direct reads.
    posix_fadvise(file->fd(), 0, 0, POSIX_FADV_DONTNEED);
    return {};
}

Result<Calibration> measureAndKeep(const ContainerInfo& info, const CancelFlag& cancel) {
    Result<Calibration> rates = measureCalibration(info, cancel);
    if (rates) (void)keepCalibration(info, *rates);  // else it is measured again
    return rates;
}

// A file that stands in for the experts of one layer.
Result<Calibration> measureFile(const fs::path& file, const CancelFlag& cancel) {
    std::error_code error;
    ContainerInfo info;
    info.dir = file.parent_path();
    info.config.numExperts = int64_t(fs::file_size(file, error)) / kRecord;
    if (error) return systemError("cannot read", file, error.value());
    ExpertLayer layer;
    layer.file = file.filename();
    layer.recordBytes = kRecord;
    info.expertLayers.push_back(layer);
    return measureAndKeep(info, cancel);
}

}  // namespace

Result<Calibration> calibrateFolder(const fs::path& folder, const CancelFlag& cancel) {
    std::error_code error;
    if (!fs::is_directory(folder, error)) {
        return Status(Code::BadInput, folder.string() + " is not a folder");
    }
    // Other programs also write a model.json: a folder that is not a container is treated as files.
    if (const Result<ContainerInfo> model = openContainer(folder); model.ok()) {
        return measureAndKeep(*model, cancel);
    }
    return calibrateDisk(folder, cancel);
}

Result<Calibration> calibrateDisk(const fs::path& folder, const CancelFlag& cancel) {
    std::error_code error;
    if (const fs::path found = largestFile(folder); !found.empty()) {
        return measureFile(found, cancel);
    }
    const fs::path temporary = folder / (".colibri-read-test." + std::to_string(getpid()));
    const Status written = writeTemporary(temporary);
    Result<Calibration> rates =
        written.ok() ? measureFile(temporary, cancel) : Result<Calibration>(written);
    fs::remove(temporary, error);
    return rates;
}

}  // namespace colibri
