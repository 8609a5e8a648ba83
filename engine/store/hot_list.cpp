// SPDX-License-Identifier: Apache-2.0
#include "engine/store/hot_list.h"

#include <xxhash.h>

#include <algorithm>
#include <charconv>
#include <string>
#include <string_view>

#include "engine/base/file.h"
#include "engine/base/machine.h"
#include "kernels/dtype.h"

namespace colibri {

namespace {

constexpr int64_t kLargestFile = 64 << 20;

int64_t keyCount(const ContainerInfo& info) {
    return int64_t(info.expertLayers.size()) * info.config.numExperts;
}

std::string heading(const ContainerInfo& info) {
    return "colibri hot list 1, model " + info.fingerprint + " " +
           std::string(dtypeName(info.expertType)) + ", " +
           std::to_string(info.expertLayers.size()) + " layers of " +
           std::to_string(info.config.numExperts) + "\n";
}

std::string hashLine(std::string_view text) {
    return "hash " + std::to_string(XXH3_64bits(text.data(), text.size())) + "\n";
}

// Removes one number and the character after it from the front of `text`.
bool take(std::string_view& text, uint64_t& value, char after) {
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    const auto used = size_t(end - text.data());
    if (error != std::errc() || used >= text.size() || *end != after) return false;
    text.remove_prefix(used + 1);
    return true;
}

}  // namespace

std::filesystem::path hotListPath(const ContainerInfo& info) {
    const std::filesystem::path cache = cacheDirectory();
    if (cache.empty() || info.fingerprint.empty()) return {};
    return cache / "hot" /
           (info.fingerprint + "-" + std::string(dtypeName(info.expertType)) + ".txt");
}

Result<std::vector<HotExpert>> readHotList(const std::filesystem::path& path,
                                           const ContainerInfo& info) {
    std::vector<HotExpert> experts;
    std::error_code ignored;
    if (path.empty() || !std::filesystem::exists(path, ignored)) return experts;
    const Result<std::string> file = readTextFile(path, kLargestFile);
    if (!file) return file.status();
    const auto broken = [&](const std::string& what) {
        return Status(Code::BadInput, path.string() + ": " + what,
                      "The list is rebuilt when the engine shuts down");
    };
    std::string_view text = *file;
    const std::string head = heading(info);
    if (!text.starts_with(head)) return broken("this is not the hot list of this model");
    const size_t last = text.rfind("hash ");
    if (last == std::string_view::npos || text.substr(last) != hashLine(text.substr(0, last)))
        return broken("the hot list is damaged");
    text = text.substr(head.size(), last - head.size());
    std::vector<bool> seen(size_t(keyCount(info)), false);
    while (!text.empty()) {
        uint64_t key = 0, uses = 0;
        if (!take(text, key, ' ') || !take(text, uses, '\n') || key >= seen.size() || seen[key])
            return broken("the hot list is damaged");
        seen[key] = true;
        experts.push_back({uint32_t(key), uses});
    }
    return experts;
}

Status writeHotList(const std::filesystem::path& path, const ContainerInfo& info,
                    std::vector<HotExpert> experts) {
    std::error_code error;
    std::filesystem::create_directories(path.parent_path(), error);
    if (error) return systemError("cannot create", path.parent_path(), error.value());
    std::string text = heading(info);
    for (const HotExpert& expert : experts)
        text += std::to_string(expert.key) + " " + std::to_string(expert.uses) + "\n";
    text += hashLine(text);
    return writeFileAtomically(path, text);
}

std::vector<HotExpert> mergeHotLists(const std::vector<HotExpert>& earlier,
                                     const std::vector<uint32_t>& lookups) {
    std::vector<uint64_t> uses(lookups.begin(), lookups.end());
    for (const HotExpert& expert : earlier)
        if (expert.key < uses.size()) uses[expert.key] += expert.uses / 2;
    std::vector<HotExpert> merged;
    for (size_t key = 0; key < uses.size(); ++key)
        if (uses[key] > 0) merged.push_back({uint32_t(key), uses[key]});
    std::stable_sort(merged.begin(), merged.end(),
                     [](const HotExpert& a, const HotExpert& b) { return a.uses > b.uses; });
    return merged;
}

}  // namespace colibri
