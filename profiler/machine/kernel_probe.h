// SPDX-License-Identifier: Apache-2.0
// Measures the kernels of one weight format.
#pragma once

#include "kernels/kernels.h"

namespace colibri {

// With `threads` threads, for about `seconds` each; 0: no memory.
// Bytes of weights per second, for one row of activations and weights that are larger than the
// caches: the work of decoding.
double probeDecodeKernel(const KernelSet& kernels, DType type, int threads, double seconds);
// Floating-point operations per second (a multiplication and an addition are two), for many rows
// and weights in the cache: the work of prefill.
double probePrefillKernel(const KernelSet& kernels, DType type, int threads, double seconds);

}  // namespace colibri
