// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/cli/machine_text.h"

#include <algorithm>
#include <set>

#include "engine/base/format.h"

namespace colibri::cli {

namespace {

constexpr size_t kColumn = 14;

// Columns of text: the first is left-aligned, the others are right-aligned.
std::string tableRow(const std::vector<std::string>& cells) {
    std::string text =
        "  " + cells[0] + std::string(kColumn - std::min(kColumn, cells[0].size()), ' ');
    for (size_t i = 1; i < cells.size(); ++i)
        text += std::string(kColumn - std::min(kColumn, cells[i].size()), ' ') + cells[i];
    return text + "\n";
}

std::string rateOr(double bytesPerSecond) {
    return bytesPerSecond > 0 ? formatRate(bytesPerSecond) : "n/a";
}

std::string memoryTable(const MachineProfile& p) {
    std::string text = "Memory reads\n";
    for (const MachineProfile::Memory& m : p.memory) {
        std::string name = formatCount(m.threads) + (m.threads == 1 ? " thread" : " threads");
        if (m.readerNode >= 0) {
            name += " on node " + formatCount(m.readerNode);
            name += m.memoryNode == m.readerNode ? ", own memory"
                                                 : ", memory of node " + formatCount(m.memoryNode);
        }
        text += "  " + name + ": " + rateOr(m.bytesPerSecond) + "\n";
    }
    return text;
}

std::string diskTable(const MachineProfile& p) {
    std::set<int64_t> blocks;
    std::vector<std::string> head = {"reads at once"};
    for (const MachineProfile::Disk& d : p.disk) {
        blocks.insert(d.blockBytes);
        const std::string depth = formatCount(d.depth);
        if (std::find(head.begin(), head.end(), depth) == head.end()) head.push_back(depth);
    }
    std::string text = "Disk reads in " + p.folder + ", " + p.readPath +
                       (p.direct ? ", direct" : ", through the cache") + "\n" + tableRow(head);
    for (const int64_t block : blocks) {
        std::vector<std::string> cells = {formatGiB(double(block))};
        for (const MachineProfile::Disk& d : p.disk)
            if (d.blockBytes == block) cells.push_back(rateOr(d.bytesPerSecond));
        text += tableRow(cells);
    }
    return text;
}

std::string kernelTable(const MachineProfile& p) {
    std::string text =
        "Kernels, " + p.isa + ", all cores\n" + tableRow({"weights", "decode", "prefill"});
    for (const MachineProfile::Kernel& k : p.kernels)
        text += tableRow(
            {std::string(dtypeName(k.type)), rateOr(k.weightBytesPerSecond),
             k.flopsPerSecond > 0 ? formatSig(k.flopsPerSecond / 1e9) + " GFLOP/s" : "n/a"});
    return text;
}

std::string gpuLine(const MachineProfile::Gpu& gpu) {
    if (!gpu.reason.empty()) return "GPU copies: n/a: " + gpu.reason + "\n";
    return "GPU copies: " + rateOr(gpu.toGpu) + " to the GPU, " + rateOr(gpu.fromGpu) +
           " from it\n";
}

}  // namespace

std::string profileText(const MachineProfile& profile) {
    return "Measured " + measurementDate(profile.measuredAt) + "\n" + memoryTable(profile) +
           diskTable(profile) + kernelTable(profile) + gpuLine(profile.gpu);
}

}  // namespace colibri::cli
