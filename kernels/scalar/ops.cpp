// SPDX-License-Identifier: Apache-2.0
// Reference row operations and attention, and the scalar kernel table.
#include <cmath>
#include <cstring>

#include "kernels/layout.h"
#include "kernels/scalar/scalar.h"

namespace colibri {
namespace scalar {
namespace {

void rmsNorm(const float* x, const float* w, int64_t n, float eps, float* out) {
    double sum = 0.0;
    for (int64_t i = 0; i < n; ++i) sum += double(x[i]) * double(x[i]);
    const float inverse = float(1.0 / std::sqrt(sum / double(n) + double(eps)));
    for (int64_t i = 0; i < n; ++i) out[i] = x[i] * inverse * w[i];
}

void rope(float* head, int rotaryDim, const float* cosSin, bool interleaved) {
    const int half = rotaryDim / 2;
    for (int i = 0; i < half; ++i) {
        float* a = head + (interleaved ? 2 * i : i);
        float* b = head + (interleaved ? 2 * i + 1 : i + half);
        const float c = cosSin[2 * i];
        const float s = cosSin[2 * i + 1];
        const float rotatedA = *a * c - *b * s;
        const float rotatedB = *a * s + *b * c;
        *a = rotatedA;
        *b = rotatedB;
    }
}

// Replaces x by exp(x - top) and returns the sum. REQUIRES: top >= max(x).
float exponentiate(float* x, int64_t n, float top) {
    double sum = 0.0;
    for (int64_t i = 0; i < n; ++i) {
        x[i] = std::exp(x[i] - top);
        sum += double(x[i]);
    }
    return float(sum);
}

float largestOf(const float* x, int64_t n) {
    float top = -INFINITY;
    for (int64_t i = 0; i < n; ++i) {
        if (x[i] > top) top = x[i];
    }
    return top;
}

void softmax(float* x, int64_t n) {
    const float scale = 1.0f / exponentiate(x, n, largestOf(x, n));
    for (int64_t i = 0; i < n; ++i) x[i] *= scale;
}

// Value d of a row of K (half 0) or V (half 1) of a page.
float element(const AttentionArgs& args, int64_t half, int64_t t, int64_t d) {
    const int64_t dim = args.headDim, row = t % kPageTokens;
    const auto* rows = static_cast<const std::byte*>(args.pages[t / kPageTokens]) +
                       half * kvRowsBytes(args.kvType, dim);
    const int64_t i = row * dim + d;
    switch (args.kvType) {
        case KvType::F32:
            return reinterpret_cast<const float*>(rows)[i];
        case KvType::F16:
            return f16ToF32(reinterpret_cast<const uint16_t*>(rows)[i]);
        case KvType::Q8:
            break;
    }
    const auto* scales = reinterpret_cast<const float*>(rows + kPageTokens * dim);
    return float(int8_t(rows[i])) * scales[row * kvScales(dim) + d / kBlock];
}

void attentionHead(const AttentionArgs& args, int head) {
    const int64_t n = args.end - args.begin;
    const int64_t dim = args.headDim, width = args.valueDim();
    const int64_t valuesHalf = args.latentDim > 0 ? 0 : 1;
    const float* q = args.q + head * dim;
    float* out = args.out + head * width;
    float* scores = args.scratch + head * n;
    for (int64_t t = args.begin; t < args.end; ++t) {
        float sum = 0.0f;
        for (int64_t d = 0; d < dim; ++d) sum += q[d] * element(args, 0, t, d);
        scores[t - args.begin] = sum * args.scale;
    }
    float top = largestOf(scores, n);
    if (args.sinks && args.sinks[head] > top) top = args.sinks[head];
    float sum = exponentiate(scores, n, top);
    if (args.sinks) sum += std::exp(args.sinks[head] - top);
    const float inverse = n > 0 ? 1.0f / sum : 0.0f;
    std::memset(out, 0, size_t(width) * sizeof(float));
    for (int64_t t = args.begin; t < args.end; ++t) {
        const float p = scores[t - args.begin];
        for (int64_t d = 0; d < width; ++d) out[d] += p * element(args, valuesHalf, t, d);
    }
    for (int64_t d = 0; d < width; ++d) out[d] *= inverse;
}

void attention(const AttentionArgs& args) {
    for (int head = 0; head < args.heads; ++head) attentionHead(args, head);
}

void axpy(float* y, float a, const float* x, int64_t n) {
    for (int64_t i = 0; i < n; ++i) y[i] += a * x[i];
}

float dot(const float* a, const float* b, int64_t n) {
    float sum = 0.0f;
    for (int64_t i = 0; i < n; ++i) sum += a[i] * b[i];
    return sum;
}

}  // namespace

void tableLookup(const uint16_t* table, int64_t k, const int32_t* tokens, int64_t n, int32_t* out) {
    for (int64_t r = 0; r < n; ++r) {
        const uint16_t* entry = table + int64_t(tokens[r]) * k;
        for (int64_t i = 0; i < k; ++i) out[r * k + i] = entry[i];
    }
}

namespace {

void toF16(const float* x, int64_t n, uint16_t* out) {
    for (int64_t i = 0; i < n; ++i) out[i] = f32ToF16(x[i]);
}

void fromF16(const uint16_t* x, int64_t n, float* out) {
    for (int64_t i = 0; i < n; ++i) out[i] = f16ToF32(x[i]);
}

constexpr KernelSet kScalar = {
    .isa = Isa::Scalar,
    .prepareInput = prepareInput,
    .matmul = matmul,
    .gateUp = gateUp,
    .rmsNorm = rmsNorm,
    .rope = rope,
    .softmax = softmax,
    .attention = attention,
    .axpy = axpy,
    .dot = dot,
    .tableLookup = tableLookup,
    .toF16 = toF16,
    .fromF16 = fromF16,
    .encode = encode,
};

}  // namespace
}  // namespace scalar

const KernelSet& scalarKernels() {
    return scalar::kScalar;
}

}  // namespace colibri
