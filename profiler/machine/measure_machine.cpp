// SPDX-License-Identifier: Apache-2.0
#include "profiler/machine/measure_machine.h"

#include <algorithm>
#include <ctime>

#include "engine/base/machine.h"
#include "engine/store/disk_probe.h"
#include "engine/store/probe_file.h"
#include "profiler/gpu/copy_rates.h"
#include "profiler/machine/kernel_probe.h"

namespace colibri {
namespace {

constexpr double kMemoryS = 0.15, kDiskS = 0.2, kKernelS = 0.12, kGpuS = 0.3;
constexpr int64_t kBlockSizes[] = {64 << 10, 256 << 10, 1 << 20, 4 << 20};
constexpr int kDepths[] = {1, 4, 8, 16};

// 1, 2, 4, ... and `most`.
std::vector<int> threadCounts(int most) {
    std::vector<int> out;
    for (int n = 1; n < most; n *= 2) out.push_back(n);
    out.push_back(most);
    return out;
}

class MachineMeasurement {
public:
    MachineMeasurement(const ProgressFn& progress, const CancelFlag& cancel)
        : m_progress(progress), m_cancel(cancel) {}

    Result<MachineProfile> run(const std::filesystem::path& folder) {
        m_profile.machine = machineFingerprint();
        m_profile.folder = folder.string();
        m_profile.isa = isaName(bestKernels().isa);
        m_profile.measuredAt = int64_t(std::time(nullptr));
        COLIBRI_TRY(disk(folder));
        COLIBRI_TRY(memory());
        COLIBRI_TRY(kernels());
        COLIBRI_TRY(gpu());
        return std::move(m_profile);
    }

private:
    Status step(const char* stage, size_t done, size_t total) const {
        if (m_cancel.load()) return {Code::Cancelled, "the measurement was cancelled"};
        if (m_progress) m_progress({stage, done, total, "measurements"});
        return {};
    }

    Status disk(const std::filesystem::path& folder) {
        const Result<ProbeFile> file = ProbeFile::in(folder);
        if (!file) return file.status();
        size_t done = 0;
        for (const int64_t block : kBlockSizes) {
            const Result<ContainerInfo> info = file->inRecords(block);
            if (!info) return info.status();
            for (const int depth : kDepths) {
                COLIBRI_TRY(
                    step("Disk reads", done++, std::size(kBlockSizes) * std::size(kDepths)));
                const Result<DiskRate> rate = probeDisk(*info, depth, kDiskS, m_cancel);
                if (!rate) return rate.status();
                m_profile.disk.push_back({block, depth, rate->bytesPerSecond});
                m_profile.direct = rate->direct;
                m_profile.readPath = rate->reads;
            }
        }
        return {};
    }

    Status memory() {
        struct Point {
            int threads, readerNode, memoryNode;
        };
        std::vector<Point> points;
        for (const int threads : threadCounts(physicalCores())) points.push_back({threads, -1, -1});
        const int nodes = numaNodes();
        for (int reader = 0; nodes > 1 && reader < nodes; ++reader) {
            const auto processors = int(nodeProcessors(reader).size());
            for (int from = 0; processors > 0 && from < nodes; ++from)
                if (!nodeProcessors(from).empty())
                    points.push_back({std::min(processors, physicalCores()), reader, from});
        }
        for (size_t i = 0; i < points.size(); ++i) {
            COLIBRI_TRY(step("Memory reads", i, points.size()));
            const Point& p = points[i];
            const auto processorsOf = [](int node) {
                return node < 0 ? std::vector<int>() : nodeProcessors(node);
            };
            const double rate = measureMemoryRead(
                p.threads, kMemoryS, {processorsOf(p.readerNode), processorsOf(p.memoryNode)});
            if (rate > 0) m_profile.memory.push_back({p.threads, p.readerNode, p.memoryNode, rate});
        }
        return {};
    }

    Status kernels() {
        const KernelSet& kernels = bestKernels();
        const int threads = physicalCores();
        for (int i = 0; i < kDTypeCount; ++i) {
            COLIBRI_TRY(step("Kernels", size_t(i), size_t(kDTypeCount)));
            const auto type = DType(i);
            m_profile.kernels.push_back({type, probeDecodeKernel(kernels, type, threads, kKernelS),
                                         probePrefillKernel(kernels, type, threads, kKernelS)});
        }
        return {};
    }

    Status gpu() {
        COLIBRI_TRY(step("GPU copies", 0, 1));
        const Result<GpuCopyRates> rates = measureGpuCopies(0, kGpuS);
        if (rates)
            m_profile.gpu = {rates->toGpu, rates->fromGpu, ""};
        else
            m_profile.gpu.reason = rates.status().message();
        return {};
    }

    const ProgressFn& m_progress;
    const CancelFlag& m_cancel;
    MachineProfile m_profile;
};

}  // namespace

Result<MachineProfile> measureMachine(const std::filesystem::path& folder,
                                      const ProgressFn& progress, const CancelFlag& cancel) {
    return MachineMeasurement(progress, cancel).run(folder);
}

}  // namespace colibri
