// SPDX-License-Identifier: Apache-2.0
// Private: single values of the packed blocks, in plain C++. A weight is scaleAt * valueAt + minAt,
// rounded to f32 after the product and after the sum. For the types that ggml defines in blocks of
// 256, the product of the two scales is exact.
#pragma once

#include <bit>

#include "kernels/layout.h"

namespace colibri {

// The plane that holds the high bits of column k, and their position in a byte.
template <int High>
struct HighBits {
    static constexpr int kGroups = 8 / High;  // groups of four columns in a plane
    int plane, shift;
    explicit HighBits(int k) : plane(k / 4 / kGroups), shift(k / 4 % kGroups * High) {}
};

template <int High>
int codeAt(const PackedCodes<High>& codes, int k, int64_t lane) {
    const int byte = codes.low[k % 16 / 4][lane][k % 4];
    int code = k < 16 ? byte & 15 : byte >> 4;
    if constexpr (High > 0) {
        const HighBits<High> at(k);
        const int bits = codes.high[at.plane][lane][k % 4] >> at.shift;
        code |= (bits & ((1 << High) - 1)) << 4;
    }
    return code;
}

template <int High>
void storeCodes(const uint8_t* code, int64_t lane, PackedCodes<High>& out) {
    for (int k = 0; k < kBlock / 2; ++k) {
        out.low[k / 4][lane][k % 4] = uint8_t((code[k] & 15) | (code[k + 16] << 4));
    }
    if constexpr (High > 0) {
        for (auto& plane : out.high) {
            for (uint8_t& byte : plane[lane]) byte = 0;
        }
        for (int k = 0; k < kBlock; ++k) {
            const HighBits<High> at(k);
            out.high[at.plane][lane][k % 4] |= uint8_t((code[k] >> 4) << at.shift);
        }
    }
}

// The integer value of column k of sub-block `sub`.
template <typename Block>
int valueAt(const Block& w, int sub, int k, int64_t lane) {
    return codeAt(w.codes[sub], k, lane) - Block::kOffset;
}
inline int valueAt(const PackedMx4& w, int sub, int k, int64_t lane) {
    return kMxValues[codeAt(w.codes[sub], k, lane)];
}
inline int valueAt(const PackedQ8& w, int, int k, int64_t lane) {
    return w.q[k / 4][lane][k % 4];
}

// 2^(e - 128): half of the stored scale, because kMxValues holds doubled values.
inline float mxScale(uint8_t e) {
    const uint32_t bits = uint32_t(e) << 23;
    return std::bit_cast<float>(bits > 0x00400000u ? bits : 0x00400000u) * 0.5f;
}

// The scale of part `part` of sub-block `sub`.
template <typename Block>
float scaleAt(const Block& w, int, int, int64_t lane) {
    return f16ToF32(w.scale[lane]);
}
inline float scaleAt(const PackedMx4& w, int, int, int64_t lane) {
    return mxScale(w.scale[lane]);
}
template <int High>
float scaleAt(const PackedSuper<High>& w, int sub, int, int64_t lane) {
    return f16ToF32(w.scale[lane]) * float(w.subScale[sub][lane]);
}
inline float scaleAt(const PackedQ6K& w, int sub, int part, int64_t lane) {
    return f16ToF32(w.scale[lane]) * float(w.subScale[sub][part][lane]);
}

template <int High>
float minAt(const PackedRaised<High>& w, int, int64_t lane) {
    return f16ToF32(w.min[lane]);
}
template <int High>
float minAt(const PackedSuper<High>& w, int sub, int64_t lane) {
    return -(f16ToF32(w.min[lane]) * float(w.subMin[sub][lane]));
}

// Sets all values of a padding lane to 0.
template <typename Block>
void clearLane(int64_t lane, Block& out) {
    uint8_t codes[kBlock];
    for (uint8_t& code : codes) code = Block::kOffset;
    out.scale[lane] = 0;
    for (auto& sub : out.codes) storeCodes(codes, lane, sub);
    if constexpr (Block::kMin) out.min[lane] = 0;
    if constexpr (Block::kSubs > 1) {
        for (int sub = 0; sub < Block::kSubs; ++sub) {
            if constexpr (Block::kMin) {
                out.subScale[sub][lane] = out.subMin[sub][lane] = 0;
            } else {
                out.subScale[sub][0][lane] = out.subScale[sub][1][lane] = 0;
            }
        }
    }
}
inline void clearLane(int64_t lane, PackedMx4& out) {
    const uint8_t codes[kBlock] = {};
    out.scale[lane] = 0;
    storeCodes(codes, lane, out.codes[0]);
}
inline void clearLane(int64_t lane, PackedQ8& out) {
    out.scale[lane] = 0;
    for (auto& group : out.q) {
        for (int8_t& q : group[lane]) q = 0;
    }
}

// Decodes the first n values of one lane.
template <typename Block>
void readLane(const Block& w, int64_t lane, int64_t n, float* out) {
    constexpr int64_t kPart = kBlock / Block::kSplit;  // columns with the same scale
    for (int64_t first = 0; first < n; first += kPart) {
        const int sub = int(first / kBlock), in = int(first % kBlock);
        const float scale = scaleAt(w, sub, in / int(kPart), lane);
        float min = 0;
        if constexpr (Block::kMin) min = minAt(w, sub, lane);
        const int64_t count = n - first < kPart ? n - first : kPart;
        for (int64_t k = 0; k < count; ++k) {
            out[first + k] = float(valueAt(w, sub, in + int(k), lane)) * scale;
            if constexpr (Block::kMin) out[first + k] += min;
        }
    }
}

}  // namespace colibri
