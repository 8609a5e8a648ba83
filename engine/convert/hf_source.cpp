// SPDX-License-Identifier: Apache-2.0
#include "engine/convert/hf_source.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>
#include <unordered_set>

#include "engine/base/file.h"
#include "engine/convert/flat.h"
#include "engine/convert/hf_config.h"
#include "engine/convert/safetensors.h"
#include "engine/model/router_table.h"

namespace colibri {

namespace fs = std::filesystem;

namespace {

using Json = nlohmann::json;

constexpr const char* kIndexName = "model.safetensors.index.json";
constexpr int64_t kSmallFile = 64 << 20;

bool isFile(const fs::path& path) {
    std::error_code error;
    return fs::is_regular_file(path, error);
}

Result<Json> readJsonFile(const fs::path& path) {
    Result<std::string> text = readTextFile(path, kSmallFile);
    if (!text) return text.status();
    return parseJson(*text, path.string());
}

// "model-00002-of-00005.safetensors": its number and the count, else 0 and 0.
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

// Tensor -> file, as the index says. Names must be plain.
Result<std::vector<std::pair<std::string, std::string>>> readIndex(const fs::path& path) {
    Result<Json> json = readJsonFile(path);
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
    for (size_t i = 0; i < names.size() && i < 20; ++i) list += "\n  " + names[i];
    return Status(
        Code::BadInput,
        folder.string() + ": " + std::to_string(names.size()) + " weight files are missing" + list,
        "The download is incomplete");
}

// Weight files of a folder without an index: one model.safetensors, a complete set of shards, or
// every .safetensors there is.
Result<std::vector<std::string>> findWeightFiles(const fs::path& folder) {
    if (isFile(folder / "model.safetensors")) return std::vector<std::string>{"model.safetensors"};
    std::error_code error;
    std::vector<std::string> shards, others;
    bool pickles = false;
    int count = 0;
    for (fs::directory_iterator it(folder, error), end; !error && it != end; it.increment(error)) {
        std::string name = it->path().filename().string();
        if (it->path().extension() == ".bin" || it->path().extension() == ".pth") pickles = true;
        if (it->path().extension() != ".safetensors") continue;
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
    if (others.empty()) {
        return pickles ? Status(Code::Unsupported,
                                folder.string() + ": weights in PyTorch .bin files are not read",
                                "Use a checkpoint in safetensors form")
                       : Status(Code::BadInput, folder.string() + ": no .safetensors file here",
                                "A checkpoint is a folder with config.json and .safetensors");
    }
    return others;
}

Status addIndexed(const fs::path& folder, Checkpoint& checkpoint) {
    auto index = readIndex(folder / kIndexName);
    if (!index) return index.status();
    std::set<std::string> names;
    for (auto& [tensor, file] : *index) names.insert(file);
    std::vector<std::string> missing;
    for (const std::string& name : names) {
        if (!isFile(folder / name)) missing.push_back(name);
    }
    if (!missing.empty()) return missingFiles(folder, missing);
    for (const std::string& name : names) {
        COLIBRI_TRY(addSafetensorsFile(folder / name, checkpoint));
    }
    for (auto& [tensor, file] : *index) {
        const SourceTensor* t = checkpoint.find(tensor);
        if (!t || checkpoint.files()[size_t(t->file)].path.filename() != file) {
            return Status(Code::BadInput, (folder / kIndexName).string() + ": tensor \"" + tensor +
                                              "\" is not in " + file);
        }
    }
    return {};
}

// Also a link that leads nowhere: reading it then says so.
bool isThere(const fs::path& path) {
    std::error_code error;
    return fs::exists(fs::symlink_status(path, error));
}

// The template: its own file, else the key of tokenizer_config.json (a text, or a list of named
// ones of which "default" counts).
Status addTextFiles(const fs::path& folder, OpenedSource& out) {
    if (isThere(folder / "tokenizer.json")) {
        Result<std::string> text = readTextFile(folder / "tokenizer.json", kSmallFile);
        if (!text) return text.status();
        out.extraFiles.emplace_back("tokenizer.json", std::move(*text));
    } else {
        out.notes.push_back("The source has no tokenizer.json");
    }
    if (isThere(folder / "chat_template.jinja")) {
        Result<std::string> text = readTextFile(folder / "chat_template.jinja", kSmallFile);
        if (!text) return text.status();
        out.extraFiles.emplace_back("chat_template.jinja", std::move(*text));
        return {};
    }
    if (!isFile(folder / "tokenizer_config.json")) return {};
    Result<Json> json = readJsonFile(folder / "tokenizer_config.json");
    if (!json) return json.status();
    if (!json->is_object() || !json->contains("chat_template")) return {};
    const Json& entry = (*json)["chat_template"];
    if (entry.is_string()) {
        out.extraFiles.emplace_back("chat_template.jinja", entry.get<std::string>());
    } else if (entry.is_array()) {
        for (const Json& t : entry) {
            if (t.is_object() && t.value("name", Json()) == "default" &&
                t.value("template", Json()).is_string()) {
                out.extraFiles.emplace_back("chat_template.jinja",
                                            t["template"].get<std::string>());
            }
        }
    }
    return {};
}

// The type of the weights as config.json says it, in either spelling of the key.
std::string torchType(const Json& config) {
    for (const char* key : {"torch_dtype", "dtype"}) {
        if (config.is_object() && config.value(key, Json()).is_string()) return config[key];
    }
    return {};
}

// The name of a tensor of the language model inside a larger one; empty for the others.
std::string languageName(const std::string& name) {
    if (name.starts_with("model.language_model.")) return "model." + name.substr(21);
    if (name.starts_with("language_model.")) return name.substr(15);
    return name.starts_with("lm_head.") ? name : "";
}

}  // namespace

Result<OpenedSource> openHfSource(const fs::path& path) {
    std::error_code error;
    bool single = !fs::is_directory(path, error);
    fs::path folder = single ? path.parent_path() : path;
    if (folder.empty()) folder = ".";
    if (single && shardNumbers(path.filename().string()).second > 1) single = false;
    if (!isFile(folder / "config.json")) {
        return Status(Code::BadInput, folder.string() + ": no config.json here",
                      "A checkpoint is a folder with config.json and .safetensors");
    }
    Result<std::string> configText = readTextFile(folder / "config.json", kSmallFile);
    if (!configText) return configText.status();
    Result<Json> configJson = parseJson(*configText, (folder / "config.json").string());
    if (!configJson) return configJson.status();
    Json generation;
    std::string generationText;
    if (isFile(folder / "generation_config.json")) {
        Result<std::string> text = readTextFile(folder / "generation_config.json", kSmallFile);
        if (!text) return text.status();
        generationText = std::move(*text);
        Result<Json> json =
            parseJson(generationText, (folder / "generation_config.json").string());
        if (!json) return json.status();
        generation = std::move(*json);
    }
    Result<HfConfig> config =
        readHfConfig(*configJson, generation, (folder / "config.json").string());
    if (!config) return config.status();

    OpenedSource out;
    out.config = config->config;
    out.config.name = fs::absolute(folder, error).lexically_normal().filename().string();
    if (out.config.name.empty()) {
        out.config.name = fs::absolute(folder, error).lexically_normal().parent_path().filename();
    }
    out.naming = &hfNaming();
    out.stack = config->family->stack;
    out.fp8Block = config->fp8Block;
    out.tiedKnown = config->tiedKnown;
    out.extraLayers = config->extraLayers;
    out.kind = "Hugging Face safetensors";
    if (single) {
        COLIBRI_TRY(addSafetensorsFile(path, out.checkpoint));
    } else if (isFile(folder / kIndexName)) {
        COLIBRI_TRY(addIndexed(folder, out.checkpoint));
    } else {
        Result<std::vector<std::string>> names = findWeightFiles(folder);
        if (!names) return names.status();
        for (const std::string& name : *names) {
            COLIBRI_TRY(addSafetensorsFile(folder / name, out.checkpoint));
        }
    }
    if (config->nested) out.checkpoint.rename(languageName);
    if (!single && isFlatFolder(folder)) {
        out.kind = "flat folder";
        COLIBRI_TRY(addFlatExperts(folder, out.config, *out.naming, torchType(*configJson),
                                   out.checkpoint));
    }
    if (!single && isFile(folder / kRouterTableFile)) out.routerTable = folder / kRouterTableFile;
    COLIBRI_TRY(addTextFiles(folder, out));
    Result<std::string> fingerprint = out.checkpoint.fingerprint(*configText + generation.dump());
    if (!fingerprint) return fingerprint.status();
    out.fingerprint = *fingerprint;
    out.configText = std::move(*configText);
    out.generationText = std::move(generationText);
    return out;
}

}  // namespace colibri
