// SPDX-License-Identifier: Apache-2.0
#include "engine/convert/loadable_model.h"

#include <algorithm>
#include <string>
#include <vector>

#include "engine/base/file.h"
#include "engine/base/hasher.h"
#include "engine/convert/converter.h"
#include "engine/convert/flat/flat.h"
#include "engine/model/layout.h"

namespace colibri {

namespace fs = std::filesystem;

namespace {

constexpr int64_t kLargestStamp = 1 << 20;
constexpr const char* kPackedFolder = "container";
constexpr const char* kStampFile = "container.stamp";  // identifies the files that were packed

// Changes when a file of the folder is added, removed, replaced or written to.
Result<std::string> stampOf(const fs::path& folder) {
    std::vector<std::string> lines;
    std::error_code error;
    for (fs::directory_iterator it(folder, error), end; !error && it != end; it.increment(error)) {
        std::error_code ignored;
        if (!it->is_regular_file(ignored) || it->path().filename() == kStampFile) continue;
        const auto time = it->last_write_time(ignored).time_since_epoch().count();
        lines.push_back(it->path().filename().string() + " " +
                        std::to_string(it->file_size(ignored)) + " " + std::to_string(time) + "\n");
    }
    if (error) return systemError("cannot read", folder, error.value());
    std::sort(lines.begin(), lines.end());
    std::string all;
    for (const std::string& line : lines) all += line;
    return fingerprintOf(all);
}

}  // namespace

Result<fs::path> loadableModel(const fs::path& path, const ProgressFn& progress,
                               const CancelFlag* cancel) {
    if (!isFlatFolder(path)) return path;
    Result<std::string> stamp = stampOf(path);
    if (!stamp.ok()) return stamp.status();
    const fs::path packed = path / kPackedFolder;
    std::error_code error;
    if (fs::exists(packed, error)) {
        Result<std::string> before = readTextFile(path / kStampFile, kLargestStamp);
        if (before.ok() && *before == *stamp) return packed;
        if (!fs::exists(packed / kModelFile, error)) {
            return Status(Code::BadInput, packed.string() + " is not a packed copy of the model",
                          "Move it away: the packed copy is written to this path");
        }
        fs::remove_all(packed, error);
        if (error) return systemError("cannot remove", packed, error.value());
    }
    ConvertOptions options;
    options.source = path;
    options.target = packed;
    Result<ContainerInfo> made = convertModel(options, progress, cancel);
    if (!made.ok()) {
        const Status& status = made.status();
        if (status.code() != Code::IoError) return status;
        return Status(status.code(), status.message(),
                      "A packed copy of a flat folder is written inside it before it is loaded; if "
                      "that is not possible, convert it: colibri convert " +
                          path.string() + " -o DIR");
    }
    COLIBRI_TRY(writeFileAtomically(path / kStampFile, *stamp));
    return packed;
}

}  // namespace colibri
