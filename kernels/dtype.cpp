// SPDX-License-Identifier: Apache-2.0
#include "kernels/dtype.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>

#include "kernels/kernels.h"

namespace colibri {
namespace {

struct TypeRow {
    DType type;
    std::string_view name;
    double bits;
    FileBlock block;
};

// Q4_K and Q5_K need one eighth of a bit more than in the file, which packs their 6-bit scales. All
// other types need the same.
constexpr std::array<TypeRow, kDTypeCount> kTypes = {{
    {DType::F32, "f32", 32.0, {1, 4}},
    {DType::F16, "f16", 16.0, {1, 2}},
    {DType::BF16, "bf16", 16.0, {1, 2}},
    {DType::Q8_0, "q8_0", 8.5, {32, 34}},
    {DType::Q4_0, "q4_0", 4.5, {32, 18}},
    {DType::Q4_1, "q4_1", 5.0, {32, 20}},
    {DType::Q5_0, "q5_0", 5.5, {32, 22}},
    {DType::Q5_1, "q5_1", 6.0, {32, 24}},
    {DType::Q4_K, "q4_k", 4.625, {256, 144}},
    {DType::Q5_K, "q5_k", 5.625, {256, 176}},
    {DType::Q6_K, "q6_k", 6.5625, {256, 210}},
    {DType::MXFP4, "mxfp4", 4.25, {32, 17}},
}};

constexpr const TypeRow& rowOf(DType type) {
    return kTypes[size_t(type)];
}

constexpr bool inOrder() {
    for (size_t i = 0; i < kTypes.size(); ++i) {
        if (size_t(kTypes[i].type) != i) return false;
    }
    return true;
}
static_assert(inOrder());

}  // namespace

std::string_view dtypeName(DType type) {
    return rowOf(type).name;
}

std::optional<DType> dtypeFromName(std::string_view name) {
    for (const TypeRow& row : kTypes) {
        if (row.name == name) return row.type;
    }
    return std::nullopt;
}

std::string encodableNames() {
    std::string out;
    const TypeRow* last = nullptr;
    for (const TypeRow& row : kTypes) {
        if (!hasEncoder(row.type)) continue;
        if (last) out += (out.empty() ? "" : ", ") + std::string(last->name);
        last = &row;
    }
    return out + " or " + std::string(last->name);
}

double bitsPerWeight(DType type) {
    return rowOf(type).bits;
}

FileBlock fileBlock(DType type) {
    return rowOf(type).block;
}

float f16ToF32(uint16_t h) {
    const uint32_t sign = uint32_t(h & 0x8000u) << 16;
    const uint32_t exponent = (h >> 10) & 0x1fu;
    const uint32_t mantissa = h & 0x3ffu;
    if (exponent == 0) {
        // Subnormal: the mantissa counts units of 2^-24; exact in f32.
        const float magnitude = float(mantissa) * 0x1p-24f;
        return std::bit_cast<float>(std::bit_cast<uint32_t>(magnitude) | sign);
    }
    if (exponent == 31) {
        // A signalling NaN becomes quiet, as in the hardware conversion.
        const uint32_t quiet = mantissa != 0 ? 0x400000u : 0u;
        return std::bit_cast<float>(sign | 0x7f800000u | quiet | (mantissa << 13));
    }
    return std::bit_cast<float>(sign | ((exponent + 112) << 23) | (mantissa << 13));
}

uint16_t f32ToF16(float f) {
    const uint32_t bits = std::bit_cast<uint32_t>(f);
    const uint16_t sign = uint16_t((bits >> 16) & 0x8000u);
    const uint32_t magnitude = bits & 0x7fffffffu;
    if (magnitude > 0x7f800000u) return uint16_t(sign | 0x7e00u | ((magnitude >> 13) & 0x1ffu));
    if (magnitude >= 0x477ff000u) return uint16_t(sign | 0x7c00u);  // rounds to 65536 or more
    if (magnitude < 0x38800000u) {
        // Subnormal result: after adding 0.5, the low bits of the mantissa hold the value in units
        // of 2^-24, which the addition has rounded to even.
        const float shifted = std::bit_cast<float>(magnitude) + 0.5f;
        return uint16_t(sign | (std::bit_cast<uint32_t>(shifted) - 0x3f000000u));
    }
    const uint32_t odd = (magnitude >> 13) & 1u;
    return uint16_t(sign | ((magnitude - 0x38000000u + 0xfffu + odd) >> 13));
}

void quantiseKv(const float* x, int64_t dim, int8_t* codes, float* scales) {
    for (int64_t first = 0; first < dim; first += kBlock) {
        const int64_t n = std::min<int64_t>(kBlock, dim - first);
        float largest = 0;
        bool finite = true;
        for (int64_t i = first; i < first + n; ++i) {
            finite &= std::isfinite(x[i]);
            largest = std::max(largest, std::fabs(x[i]));
        }
        scales[first / kBlock] = finite ? largest / 127 : std::nanf("");
        const float inverse = finite && largest > 1e-30f ? 127 / largest : 0;
        for (int64_t i = first; i < first + n; ++i) {
            codes[i] = finite ? int8_t(std::lrintf(x[i] * inverse)) : int8_t(0);
        }
    }
}

float bf16ToF32(uint16_t h) {
    return std::bit_cast<float>(uint32_t(h) << 16);
}

}  // namespace colibri
