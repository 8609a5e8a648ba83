// SPDX-License-Identifier: Apache-2.0
#include "engine/store/calibration.h"

#include <sys/stat.h>
#include <sys/statvfs.h>

#include <ctime>
#include <functional>
#include <nlohmann/json.hpp>
#include <random>
#include <vector>

#include "engine/base/file.h"
#include "engine/base/machine.h"
#include "engine/base/mutex.h"
#include "engine/store/slot_memory.h"
#include "engine/store/store_factory.h"

namespace colibri {

namespace {

constexpr uint64_t kDiskNs = 250'000'000;
constexpr double kMemorySeconds = 0.1;
constexpr uint32_t kDepth = 8;

// Keeps `kDepth` reads of random records in flight until the time is over.
class DiskProbe {
public:
    DiskProbe(const ContainerInfo& info, const std::atomic<bool>& stop)
        : m_shape(StoreFactory::shapeOf(info)), m_stop(stop) {}
    ~DiskProbe() {
        if (m_queue) m_queue->stop();
        for (std::byte* buffer : m_buffers) m_memory.free(buffer, m_bytes);
    }

    Status run(const ContainerInfo& info, Calibration& out) {
        auto reader = FileReader::open(info);
        if (!reader) return reader.status();
        out.direct = (*reader)->directWorks();
        m_mode = out.direct ? IoMode::Direct : IoMode::Buffered;
        m_bytes = info.expertRecordBytes();
        m_queue = makeReadQueue(std::move(*reader));
        for (uint32_t i = 0; i < kDepth; ++i) {
            m_buffers.push_back(m_memory.allocate(m_bytes));
            if (m_buffers.back() == nullptr)
                return {Code::OutOfMemory, "No memory for the read buffers of the disk probe"};
        }
        COLIBRI_TRY(m_queue->start(m_shape, m_clock, kDepth,
                                   [this](uint32_t i, const ReadOutcome& o) { readEnded(i, o); }));
        MutexLock lock(m_mutex);
        m_startNs = m_clock.now();
        m_reading = kDepth;
        for (uint32_t i = 0; i < kDepth; ++i) submit(i);
        while (m_reading > 0) m_changed.wait(m_mutex);
        COLIBRI_TRY(m_status);
        out.diskBytesPerSecond = double(m_read) / (double(m_clock.now() - m_startNs) * 1e-9);
        out.reads = m_queue->text();
        return {};
    }

private:
    void submit(uint32_t i) REQUIRES(m_mutex) {
        const int64_t layer = int64_t(m_random() % m_shape.layers.size());
        const auto bytes = size_t(m_shape.recordBytes[size_t(layer)]);
        m_queue->submit({i,
                         layer,
                         int64_t(m_random() % uint64_t(m_shape.experts)),
                         {m_buffers[i], bytes},
                         m_mode});
        m_sizes[i] = bytes;
    }
    void readEnded(uint32_t i, const ReadOutcome& outcome) {
        MutexLock lock(m_mutex);
        if (outcome.status.ok()) m_read += m_sizes[i];
        if (m_status.ok()) m_status = outcome.status;
        const bool over = m_clock.now() - m_startNs > kDiskNs || m_stop.load() || !m_status.ok();
        if (!over) {
            submit(i);
            return;
        }
        --m_reading;
        m_changed.notifyAll();
    }

    const StoreShape m_shape;
    const std::atomic<bool>& m_stop;
    SlotMemory m_memory;
    StoreClock m_clock;
    IoMode m_mode = IoMode::Direct;
    int64_t m_bytes = 0;  // of a buffer
    std::vector<std::byte*> m_buffers;
    std::unique_ptr<ReadQueue> m_queue;
    Mutex m_mutex;
    Condition m_changed;
    std::mt19937_64 m_random GUARDED_BY(m_mutex){1};
    size_t m_sizes[kDepth] GUARDED_BY(m_mutex) = {};
    uint64_t m_startNs GUARDED_BY(m_mutex) = 0, m_read GUARDED_BY(m_mutex) = 0;
    uint32_t m_reading GUARDED_BY(m_mutex) = 0;
    Status m_status GUARDED_BY(m_mutex);
};

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
        DiskProbe probe(info, stop);
        COLIBRI_TRY(probe.run(info, calibration));
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
