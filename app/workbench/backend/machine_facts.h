// SPDX-License-Identifier: GPL-3.0-or-later
// Facts about this machine, with the reason for each one that is not available. Plain functions;
// any thread.
#pragma once

#include <QString>
#include <QVector>
#include <cstdint>

#include "engine/store/calibration.h"

namespace colibri::ui {

// A fact as the diagnose page shows it. `advice`: what the user can do.
struct MachineFact {
    QString name, value, advice;
    bool missing = false;
};

struct MachineFacts {
    QString processor, isa, gpuName, gpuReason, gpuProvenance, system;
    QVector<MachineFact> gpuCounters;  // each source, used or refused
    int cores = 0, threads = 0, numaNodes = 1;
    int64_t memoryTotal = 0, memoryFree = 0;
};

MachineFacts gatherMachineFacts();  // loads the GPU driver, so it runs in a job

// Facts by section.
struct MachineSection {
    QString title;
    QVector<MachineFact> facts;
};
QVector<MachineSection> machineSections(const MachineFacts& facts, const Calibration& rates,
                                        const QString& dataDir);
QString machineText(const QVector<MachineSection>& sections);
QString rateText(double bytesPerSecond);

}  // namespace colibri::ui
