// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/workbench/backend/machine_facts.h"
#include "app/workbench/platform/text.h"

#include <QCoreApplication>
#include <QDateTime>
#include <QSysInfo>
#include <QtGlobal>

#include "engine/base/format.h"
#include "engine/base/machine.h"
#include "kernels/kernels.h"
#include "profiler/gpu/gpu_source.h"

namespace colibri::ui {
namespace {}  // namespace

QString rateText(double bytesPerSecond) {
    return str(formatRate(bytesPerSecond));
}

MachineFacts gatherMachineFacts() {
    MachineFacts facts;
    facts.processor = str(processorName());
    facts.isa = QString::fromUtf8(isaName(availableIsas().back()).data());
    facts.cores = physicalCores();
    facts.threads = logicalCpus();
    facts.numaNodes = numaNodes();
    facts.memoryTotal = memoryTotal();
    facts.memoryFree = memoryFreeNow();
    const auto gpu = GpuSource::probe();
    facts.gpuName = str(gpu->name());
    facts.gpuReason = str(gpu->reason());
    facts.gpuProvenance = str(gpu->provenance());
    facts.system = QSysInfo::prettyProductName() + ", kernel " + QSysInfo::kernelVersion();
    return facts;
}

QVector<MachineSection> machineSections(const MachineFacts& facts, const Calibration& rates,
                                        const QString& dataDir) {
    const auto number = [](int n) { return str(formatCount(n)); };
    const auto notMeasured = [](const QString& name) {
        return MachineFact{name, "n/a: not measured yet", "Press Measure.", true};
    };
    QVector<MachineSection> sections;
    MachineSection processor{"Processor", {}};
    processor.facts = {{"Name", facts.processor},
                       {"Cores", number(facts.cores) + " cores, " + number(facts.threads) +
                                     (facts.threads == 1 ? " thread" : " threads")},
                       {"Instructions", facts.isa}};
    if (facts.isa == "scalar") {
        processor.facts.back().advice =
            "Without AVX2 the engine is many times slower. Use a processor with AVX2.";
        processor.facts.back().missing = true;
    }
    processor.facts.push_back({"NUMA nodes", number(facts.numaNodes)});
    sections << processor;

    MachineSection memory{"Memory", {}};
    memory.facts = {{"Total", str(formatGiB(double(facts.memoryTotal)))}};
    memory.facts.push_back(
        facts.memoryFree > 0
            ? MachineFact{"Free now", str(formatGiB(double(facts.memoryFree)))}
            : MachineFact{"Free now", "n/a: unknown", "Not reported by the system.", true});
    memory.facts.push_back(
        rates.memoryBytesPerSecond > 0
            ? MachineFact{"Read with all cores", rateText(rates.memoryBytesPerSecond)}
            : notMeasured("Read with all cores"));
    sections << memory;

    MachineSection disk{"Disk", {}};
    if (rates.diskBytesPerSecond > 0) {
        disk.facts = {
            {"Random reads", rateText(rates.diskBytesPerSecond) +
                                 (rates.recordBytes > 0
                                      ? " in reads of " + str(formatGiB(double(rates.recordBytes)))
                                      : QString())},
            {"Direct reads", rates.direct ? "yes" : "no",
             rates.direct ? ""
                          : "The file system does not support them, so reads used the "
                            "page cache: the rate may be that of memory.",
             !rates.direct},
            {"Measured",
             rates.measuredAt > 0
                 ? QDateTime::fromSecsSinceEpoch(rates.measuredAt).toString("yyyy-MM-dd HH:mm")
                 : QString("n/a: measured by an earlier version")}};
    } else {
        disk.facts = {notMeasured("Random reads")};
    }
    disk.facts.push_back({"Sessions folder", dataDir});
    sections << disk;

    MachineSection gpu{"GPU", {}};
    if (facts.gpuReason.isEmpty()) {
        gpu.facts = {{"Device", facts.gpuName},
                     {"SM utilisation", facts.gpuProvenance},
                     {"Compute", "n/a: this build runs models on the CPU", "", true}};
    } else {
        const QString na = "n/a: " + facts.gpuReason;
        gpu.facts = {
            {"Device", na, "", true},
            {"SM utilisation", na,
             "It needs an NVIDIA GPU and its driver. Everything else works without them.", true}};
    }
    sections << gpu;

    sections << MachineSection{"Program",
                               {{"Version", QCoreApplication::applicationVersion().isEmpty()
                                                ? QString("0.1.0")
                                                : QCoreApplication::applicationVersion()},
                                {"Qt", qVersion()},
                                {"System", facts.system}}};
    return sections;
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
