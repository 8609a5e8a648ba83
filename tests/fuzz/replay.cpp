// SPDX-License-Identifier: GPL-3.0-or-later
// Runs every target with the committed inputs, and with variants of them that are the same each
// time.
// Usage: fuzz_replay FOLDER [CHANGES [TARGET [FILE]]]
// FOLDER has a folder for each target; CHANGES is the number of variants of each input (default 0).
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <random>
#include <set>
#include <string>

#include "tests/fuzz/targets.h"

namespace fs = std::filesystem;

namespace {

std::string contentOf(const fs::path& file) {
    std::ifstream in(file, std::ios::binary);
    return {std::istreambuf_iterator<char>(in), {}};
}

// Changes that break parsers: flipped bits, extreme lengths and numbers, parts removed, repeated or
// moved, truncation.
std::string changed(std::string bytes, uint64_t seed) {
    static const std::string numbers[] = {"0",    "-1",    "1e999", "9223372036854775807",
                                          "null", "[[[[[["};
    std::mt19937_64 random(seed);
    const auto below = [&](size_t n) { return n ? size_t(random() % n) : 0; };
    for (size_t times = 1 + below(4); times > 0; --times) {
        const size_t at = below(bytes.size() + 1);
        const size_t n = std::min(bytes.size() - at, below(40));
        switch (below(7)) {
            case 0:
                if (at < bytes.size()) bytes[at] = char(bytes[at] ^ (1 << below(8)));
                break;
            case 1:
                if (at < bytes.size()) bytes[at] = char(random());
                break;
            case 2:
                bytes.replace(at, std::min<size_t>(n, 8), std::min<size_t>(n, 8), '\xff');
                break;
            case 3:
                bytes.replace(at, below(6), numbers[below(std::size(numbers))]);
                break;
            case 4:
                bytes.erase(at, n);
                break;
            case 5:
                bytes.insert(below(bytes.size() + 1), bytes.substr(at, n));
                break;
            default:
                if (below(4) == 0) bytes.resize(at);
        }
    }
    return bytes;
}

}  // namespace

int main(int argc, char** argv) {
    if (argc < 2) {
        std::fprintf(stderr, "Usage: fuzz_replay FOLDER [CHANGES [TARGET [FILE]]]\n");
        return 2;
    }
    const int changes = argc > 2 ? std::atoi(argv[2]) : 0;
    for (const auto& target : colibri::fuzz::kTargets) {
        if (argc > 3 && target.name != argv[3]) continue;
        std::set<fs::path> files;
        std::error_code error;
        for (const auto& entry : fs::directory_iterator(fs::path(argv[1]) / target.name, error)) {
            files.insert(entry.path());
        }
        if (argc > 4) files = {fs::path(argv[4])};
        if (files.empty()) {
            std::fprintf(stderr, "No inputs for %s in %s\n", std::string(target.name).c_str(),
                         argv[1]);
            return 1;
        }
        for (const fs::path& file : files) {
            const std::string bytes = contentOf(file);
            std::printf("%s\n", file.c_str());  // the last name printed is the failing file
            std::fflush(stdout);
            target.run(bytes);
            for (int i = 1; i <= changes; ++i) target.run(changed(bytes, uint64_t(i)));
        }
    }
    return 0;
}
