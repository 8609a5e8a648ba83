// SPDX-License-Identifier: Apache-2.0
#include "engine/convert/hf/hf_source.h"

#include <nlohmann/json.hpp>
#include <system_error>

#include "engine/base/printable.h"
#include "engine/convert/flat/flat.h"
#include "engine/convert/hf/hf_config.h"
#include "engine/convert/hf/hf_weights.h"
#include "engine/convert/source/locate.h"
#include "engine/convert/source/source_texts.h"
#include "engine/model/router_table.h"

namespace colibri {

namespace fs = std::filesystem;

namespace {

using Json = nlohmann::json;

// The weight type in config.json, in either spelling of the key.
std::string torchType(const Json& config) {
    for (const char* key : {"torch_dtype", "dtype"}) {
        if (config.is_object() && config.value(key, Json()).is_string()) return config[key];
    }
    return {};
}

// The repository's name in the Hugging Face cache, else the folder's name.
std::string nameOf(const fs::path& folder) {
    if (const std::string name = hubName(folder); !name.empty()) return printable(name);
    std::error_code error;
    const fs::path path = fs::absolute(folder, error).lexically_normal();
    return printable((path.has_filename() ? path : path.parent_path()).filename().string());
}

// The config and the generation settings, as text and parsed.
struct Configs {
    std::string text, generationText;
    Json json, generation;
};

Result<Configs> readConfigs(const fs::path& folder) {
    Configs out;
    const fs::path config = folder / "config.json", generation = folder / "generation_config.json";
    if (!isThere(config)) {
        COLIBRI_TRY(checkNoAdapter(folder));
        return Status(Code::BadInput, folder.string() + ": no config.json here",
                      "A checkpoint is a folder with config.json and .safetensors");
    }
    const auto read = [](const fs::path& path, std::string& text, Json& json) -> Status {
        Result<std::string> content = readSourceText(path);
        if (!content) return content.status();
        Result<Json> parsed = parseJson(*content, path.string());
        if (!parsed) return parsed.status();
        text = std::move(*content);
        json = std::move(*parsed);
        return {};
    };
    COLIBRI_TRY(read(config, out.text, out.json));
    if (isThere(generation)) COLIBRI_TRY(read(generation, out.generationText, out.generation));
    return out;
}

}  // namespace

Result<OpenedSource> openHfSource(const fs::path& path, const std::string& chatTemplate) {
    std::error_code error;
    const bool isFolder = fs::is_directory(path, error);
    fs::path folder = isFolder ? path : path.parent_path();
    if (folder.empty()) folder = ".";
    Result<Configs> configs = readConfigs(folder);
    if (!configs) return configs.status();
    const std::string where = (folder / "config.json").string();
    Result<HfConfig> config = readHfConfig(configs->json, configs->generation, where);
    if (!config) return config.status();

    OpenedSource out;
    out.config = config->config;
    out.config.name = nameOf(folder);
    out.naming = &hfNaming();
    out.stack = config->family->stack;
    out.fp8Block = config->fp8Block;
    out.tiedKnown = config->tiedKnown;
    out.extraLayers = config->extraLayers;
    out.kind = "Hugging Face safetensors";
    COLIBRI_TRY(addHfWeights(folder, isFolder ? fs::path() : path, out.checkpoint, out.notes));
    unifyPrefix(out.checkpoint, config->nested);
    if (isFolder && isFlatFolder(folder)) {
        out.kind = "flat folder";
        COLIBRI_TRY(addFlatExperts(folder, out.config, *out.naming, torchType(configs->json),
                                   out.checkpoint));
    }
    const fs::path table = folder / kRouterTableFile;
    if (isFolder && fs::is_regular_file(table, error)) out.routerTable = table;
    const Json inner = languageConfig(configs->json);
    COLIBRI_TRY(resolveTexts(hfTexts(folder, inner, configs->generation), chatTemplate, out));
    Result<std::string> fingerprint =
        out.checkpoint.fingerprint(configs->text + configs->generation.dump());
    if (!fingerprint) return fingerprint.status();
    out.fingerprint = *fingerprint;
    out.configText = std::move(configs->text);
    out.generationText = std::move(configs->generationText);
    return out;
}

}  // namespace colibri
