// SPDX-License-Identifier: Apache-2.0
#include "engine/store/calibration.h"

#include <sys/stat.h>
#include <sys/statvfs.h>

#include <ctime>
#include <functional>
#include <nlohmann/json.hpp>

#include "engine/base/file.h"
#include "engine/base/machine.h"
#include "engine/store/disk_probe.h"

namespace colibri {

namespace {

constexpr double kDiskSeconds = 0.25;
constexpr double kMemorySeconds = 0.1;
constexpr int kDepth = 8;

std::filesystem::path keptPath() {
    const std::filesystem::path cache = cacheDirectory();
    return cache.empty() ? cache : cache / "calibration.json";
}

// The machine, the disk under the experts, and the size of a read.
std::string identity(const ContainerInfo& info) {
    const std::filesystem::path file = info.dir / info.expertLayers.front().file;
    struct stat about {};
    struct statvfs disk {};
    if (stat(file.c_str(), &about) != 0 || statvfs(file.c_str(), &disk) != 0) return {};
    return machineFingerprint() + ", device " + std::to_string(about.st_dev) + " of " +
           std::to_string(disk.f_blocks) + " blocks, records of " +
           std::to_string(info.expertRecordBytes());
}

nlohmann::json keptAll() {
    const Result<std::string> text = readTextFile(keptPath(), 1 << 20);
    nlohmann::json all = nlohmann::json::object();
    if (text) all = nlohmann::json::parse(*text, nullptr, false);
    return all.is_object() ? all : nlohmann::json::object();
}

std::optional<Calibration> parseKept(const nlohmann::json& entry) {
    Calibration kept;
    try {
        kept.diskBytesPerSecond = entry.at("disk_bytes_per_s").get<double>();
        kept.memoryBytesPerSecond = entry.at("memory_bytes_per_s").get<double>();
        kept.direct = entry.at("direct").get<bool>();
        kept.reads = entry.at("reads").get<std::string>();
        kept.reason = entry.at("reason").get<std::string>();
        kept.recordBytes = entry.value("record_bytes", int64_t{0});
        kept.measuredAt = entry.value("measured_at", int64_t{0});
    } catch (const nlohmann::json::exception&) {
        return std::nullopt;  // measured again
    }
    return kept;
}

}  // namespace

Result<Calibration> measureCalibration(const ContainerInfo& info, const std::atomic<bool>& stop) {
    Calibration calibration;
    if (info.expertLayers.empty() || info.config.numExperts == 0) {
        calibration.reason = "the model has no experts to read";
    } else {
        const Result<DiskRate> disk = probeDisk(info, kDepth, kDiskSeconds, stop);
        if (!disk) return disk.status();
        calibration.diskBytesPerSecond = disk->bytesPerSecond;
        calibration.direct = disk->direct;
        calibration.reads = disk->reads;
        if (!calibration.direct)
            calibration.reason =
                "the file system does not support direct reads: the rate includes page-cache reads";
    }
    if (stop.load()) return Status(Code::Cancelled, "stopped");
    calibration.recordBytes = info.expertLayers.empty() ? 0 : info.expertRecordBytes();
    calibration.measuredAt = int64_t(std::time(nullptr));
    calibration.memoryBytesPerSecond = measureMemoryRead(physicalCores(), kMemorySeconds);
    if (calibration.memoryBytesPerSecond == 0)
        calibration.reason = "no memory for the read buffers";
    return calibration;
}

std::optional<Calibration> keptCalibration(const ContainerInfo& info) {
    if (info.expertLayers.empty() || keptPath().empty()) return std::nullopt;
    const nlohmann::json all = keptAll();
    const auto it = all.find(identity(info));
    return it == all.end() ? std::nullopt : parseKept(*it);
}

namespace {

// The newest entry of this machine for which `counts` is true.
std::optional<Calibration> newestKept(const std::function<bool(const Calibration&)>& counts) {
    if (keptPath().empty()) return std::nullopt;
    std::optional<Calibration> newest;
    const std::string machine = machineFingerprint() + ", ";
    const nlohmann::json all = keptAll();
    for (const auto& [key, entry] : all.items()) {
        if (!key.starts_with(machine)) continue;
        const std::optional<Calibration> kept = parseKept(entry);
        if (!kept || !counts(*kept)) continue;
        if (!newest || kept->measuredAt >= newest->measuredAt) newest = kept;
    }
    return newest;
}

}  // namespace

std::optional<Calibration> newestCalibration() {
    return newestKept([](const Calibration&) { return true; });
}

Calibration machineCalibration() {
    constexpr int64_t kLargeRead = 1 << 20;
    const auto disk = newestKept([](const Calibration& c) { return c.recordBytes >= kLargeRead; });
    const auto memory = newestKept([](const Calibration& c) { return c.memoryBytesPerSecond > 0; });
    Calibration machine = disk.value_or(Calibration());
    if (memory) machine.memoryBytesPerSecond = memory->memoryBytesPerSecond;
    return machine;
}

Status keepCalibration(const ContainerInfo& info, const Calibration& c) {
    const std::filesystem::path path = keptPath();
    const std::string key = info.expertLayers.empty() ? std::string() : identity(info);
    if (path.empty() || key.empty()) return {};
    nlohmann::json all = keptAll();
    all[key] = {{"disk_bytes_per_s", c.diskBytesPerSecond},
                {"memory_bytes_per_s", c.memoryBytesPerSecond},
                {"direct", c.direct},
                {"reads", c.reads},
                {"reason", c.reason},
                {"record_bytes", c.recordBytes},
                {"measured_at", c.measuredAt}};
    std::error_code error;
    std::filesystem::create_directories(path.parent_path(), error);
    if (error) return systemError("cannot create", path.parent_path(), error.value());
    return writeFileAtomically(path, all.dump(2) + "\n");
}

}  // namespace colibri
