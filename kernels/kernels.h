// SPDX-License-Identifier: Apache-2.0
// The kernel table: all arithmetic of the forward pass, with one implementation for each
// instruction set (scalar reference, AVX2+FMA+F16C, AVX-512 with VNNI if available).
//
// Determinism contract. Within one instruction set, each output value depends only on its own
// inputs and never on how many rows are computed together, how panels are split between threads,
// or what else is in the batch: the order of accumulation is fixed per output. Different
// instruction sets may differ in the last bits.
//
// Thread rules: all functions are pure, reentrant, and allocate nothing. Callers split the work.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

#include "kernels/dtype.h"
#include "kernels/packed.h"

namespace colibri {

enum class Isa : uint8_t { Scalar, Avx2, Avx512 };
std::string_view isaName(Isa isa);  // "scalar", "AVX2", "AVX-512"; VNNI is not a set (hasVnni)

// One block of an activation row quantised for the integer dot products of the quantised types.
struct Q8Block {
    float scale;      // max |x| / 127
    int16_t sums[2];  // sums of the first and of the last 16 q, for offsets and minima of weights
    int8_t q[kBlock];
    int32_t sum() const { return sums[0] + sums[1]; }
};
static_assert(sizeof(Q8Block) == 40);

// The form in which a weight type needs the activations of a matmul.
constexpr bool usesQuantisedInput(DType weights) {
    return isQuantised(weights);
}
// Bytes of one activation row prepared for `weights`: paddedCols floats, or paddedCols/32 Q8Block.
constexpr int64_t inputRowBytes(DType weights, int64_t cols) {
    return usesQuantisedInput(weights) ? paddedCols(cols) / kBlock * int64_t(sizeof(Q8Block))
                                       : paddedCols(cols) * int64_t(sizeof(float));
}

// A KV page: K of kPageTokens consecutive positions of one layer and one KV head, then V of the
// same positions. Both are [kPageTokens][headDim] in f32, f16 or int8. int8 codes are followed by
// f32 scales [kPageTokens][kvScales(headDim)], one for each 32 values of a row: value = code *
// scale. With latent attention there is only K; the values are the first columns of its rows.
constexpr int kPageTokens = 32;
enum class KvType : uint8_t { F32, F16, Q8 };  // also the choices of the knob kv_dtype

constexpr int64_t kvScales(int64_t dim) {
    return (dim + kBlock - 1) / kBlock;
}
// Bytes of K, or of V, of one page.
constexpr int64_t kvRowsBytes(KvType type, int64_t dim) {
    return kPageTokens * (type == KvType::F32   ? dim * 4
                          : type == KvType::F16 ? dim * 2
                                                : dim + kvScales(dim) * 4);
}

struct AttentionArgs {
    const float* q;  // (heads of this KV group, headDim), after the rotation
    int heads;       // query heads that share this KV head
    int headDim;
    int latentDim;             // 0: V is in the pages; else values are the first latentDim of K
    const void* const* pages;  // pages[i] covers positions [32 i, 32 i + 31]
    KvType kvType;             // of the pages
    int64_t begin, end;        // visible positions [begin, end)
    float scale;               // usually 1/sqrt(headDim)
    const float* sinks;        // (heads) extra logits, or nullptr
    float* scratch;            // heads * (end - begin) floats
    float* out;                // (heads, valueDim())

    int valueDim() const { return latentDim > 0 ? latentDim : headDim; }
};

// Weights before they are packed: column by column, one row of the panel per lane.
using WeightTile = float[kBlock][kPanel];

struct KernelSet {
    Isa isa;

    // Prepares `rows` activation rows x (row stride ldx floats, `cols` columns used, padding
    // treated as zero). Writes contiguous rows to `out` in the form of inputRowBytes(weights,
    // cols); `out` is aligned for float. A NaN or an infinity in a block makes the outputs of its
    // row NaN.
    void (*prepareInput)(DType weights, const float* x, int64_t ldx, int64_t rows, int64_t cols,
                         std::byte* out);

