// SPDX-License-Identifier: GPL-3.0-or-later
// Runs every target over the committed inputs. Usage: fuzz_replay FOLDER [TARGET [FILE]]
// FOLDER has one folder for each target.
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <set>
#include <string>

#include "tests/fuzz/targets.h"

namespace fs = std::filesystem;

int main(int argc, char** argv) {
    if (argc < 2) {
        std::fprintf(stderr, "Usage: fuzz_replay FOLDER [TARGET [FILE]]\n");
        return 2;
    }
    for (const auto& target : colibri::fuzz::kTargets) {
        if (argc > 2 && target.name != argv[2]) continue;
        std::set<fs::path> files;
        std::error_code error;
        for (const auto& entry : fs::directory_iterator(fs::path(argv[1]) / target.name, error)) {
            files.insert(entry.path());
        }
        if (argc > 3) files = {fs::path(argv[3])};
        if (files.empty()) {
            std::fprintf(stderr, "No inputs for %s in %s\n", std::string(target.name).c_str(),
                         argv[1]);
            return 1;
        }
        for (const fs::path& file : files) {
            std::ifstream in(file, std::ios::binary);
            const std::string bytes{std::istreambuf_iterator<char>(in), {}};
            std::printf("%s\n", file.c_str());  // the last one named is the one that failed
            std::fflush(stdout);
            target.run(bytes);
        }
    }
    return 0;
}
