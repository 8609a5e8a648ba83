// SPDX-License-Identifier: GPL-3.0-or-later
// The parts of tests/gpu-check. Each runs work on the GPU and adds rows to the table.
#pragma once

#include "check_table.h"

void checkActivity(CheckTable& table);  // kernels and copies by CUPTI
void checkCounters(CheckTable& table);  // PM sampling, GPM and NVML against work of a known share