    // y[r * ldy + 16 p + lane] = sum_k W[16 p + lane, k] * x[r, k] for panels p in [first, last).
    // `packed` is the whole matrix; x comes from prepareInput. Lanes of padding rows are written
    // too unless 16 p + lane >= outRows.
    void (*matmul)(DType type, const std::byte* packed, int64_t outRows, int64_t cols,
                   int64_t first, int64_t last, const std::byte* x, int64_t rows, float* y,
                   int64_t ldy);

    // h = silu(W1 x) * (W3 x), fused: gate, up and activation. Conventions as in matmul. REQUIRES:
    // both types take their input in the same form (usesQuantisedInput).
    void (*gateUp)(DType type1, const std::byte* w1, DType type3, const std::byte* w3,
                   int64_t outRows, int64_t cols, int64_t first, int64_t last, const std::byte* x,
                   int64_t rows, float* h, int64_t ldh);

    // out[i] = x[i] / sqrt(mean(x^2) + eps) * w[i]; the sum is accumulated in double. out may be x.
    void (*rmsNorm)(const float* x, const float* w, int64_t n, float eps, float* out);

    // Rotates the first rotaryDim values of one head in place. cosSin holds rotaryDim/2 pairs
    // (cos, sin). interleaved: pairs (0,1),(2,3)...; else (i, i + rotaryDim/2).
    void (*rope)(float* head, int rotaryDim, const float* cosSin, bool interleaved);

    // In place; subtracts the maximum first.
    void (*softmax)(float* x, int64_t n);

    // Scaled dot-product attention of one query position over paged KV of one KV head.
    void (*attention)(const AttentionArgs& args);

    // axpy: y[i] += a * x[i]. dot: the dot product of two f32 rows, for the router.
    void (*axpy)(float* y, float a, const float* x, int64_t n);
    float (*dot)(const float* a, const float* b, int64_t n);

    // out[r * k + i] = table[tokens[r] * k + i] for n tokens: entries of a token -> experts table.
    // May read one value past the last entry of the table.
    void (*tableLookup)(const uint16_t* table, int64_t k, const int32_t* tokens, int64_t n,
                        int32_t* out);

    // f32 <-> f16 for the KV cache, round to nearest even.
    void (*toF16)(const float* x, int64_t n, uint16_t* out);
    void (*fromF16)(const uint16_t* x, int64_t n, float* out);

    // Encodes 32 columns of a panel as one block of the packed layout, with equal bits in all sets.
    // A value that is not finite gives an unspecified value. REQUIRES: hasEncoder(type).
    void (*encode)(DType type, const WeightTile& tile, std::byte* out);
};

// The k largest of n scores, largest first; equal scores: lowest index first. NaN sorts last.
// Writes min(k, n) indices.
void topK(const float* scores, int n, int k, int* indices);

// Instruction sets that processor and operating system support, weakest first; always includes
// Scalar.
const std::vector<Isa>& availableIsas();
bool hasVnni();                        // the Avx512 set uses AVX-512 VNNI
const KernelSet& kernelsFor(Isa isa);  // REQUIRES: isa is in availableIsas()
const KernelSet& bestKernels();

// Quantises one row of K or V to int8 as in pages: scale = max |x| / 127 for each 32 values, codes
// rounded to nearest. A NaN or an infinity makes its 32 values NaN.
void quantiseKv(const float* x, int64_t dim, int8_t* codes, float* scales);

// Scalar conversions used by converters and tests.
float f16ToF32(uint16_t h);
uint16_t f32ToF16(float f);  // round to nearest even, overflow to infinity
float bf16ToF32(uint16_t h);
// Rounds to nearest even; a NaN stays a NaN. Always inlined, because files for several instruction
// sets use it.
[[gnu::always_inline]] inline uint16_t f32ToBf16(float f) {
    const uint32_t bits = std::bit_cast<uint32_t>(f);
    const bool nan = (bits & 0x7fffffffu) > 0x7f800000u;
    return uint16_t(nan ? bits >> 16 | 0x40u : (bits + 0x7fffu + (bits >> 16 & 1u)) >> 16);
}

}  // namespace colibri
