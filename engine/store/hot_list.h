// SPDX-License-Identifier: Apache-2.0
// The hot list: which experts of a model were used most, kept between runs in the user's cache
// folder so that the next start can read them before they are asked for.
//
// A text file: a first line that names the model (fingerprint and weight type) and its shape, one
// line "expert uses" per expert in falling order, a last line with the hash of all before it. A
// list that is cut, changed or of another model is an error and is not used.
#pragma once

#include <cstdint>
#include <filesystem>
#include <vector>

#include "engine/base/status.h"
#include "engine/model/container.h"

namespace colibri {

struct HotExpert {
    uint32_t key = 0;   // moeLayer * experts + expert
    uint64_t uses = 0;  // over earlier runs, halved with each
    bool operator==(const HotExpert&) const = default;
};

// Where the list of this model is kept; empty when the user has no cache folder.
std::filesystem::path hotListPath(const ContainerInfo& info);

// Most used first. A missing file is an empty list; BadInput names the file and what is wrong.
Result<std::vector<HotExpert>> readHotList(const std::filesystem::path& path,
                                           const ContainerInfo& info);
// Atomic. Makes the folder when it is missing.
Status writeHotList(const std::filesystem::path& path, const ContainerInfo& info,
                    std::vector<HotExpert> experts);

// The list to keep: half of what was known, and the lookups of this run by key.
std::vector<HotExpert> mergeHotLists(const std::vector<HotExpert>& earlier,
                                     const std::vector<uint32_t>& lookups);

}  // namespace colibri
