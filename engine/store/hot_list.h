// SPDX-License-Identifier: Apache-2.0
// The hot list: the most used experts of a model, stored between runs in the user's cache folder so
// that the next start can read them before they are requested.
//
// A text file: a first line that names the model (fingerprint and weight type) and its shape, one
// line "expert uses" per expert in descending order, a last line with the hash of all lines before
// it. A list that is truncated, changed or of another model is an error and is not used.
#pragma once

#include <cstdint>
#include <filesystem>
#include <vector>

#include "engine/base/status.h"
#include "engine/model/container.h"

namespace colibri {

struct HotExpert {
    uint32_t key = 0;   // moeLayer * experts + expert
    uint64_t uses = 0;  // sum over earlier runs, halved with each run
    bool operator==(const HotExpert&) const = default;
};

// The path of this model's list; empty if the user has no cache folder.
std::filesystem::path hotListPath(const ContainerInfo& info);

// Most used first. A missing file is an empty list; BadInput names the file and the fault.
Result<std::vector<HotExpert>> readHotList(const std::filesystem::path& path,
                                           const ContainerInfo& info);
// Atomic. Creates the folder if it is missing.
Status writeHotList(const std::filesystem::path& path, const ContainerInfo& info,
                    std::vector<HotExpert> experts);

// The list to store: half of the known uses plus the lookups of this run, by key.
std::vector<HotExpert> mergeHotLists(const std::vector<HotExpert>& earlier,
                                     const std::vector<uint32_t>& lookups);

}  // namespace colibri
