// SPDX-License-Identifier: Apache-2.0
#include "engine/store/folder_calibration.h"

#include "engine/store/probe_file.h"

namespace colibri {

namespace {

namespace fs = std::filesystem;

constexpr int64_t kRecord = 4 << 20;

Result<Calibration> measureAndKeep(const ContainerInfo& info, const CancelFlag& cancel) {
    Result<Calibration> rates = measureCalibration(info, cancel);
    if (rates) (void)keepCalibration(info, *rates);  // else it is measured again
    return rates;
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
    const Result<ProbeFile> file = ProbeFile::in(folder);
    if (!file) return file.status();
    const Result<ContainerInfo> info = file->inRecords(kRecord);
    return info ? measureAndKeep(*info, cancel) : Result<Calibration>(info.status());
}

}  // namespace colibri
