// SPDX-License-Identifier: GPL-3.0-or-later
// Work of a known amount on the GPU, for tests/gpu-check. gpu_work.cu has it, compiled by nvcc into
// a library of its own, so that the build of everything else needs no CUDA Toolkit. Functions
// return 0 or the error of the CUDA runtime.
#pragma once

#include <cstddef>
#include <cstdint>

extern "C" {
int gpuWorkOpen(size_t bytes);  // memory of the host and the GPU for copies
void gpuWorkClose();
int gpuWorkMultiprocessors();
// Kernels named spin, each `nanoseconds` long on `blocks` multiprocessors.
int gpuWorkSpin(int kernels, uint64_t nanoseconds, int blocks);
int gpuWorkCopyToGpu(int copies, size_t bytes);
int gpuWorkCopyFromGpu(int copies, size_t bytes);
int gpuWorkFill(int fills, size_t bytes);
int gpuWorkCopyOnGpu(int copies, size_t bytes);  // reads and writes the GPU's memory
int gpuWorkWait();                               // until all work is done
}
