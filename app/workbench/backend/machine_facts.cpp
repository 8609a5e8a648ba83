// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/workbench/backend/machine_facts.h"

#include <QCoreApplication>
#include <QDateTime>
#include <QSysInfo>
#include <QtGlobal>

#include "app/workbench/platform/text.h"
#include "engine/base/format.h"
#include "engine/base/machine.h"
#include "kernels/kernels.h"
#include "profiler/gpu/gpu_source.h"

namespace colibri::ui {
namespace {

MachineFact notMeasured(const QString& name) {
    return {name, "n/a: not measured yet", "Press Measure.", true};
}

MachineSection processorSection(const MachineFacts& facts) {
    const QString threads = count(facts.threads) + (facts.threads == 1 ? " thread" : " threads");
    MachineFact isa{"Instructions", facts.isa};
    if (facts.isa == "scalar") {
        isa.advice = "Without AVX2 the engine is many times slower. Use a processor with AVX2.";
        isa.missing = true;
    }
    return {"Processor",
            {{"Name", facts.processor},
             {"Cores", count(facts.cores) + " cores, " + threads},
             isa,
             {"NUMA nodes", count(facts.numaNodes)}}};
}

MachineSection memorySection(const MachineFacts& facts, const Calibration& rates) {
    MachineFact free{"Free now", "n/a: unknown", "Not reported by the system.", true};
    if (facts.memoryFree > 0) free = {"Free now", str(formatGiB(double(facts.memoryFree)))};
    MachineFact rate = notMeasured("Read with all cores");
    if (rates.memoryBytesPerSecond > 0) rate = {rate.name, rateText(rates.memoryBytesPerSecond)};
    return {"Memory", {{"Total", str(formatGiB(double(facts.memoryTotal)))}, free, rate}};
}

MachineSection diskSection(const Calibration& rates, const QString& dataDir) {
    MachineSection disk{"Disk", {}};
    if (rates.diskBytesPerSecond > 0) {
        QString rate = rateText(rates.diskBytesPerSecond);
        if (rates.recordBytes > 0)
            rate += " in reads of " + str(formatGiB(double(rates.recordBytes)));
        disk.facts << MachineFact{"Random reads", rate};
        MachineFact direct{"Direct reads", "yes"};
        if (!rates.direct)
            direct = {"Direct reads", "no",
                      "The file system does not support them, so reads used the page cache: the "
                      "rate may be that of memory.",
                      true};
        disk.facts << direct;
        const QDateTime at = QDateTime::fromSecsSinceEpoch(rates.measuredAt);
        disk.facts << MachineFact{"Measured", rates.measuredAt > 0
                                                  ? at.toString("yyyy-MM-dd HH:mm")
                                                  : QString("n/a: measured by an earlier version")};
    } else {
        disk.facts << notMeasured("Random reads");
    }
    disk.facts << MachineFact{"Sessions folder", dataDir};
    return disk;
}

MachineSection gpuSection(const MachineFacts& facts) {
    MachineSection gpu{"GPU", {}};
    if (facts.gpuReason.isEmpty()) {
        gpu.facts = {{"Device", facts.gpuName},
                     {"Compute", "n/a: this build runs models on the CPU", "", true}};
    } else {
        gpu.facts = {{"Device", "n/a: " + facts.gpuReason,
                      "GPU counters need an NVIDIA GPU and its driver. Everything else works "
                      "without them.",
                      true}};
    }
    gpu.facts << facts.gpuCounters;
    return gpu;
}

MachineFact counterFact(const GpuRung& rung) {
    const QString reason = str(rung.refusal.message());
    switch (rung.state) {
        case GpuRung::State::Used:
            return {rung.name, QString("used: ") + rung.measures};
        case GpuRung::State::Ready:
            return {rung.name, QString("ready: ") + rung.measures};
        case GpuRung::State::Off:
            return {rung.name, "off: " + reason, str(rung.refusal.hint())};
        case GpuRung::State::Refused:
            break;
    }
    return {rung.name, "n/a: " + reason, str(rung.refusal.hint()), true};
}

}  // namespace

QString rateText(double bytesPerSecond) {
    return str(formatRate(bytesPerSecond));
}

MachineFacts gatherMachineFacts() {
    MachineFacts facts;
    facts.processor = str(processorName());
    facts.isa = str(isaName(availableIsas().back()));
    facts.cores = physicalCores();
    facts.threads = logicalCpus();
    facts.numaNodes = numaNodes();
    facts.memoryTotal = memoryTotal();
    facts.memoryFree = memoryFreeNow();
    const auto gpu = GpuSource::probe();
    facts.gpuName = str(gpu->name());
    facts.gpuReason = str(gpu->reason());
    facts.gpuProvenance = str(gpu->provenance());
    for (const GpuRung& rung : gpu->ladder()) facts.gpuCounters << counterFact(rung);
    facts.system = QSysInfo::prettyProductName() + ", kernel " + QSysInfo::kernelVersion();
    return facts;
}

QVector<MachineSection> machineSections(const MachineFacts& facts, const Calibration& rates,
                                        const QString& dataDir) {
    const QString version = QCoreApplication::applicationVersion();
    return {processorSection(facts),
            memorySection(facts, rates),
            diskSection(rates, dataDir),
            gpuSection(facts),
            {"Program",
             {{"Version", version.isEmpty() ? QString("0.1.0") : version},
              {"Qt", qVersion()},
              {"System", facts.system}}}};
}

QString machineText(const QVector<MachineSection>& sections) {
    QString text = "Colibri Workbench: this machine\n";
    for (const MachineSection& section : sections) {
        text += "\n" + section.title + "\n";
        for (const MachineFact& fact : section.facts) {
            text += "  " + fact.name.leftJustified(22) + fact.value + "\n";
            if (!fact.advice.isEmpty()) text += "  " + QString(22, ' ') + fact.advice + "\n";
        }
    }
    return text;
}

}  // namespace colibri::ui
