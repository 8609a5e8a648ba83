// SPDX-License-Identifier: Apache-2.0
#include "engine/knobs/knob_config.h"

#include <nlohmann/json.hpp>
#include <optional>

#include "engine/base/file.h"
#include "engine/base/json_reader.h"

namespace colibri {

namespace {

constexpr int kConfigSchema = 1;
constexpr size_t kMostConfig = 64 << 10;  // a file that names every knob has 2 kB
// An invalid value is written into its message, by recursion into nested ones.
constexpr JsonRules kConfigJson{.maxDepth = 8};

Status badConfig(const std::string& what, const std::string& hint = {}) {
    return Status(Code::BadInput, "config: " + what, hint);
}

Result<nlohmann::json> parseConfig(std::string_view text) {
    if (text.size() > kMostConfig) {
        return badConfig(std::to_string(text.size()) +
                         " bytes are too many for a knob configuration");
    }
    JsonFault fault;
    std::optional<nlohmann::json> config = readJson(text, kConfigJson, fault);
    if (config) return std::move(*config);
    switch (fault.kind) {
        case JsonFault::Kind::TooDeep:
            return badConfig("nested too deeply");
        case JsonFault::Kind::DuplicateKey:
            return badConfig("duplicate key \"" + fault.key + "\"", "Keep one");
        case JsonFault::Kind::NotJson:
        case JsonFault::Kind::NonFinite:
            break;
    }
    return badConfig("not JSON at byte " + std::to_string(fault.byte));
}

Status checkKeys(const nlohmann::json& config) {
    if (!config.is_object()) return badConfig("the file does not contain a JSON object");
    for (const auto& [key, value] : config.items()) {
        if (key != "schema" && key != "knobs" && key != "comment" && key != "model" &&
            key != "machine") {
            return badConfig("unknown key \"" + key + "\"",
                             "Known keys: schema, knobs, comment, model, machine");
        }
    }
    const auto schema = config.find("schema");
    if (schema == config.end() || !schema->is_number_integer()) {
        return badConfig("\"schema\" is missing or not a whole number", "Add \"schema\": 1");
    }
    if (*schema != kConfigSchema) {
        return Status(Code::Unsupported, "config: schema " + schema->dump() +
                                             ", this program reads " +
                                             std::to_string(kConfigSchema));
    }
    if (!config.contains("knobs") || !config["knobs"].is_object()) {
        return badConfig("\"knobs\" is missing or not an object");
    }
    return {};
}

}  // namespace

Result<KnobValues> knobsFromJson(std::string_view text, std::string* model) {
    const Result<nlohmann::json> parsed = parseConfig(text);
    if (!parsed.ok()) return parsed.status();
    const nlohmann::json& config = *parsed;
    COLIBRI_TRY(checkKeys(config));
    KnobValues values;
    for (const auto& [key, value] : config["knobs"].items()) {
        const KnobRow* row = findKnob(key);
        if (!row) return badConfig("unknown knob \"" + key + "\"");
        if (!value.is_string() && !value.is_number_integer()) {
            return badConfig("knobs." + key + ": " + value.dump() +
                             " is neither a number nor a choice");
        }
        const auto knob =
            parseKnobValue(*row, value.is_string() ? value.get<std::string>() : value.dump(),
                           {row->min, row->max, row->defaultValue});
        if (!knob) return badConfig("knobs." + knob.status().message(), knob.status().hint());
        values[size_t(row->id)] = *knob;
    }
    if (model) {
        const auto name = config.find("model");
        *model = name != config.end() && name->is_string() ? name->get<std::string>() : "";
    }
    return values;
}

Result<KnobValues> knobsFromFile(const std::filesystem::path& path, std::string* model) {
    const Result<std::string> text = readTextFile(path, int64_t(kMostConfig));
    if (!text.ok()) return text.status();
    Result<KnobValues> values = knobsFromJson(*text, model);
    if (!values.ok()) return values.status().in(path.string());
    return values;
}

std::string knobsToJson(const KnobValues& values, std::string_view model,
                        std::string_view machine) {
    nlohmann::ordered_json config;
    config["schema"] = kConfigSchema;
    if (!model.empty()) config["model"] = model;
    if (!machine.empty()) config["machine"] = machine;
    auto& knobs = config["knobs"] = nlohmann::ordered_json::object();
    for (const KnobRow& row : knobTable()) {
        const auto& value = values[size_t(row.id)];
        if (!value) continue;
        if (row.choices.empty()) {
            knobs[row.name] = *value;
        } else {
            knobs[row.name] = knobValueText(row, *value);
        }
    }
    return config.dump(2) + "\n";
}

}  // namespace colibri
