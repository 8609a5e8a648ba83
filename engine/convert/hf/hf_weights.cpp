// SPDX-License-Identifier: Apache-2.0
#include "engine/convert/hf/hf_weights.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>
#include <system_error>

#include "engine/base/file.h"
#include "engine/base/json_fields.h"
#include "engine/base/printable.h"
#include "engine/convert/hf/safetensors.h"
#include "engine/convert/source/foreign.h"
#include "engine/convert/source/source_texts.h"

namespace colibri {

namespace fs = std::filesystem;

namespace {

using Json = nlohmann::json;

constexpr const char* kIndexName = "model.safetensors.index.json";
constexpr const char* kWholeName = "model.safetensors";
constexpr const char* kAdapterConfig = "adapter_config.json";

bool isFile(const fs::path& path) {
    std::error_code error;
    return fs::is_regular_file(path, error);
}

// Number and count of "model-00002-of-00005.safetensors"; 0 and 0 for other names.
std::pair<int, int> shardNumbers(const std::string& name) {
    constexpr std::string_view kEnd = ".safetensors";
    if (!name.ends_with(kEnd)) return {0, 0};
    std::string stem = name.substr(0, name.size() - kEnd.size());
    size_t of = stem.rfind("-of-");
    size_t dash = of == std::string::npos || of == 0 ? std::string::npos : stem.rfind('-', of - 1);
    if (dash == std::string::npos) return {0, 0};
    std::string number = stem.substr(dash + 1, of - dash - 1), count = stem.substr(of + 4);
    auto digits = [](const std::string& s) {
        return !s.empty() && s.size() <= 6 &&
               std::all_of(s.begin(), s.end(), [](char c) { return c >= '0' && c <= '9'; });
    };
    if (!digits(number) || !digits(count)) return {0, 0};
    return {std::stoi(number), std::stoi(count)};
}

// The index: tensor -> file. File names must not contain a path.
Result<std::vector<std::pair<std::string, std::string>>> readIndex(const fs::path& path) {
    Result<Json> json = readSourceJson(path);
    if (!json) return json.status();
    Fields f(*json, path.string());
    const Json* map = f.find("weight_map");
    if (!map || !map->is_object()) {
        return Status(Code::BadInput, path.string() + ": no \"weight_map\"");
    }
    std::vector<std::pair<std::string, std::string>> out;
    for (auto& [tensor, file] : map->items()) {
        std::string name = file.is_string() ? file.get<std::string>() : "";
        if (name.empty() || name.find('/') != std::string::npos || name == "..") {
            return Status(Code::BadInput, path.string() + ": the file of \"" + tensor +
                                              "\" is not a plain file name");
        }
        out.emplace_back(tensor, name);
    }
    return out;
}

Status missingFiles(const fs::path& folder, const std::vector<std::string>& names) {
    std::string list;
    for (size_t i = 0; i < names.size() && i < kListed; ++i) list += "\n  " + printable(names[i]);
    return Status(
        Code::BadInput,
        folder.string() + ": " + std::to_string(names.size()) + " weight files are missing" + list,
        "The download is incomplete");
}

// Weight files of a folder without an index: one model.safetensors, a complete set of shards, or
// all .safetensors files.
Result<std::vector<std::string>> findWeightFiles(const fs::path& folder) {
    if (isFile(folder / kWholeName)) return std::vector<std::string>{kWholeName};
    std::error_code error;
    std::vector<std::string> shards, others;
    fs::path pickle;
    int count = 0;
    for (fs::directory_iterator it(folder, error), end; !error && it != end; it.increment(error)) {
        std::string name = it->path().filename().string();
        if (isPickle(name) && (pickle.empty() || name < pickle.filename())) pickle = it->path();
        if (it->path().extension() != ".safetensors" || name.starts_with("adapter_")) continue;
        auto [number, of] = shardNumbers(name);
        (of > 0 ? shards : others).push_back(name);
        if (of > 0) count = std::max(count, of);
    }
    if (error) return systemError("cannot read", folder, error.value());
    std::sort(shards.begin(), shards.end());
    std::sort(others.begin(), others.end());
    if (!shards.empty()) {
        if (int(shards.size()) < count) {
            std::set<int> there;
            for (const std::string& name : shards) there.insert(shardNumbers(name).first);
            std::vector<std::string> missing;
            for (int i = 1; i <= count; ++i) {
                if (!there.count(i)) {
                    missing.push_back("shard " + std::to_string(i) + " of " +
                                      std::to_string(count));
                }
            }
            if (!missing.empty()) return missingFiles(folder, missing);
        }
        return shards;
    }
    if (!others.empty()) return others;
    COLIBRI_TRY(checkNoAdapter(folder));
    if (!pickle.empty()) return pickleError(pickle);
    return Status(Code::BadInput, folder.string() + ": no .safetensors file here",
                  "A checkpoint is a folder with config.json and .safetensors");
}

Status addFiles(const fs::path& folder, const std::vector<std::string>& names,
                Checkpoint& checkpoint) {
    for (const std::string& name : names) {
        COLIBRI_TRY(addSafetensorsFile(folder / name, checkpoint));
    }
    return {};
}

// Adds the files in the index. If some are missing, uses the files in the folder, if complete.
Status addIndexed(const fs::path& folder, Checkpoint& checkpoint, std::vector<std::string>& notes) {
    const auto index = readIndex(folder / kIndexName);
    // An index that is valid JSON but lists no files of this folder is an error, not a leftover.
    if (!index && readSourceJson(folder / kIndexName).ok()) return index.status();
    std::set<std::string> names;
    std::vector<std::string> missing;
    if (index) {
        for (const auto& [tensor, file] : *index) names.insert(file);
        for (const std::string& name : names) {
            if (!isFile(folder / name)) missing.push_back(name);
        }
    }
    const bool whole = isFile(folder / kWholeName) && !names.contains(kWholeName);
    if (!index || !missing.empty() || whole) {
        const auto here = findWeightFiles(folder);
        const bool complete =
            here && (here->front() == kWholeName || shardNumbers(here->front()).second > 0);
        if (complete) {
            notes.push_back(std::string(kIndexName) + " belongs to other files and is ignored");
            return addFiles(folder, *here, checkpoint);
        }
        return index ? missingFiles(folder, missing) : index.status();
    }
    COLIBRI_TRY(addFiles(folder, {names.begin(), names.end()}, checkpoint));
    for (const auto& [tensor, file] : *index) {
        const SourceTensor* t = checkpoint.find(tensor);
        if (!t || checkpoint.files()[size_t(t->file)].path.filename() != file) {
            return Status(Code::BadInput, (folder / kIndexName).string() + ": tensor \"" +
                                              printable(tensor) + "\" is not in " +
                                              printable(file));
        }
    }
    return {};
}

// The prefix before "layers.0." and "embed_tokens.weight" of the language model.
std::string basePrefix(const Checkpoint& checkpoint) {
    constexpr std::string_view kEmbedding = "embed_tokens.weight";
    std::set<std::string> candidates;
    for (const SourceTensor& t : checkpoint.tensors()) {
        if (!t.name.ends_with(kEmbedding)) continue;
        const std::string prefix = t.name.substr(0, t.name.size() - kEmbedding.size());
        if (prefix.empty() || prefix.ends_with('.')) candidates.insert(prefix);
    }
    std::erase_if(candidates, [&](const std::string& prefix) {
        const auto& all = checkpoint.tensors();
        return std::none_of(all.begin(), all.end(), [&](const SourceTensor& t) {
            return t.name.starts_with(prefix + "layers.0.");
        });
    });
    if (candidates.empty() || candidates.contains("model.")) return "model.";
    const auto best = std::min_element(
        candidates.begin(), candidates.end(), [](const std::string& a, const std::string& b) {
            const auto rank = [](const std::string& name) {
                return std::pair(name.find("language_model") == std::string::npos, name.size());
            };
            return rank(a) < rank(b);
        });
    return *best;
}

}  // namespace

Status checkNoAdapter(const fs::path& folder) {
    if (!isThere(folder / kAdapterConfig)) return {};
    std::string base;
    if (Result<Json> json = readSourceJson(folder / kAdapterConfig); json && json->is_object()) {
        const Json name = json->value("base_model_name_or_path", Json());
        if (name.is_string()) base = printable(name.get<std::string>());
    }
    return Status(Code::Unsupported,
                  folder.string() + ": a LoRA adapter" + (base.empty() ? "" : " for " + base) +
                      ", not a whole model",
                  "Merge it into its base model first (merge_and_unload of the peft library), or "
                  "open the base model");
}

Status addHfWeights(const fs::path& folder, const fs::path& file, Checkpoint& checkpoint,
                    std::vector<std::string>& notes) {
    // One shard stands for all of them.
    if (!file.empty() && shardNumbers(file.filename().string()).second <= 1) {
        return addSafetensorsFile(file, checkpoint);
    }
    if (isThere(folder / kIndexName)) return addIndexed(folder, checkpoint, notes);
    const auto names = findWeightFiles(folder);
    return names ? addFiles(folder, *names, checkpoint) : names.status();
}

void unifyPrefix(Checkpoint& checkpoint, bool nested) {
    const std::string prefix = basePrefix(checkpoint);
    if (prefix == "model." && !nested) return;
    // "language_model." for "language_model.model.": the head has the same parent as the base
    // model.
    const std::string wrapper =
        prefix.ends_with(".model.") ? prefix.substr(0, prefix.size() - 6) : "";
    checkpoint.rename([&](const std::string& name) -> std::string {
        for (const std::string& before : {prefix, wrapper, std::string()}) {
            if (name.starts_with(before + "lm_head.")) return name.substr(before.size());
        }
        if (name.starts_with(prefix)) return "model." + name.substr(prefix.size());
        return nested ? "" : name;
    });
}

}  // namespace colibri
