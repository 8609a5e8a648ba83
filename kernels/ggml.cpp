// SPDX-License-Identifier: Apache-2.0
// Conversion of ggml's blocks, which GGUF files store row by row, to the packed layout.
#include <cstring>
#include <type_traits>

#include "kernels/block_values.h"
#include "kernels/packed.h"

namespace colibri {
namespace {

uint16_t loadU16(const uint8_t* p) {
    return uint16_t(p[0] | (p[1] << 8));
}

// Stores 16 bytes of nibbles: byte j holds code j in its low nibble and code j + 16 in its high
// nibble, as in the packed layout. `high`: the fifth bits, if any; bit k belongs to code k.
template <int High>
void storeNibbles(const uint8_t* src, const uint8_t* high, int64_t lane, PackedCodes<High>& out) {
    for (int g = 0; g < 4; ++g) std::memcpy(out.low[g][lane], src + 4 * g, 4);
    if constexpr (High > 0) {
        const uint32_t bits = uint32_t(loadU16(high)) | uint32_t(loadU16(high + 2)) << 16;
        for (int j = 0; j < 4; ++j) {
            uint32_t x = bits >> j & 0x11111111;  // bit 4 g to bit g
            x = (x | x >> 3) & 0x03030303;
            x = (x | x >> 6) & 0x000f000f;
            out.high[0][lane][j] = uint8_t(x | x >> 12);
        }
    }
}

void store(const uint8_t* src, int64_t lane, PackedQ8& out) {
    out.scale[lane] = loadU16(src);
    for (int g = 0; g < kBlock / 4; ++g) std::memcpy(out.q[g][lane], src + 2 + 4 * g, 4);
}

// scale, fifth bits, nibbles
template <int High, int Offset>
void store(const uint8_t* src, int64_t lane, PackedScaled<High, Offset>& out) {
    out.scale[lane] = loadU16(src);
    storeNibbles(src + 2 + 4 * High, High ? src + 2 : nullptr, lane, out.codes[0]);
}

// scale, minimum, fifth bits, nibbles
template <int High>
void store(const uint8_t* src, int64_t lane, PackedRaised<High>& out) {
    out.scale[lane] = loadU16(src);
    out.min[lane] = loadU16(src + 2);
    storeNibbles(src + 4 + 4 * High, High ? src + 4 : nullptr, lane, out.codes[0]);
}

void store(const uint8_t* src, int64_t lane, PackedMx4& out) {
    out.scale[lane] = src[0];
    storeNibbles(src + 1, nullptr, lane, out.codes[0]);
}

// Block: scale; minimum; 12 bytes with eight scales and eight minima of 6 bits each; fifth bits, of
// which bit s of byte k belongs to column k of sub-block s; nibbles, 32 bytes for two sub-blocks.
template <int High>
void store(const uint8_t* src, int64_t lane, PackedSuper<High>& out) {
    out.scale[lane] = loadU16(src);
    out.min[lane] = loadU16(src + 2);
    const uint8_t* packed = src + 4;
    const uint8_t* high = src + 16;
    const uint8_t* low = high + 32 * High;
    for (int s = 0; s < 8; ++s) {
        const int i = s % 4;
        // Bits 4 and 5 of the last four are the top bits of the first four.
        out.subScale[s][lane] =
            uint8_t(s < 4 ? packed[i] & 63 : (packed[8 + i] & 15) | (packed[i] >> 6 << 4));
        out.subMin[s][lane] =
            uint8_t(s < 4 ? packed[4 + i] & 63 : (packed[8 + i] >> 4) | (packed[4 + i] >> 6 << 4));
        uint8_t codes[kBlock];
        for (int k = 0; k < kBlock; ++k) {
            codes[k] = uint8_t(low[s / 2 * 32 + k] >> (s % 2 * 4) & 15);
            if (High) codes[k] |= uint8_t((high[k] >> s & 1) << 4);
        }
        storeCodes(codes, lane, out.codes[s]);
    }
}

// Block: for each half of four sub-blocks, 64 bytes of low nibbles, then 32 bytes with two high
// bits of each of the four; 16 scales; scale.
void store(const uint8_t* src, int64_t lane, PackedQ6K& out) {
    out.scale[lane] = loadU16(src + 208);
    for (int s = 0; s < 8; ++s) {
        const int half = s / 4, t = s % 4;
        const uint8_t* low = src + 64 * half + 32 * (t % 2);
        const uint8_t* high = src + 128 + 32 * half;
        uint8_t codes[kBlock];
        for (int k = 0; k < kBlock; ++k) {
            codes[k] = uint8_t((low[k] >> (t / 2 * 4) & 15) | (high[k] >> (2 * t) & 3) << 4);
        }
        storeCodes(codes, lane, out.codes[s]);
        for (int part = 0; part < 2; ++part) {
            out.subScale[s][part][lane] = int8_t(src[192 + 2 * s + part]);
        }
    }
}

bool finiteHalf(const uint8_t* p) {
    return (loadU16(p) & 0x7c00) != 0x7c00;
}

}  // namespace

void packGgmlRows(DType type, const std::byte* src, int64_t rows, int64_t cols, std::byte* out) {
    const FileBlock file = fileBlock(type);
    const int64_t stride = panelBytes(type, cols), perRow = cols / file.cols;
    const auto* from = reinterpret_cast<const uint8_t*>(src);
    withBlock(type, [&](auto* block) {
        for (int64_t row = 0; row < panelCount(rows) * kPanel; ++row) {
            block = reinterpret_cast<decltype(block)>(out + row / kPanel * stride);
            for (int64_t b = 0; b < perRow; ++b, ++block) {
                if (row < rows) {
                    store(from + (row * perRow + b) * file.bytes, row % kPanel, *block);
                } else {
                    clearLane(row % kPanel, *block);
                }
            }
        }
    });
}

void ggmlToFloats(DType type, const std::byte* src, int64_t blocks, float* out) {
    const FileBlock file = fileBlock(type);
    const auto* from = reinterpret_cast<const uint8_t*>(src);
    withBlock(type, [&](auto* block) {
        std::remove_pointer_t<decltype(block)> one;  // only lane 0 is used
        for (int64_t b = 0; b < blocks; ++b) {
            store(from + b * file.bytes, 0, one);
            readLane(one, 0, file.cols, out + b * file.cols);
        }
    });
}

bool ggmlScalesFinite(DType type, const std::byte* src, int64_t blocks) {
    const int bytes = fileBlock(type).bytes;
    const auto* from = reinterpret_cast<const uint8_t*>(src);
    bool good = true;
    for (int64_t b = 0; b < blocks; ++b, from += bytes) {
        if (type == DType::MXFP4) {
            good &= from[0] <= 252;  // larger ones make 12 * 2^(e - 128) overflow f32
            continue;
        }
        good &= finiteHalf(type == DType::Q6_K ? from + 208 : from);
        withBlock(type, [&](auto* block) {
            if (std::remove_pointer_t<decltype(block)>::kMin) good &= finiteHalf(from + 2);
        });
    }
    return good;
}

}  // namespace colibri
