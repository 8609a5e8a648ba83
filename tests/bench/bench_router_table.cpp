// SPDX-License-Identifier: GPL-3.0-or-later
// Nanoseconds per token and layer of a lookup in the token -> experts table, for the shapes of real
// models, by instruction set: a prompt of random tokens layer by layer, and one token at a time
// through all layers (decoding).
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <random>
#include <vector>

#include "engine/base/buffer.h"
#include "kernels/kernels.h"

using namespace colibri;

namespace {

using Clock = std::chrono::steady_clock;

struct Shape {
    const char* name;
    int64_t vocab, layers, topK;
};
constexpr Shape kShapes[] = {{"64 experts top-2, vocabulary 128256", 128256, 32, 2},
                             {"Mixtral 8x7B", 32000, 32, 2},
                             {"OLMoE", 50304, 16, 8},
                             {"Qwen3-30B-A3B", 151936, 48, 8}};
constexpr double kSeconds = 0.2;

// body() makes one pass over `lookups` token-layers.
template <typename Body>
double nsPerLookup(int64_t lookups, const Body& body) {
    body();  // warm-up
    int64_t passes = 0;
    const auto start = Clock::now();
    double seconds = 0;
    do {
        body();
        ++passes;
        seconds = std::chrono::duration<double>(Clock::now() - start).count();
    } while (seconds < kSeconds);
    return seconds * 1e9 / double(passes * lookups);
}

}  // namespace

int main() {
    for (const Shape& s : kShapes) {
        const int64_t entries = s.vocab * s.layers * s.topK + 1;
        ScratchBuffer memory;
        uint16_t* table = memory.as<uint16_t>(entries);
        std::fill(table, table + entries, uint16_t(3));
        std::mt19937 random(1);
        std::vector<int32_t> tokens(4096);
        for (int32_t& t : tokens) t = int32_t(random() % uint32_t(s.vocab));
        std::vector<int32_t> out(tokens.size() * size_t(s.topK));
        std::printf("%s, top-%d, %.1f MiB per layer\n", s.name, int(s.topK),
                    double(s.vocab * s.topK * 2) / double(1 << 20));
        for (const Isa isa : availableIsas()) {
            const KernelSet& k = kernelsFor(isa);
            const auto layer = [&](int64_t l) { return table + l * s.vocab * s.topK; };
            const double prompt = nsPerLookup(int64_t(tokens.size()) * s.layers, [&] {
                for (int64_t l = 0; l < s.layers; ++l) {
                    k.tableLookup(layer(l), s.topK, tokens.data(), int64_t(tokens.size()),
                                  out.data());
                }
            });
            const double decode = nsPerLookup(256 * s.layers, [&] {
                for (size_t t = 0; t < 256; ++t) {
                    for (int64_t l = 0; l < s.layers; ++l) {
                        k.tableLookup(layer(l), s.topK, &tokens[t], 1, out.data());
                    }
                }
            });
            std::printf("  %-8s prompt %6.2f ns   one token %6.2f ns   per token and layer\n",
                        isaName(isa).data(), prompt, decode);
        }
    }
}
