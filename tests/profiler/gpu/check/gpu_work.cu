// SPDX-License-Identifier: GPL-3.0-or-later
#include "gpu_work.h"

#include <cuda_runtime.h>

namespace {

void* g_host = nullptr;
char* g_device = nullptr;
size_t g_bytes = 0;
cudaStream_t g_stream = nullptr;

__device__ uint64_t now() {
    uint64_t ns;
    asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(ns));
    return ns;
}

// A block stays on its multiprocessor until the time is over. Shared memory keeps others away.
__global__ void spin(uint64_t nanoseconds) {
    const uint64_t end = now() + nanoseconds;
    while (now() < end) {
    }
}

}  // namespace

extern "C" {

int gpuWorkOpen(size_t bytes) {
    g_bytes = bytes;
    if (const cudaError_t e = cudaStreamCreate(&g_stream); e != cudaSuccess) return e;
    if (const cudaError_t e = cudaMallocHost(&g_host, bytes); e != cudaSuccess) return e;
    if (const cudaError_t e = cudaMalloc(&g_device, 2 * bytes); e != cudaSuccess) return e;
    int most = 0;
    cudaDeviceGetAttribute(&most, cudaDevAttrMaxSharedMemoryPerBlockOptin, 0);
    // More than half of the shared memory: one block for each multiprocessor.
    return cudaFuncSetAttribute(spin, cudaFuncAttributeMaxDynamicSharedMemorySize, most);
}
void gpuWorkClose() {
    cudaFree(g_device);
    cudaFreeHost(g_host);
    cudaStreamDestroy(g_stream);
}
int gpuWorkMultiprocessors() {
    int count = 0;
    cudaDeviceGetAttribute(&count, cudaDevAttrMultiProcessorCount, 0);
    return count;
}
int gpuWorkSpin(int kernels, uint64_t nanoseconds, int blocks) {
    int most = 0;
    cudaDeviceGetAttribute(&most, cudaDevAttrMaxSharedMemoryPerBlockOptin, 0);
    for (int i = 0; i < kernels; ++i) spin<<<blocks, 32, size_t(most), g_stream>>>(nanoseconds);
    return cudaGetLastError();
}
int gpuWorkCopyToGpu(int copies, size_t bytes) {
    cudaError_t e = cudaSuccess;
    for (int i = 0; i < copies && e == cudaSuccess; ++i)
        e = cudaMemcpyAsync(g_device, g_host, bytes, cudaMemcpyHostToDevice, g_stream);
    return e;
}
int gpuWorkCopyFromGpu(int copies, size_t bytes) {
    cudaError_t e = cudaSuccess;
    for (int i = 0; i < copies && e == cudaSuccess; ++i)
        e = cudaMemcpyAsync(g_host, g_device, bytes, cudaMemcpyDeviceToHost, g_stream);
    return e;
}
int gpuWorkFill(int fills, size_t bytes) {
    cudaError_t e = cudaSuccess;
    for (int i = 0; i < fills && e == cudaSuccess; ++i)
        e = cudaMemsetAsync(g_device, 1, bytes, g_stream);
    return e;
}
int gpuWorkCopyOnGpu(int copies, size_t bytes) {
    cudaError_t e = cudaSuccess;
    for (int i = 0; i < copies && e == cudaSuccess; ++i)
        e = cudaMemcpyAsync(g_device + g_bytes, g_device, bytes, cudaMemcpyDeviceToDevice,
                            g_stream);
    return e;
}
int gpuWorkWait() {
    return cudaStreamSynchronize(g_stream);
}

}  // extern "C"
