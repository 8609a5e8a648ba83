// SPDX-License-Identifier: Apache-2.0
#include "engine/convert/flat/flat.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "engine/base/file.h"
#include "engine/base/json_fields.h"
#include "engine/model/layout.h"

namespace colibri {

namespace fs = std::filesystem;

namespace {

constexpr int kFlatSchema = 1;
constexpr int64_t kSmallJson = 1 << 20;

Result<DType> expertType(const fs::path& folder, const std::string& configType) {
    const fs::path path = folder / kFlatFile;
    std::error_code ignored;
    if (!fs::exists(path, ignored)) {
        return configType == "bfloat16" ? DType::BF16 : DType::F16;
    }
    Result<std::string> text = readTextFile(path, kSmallJson);
    if (!text.ok()) return text.status();
    Result<nlohmann::json> json = parseJson(*text, path.string());
    if (!json.ok()) return json.status();
    Fields fields(*json, path.string());
    const int64_t schema = fields.integer("schema", 1, INT32_MAX);
    const std::string name = fields.text("expert_dtype");
    COLIBRI_TRY(fields.status());
    if (schema > kFlatSchema) {
        return Status(Code::Unsupported, path.string() + ": schema " + std::to_string(schema) +
                                             ", this program reads " + std::to_string(kFlatSchema));
    }
    const std::optional<DType> type = dtypeFromName(name);
    if (type != DType::F16 && type != DType::BF16) {
        return Status(Code::BadInput,
                      path.string() + ": expert_dtype is \"" + name + "\", expected f16 or bf16");
    }
    return *type;
}

}  // namespace

std::string flatFileName(int64_t expert, int64_t layer, size_t which) {
    constexpr const char* kMatrices[] = {"w1", "w3", "w2"};
    return "expert_" + std::to_string(expert) + "_layer_" + std::to_string(layer) + "_" +
           kMatrices[which] + ".bin";
}

std::string flatDescription(DType type) {
    return "{\"schema\": " + std::to_string(kFlatSchema) + ", \"expert_dtype\": \"" +
           std::string(dtypeName(type)) + "\"}\n";
}

bool isFlatFolder(const fs::path& path) {
    std::error_code error;
    if (!fs::is_regular_file(path / "config.json", error)) return false;
    if (fs::is_regular_file(path / kFlatFile, error)) return true;
    // The first layers of a model may be dense, so several are tried.
    for (int64_t layer = 0; layer < 8; ++layer) {
        if (fs::is_regular_file(path / flatFileName(0, layer, 0), error)) return true;
    }
    return false;
}

Status addFlatExperts(const fs::path& folder, const ModelConfig& config, const Naming& naming,
                      const std::string& configType, Checkpoint& checkpoint) {
    Result<DType> type = expertType(folder, configType);
    if (!type.ok()) return type.status();
    const char* const names[] = {naming.experts.w1, naming.experts.w3, naming.experts.w2};
    std::string faults;
    size_t count = 0;
    const auto fault = [&](const std::string& line) {
        if (++count <= kListed) faults += "\n  " + line;
    };
    std::error_code error;
    for (int64_t layer = 0; layer < config.numLayers; ++layer) {
        if (!config.moeLayer[size_t(layer)]) continue;
        for (int64_t e = 0; e < config.numExperts; ++e) {
            for (size_t which = 0; which < 3; ++which) {
                const std::string file = flatFileName(e, layer, which);
                SourceTensor t;
                t.name = fillName(splitAlternatives(names[which]).front(), layer, e);
                t.typeName = dtypeName(*type);
                t.dtype = *type;
                t.shape = which == 2 ? std::vector<int64_t>{config.hiddenSize, config.expertSize}
                                     : std::vector<int64_t>{config.expertSize, config.hiddenSize};
                t.bytes = t.elements() * 2;
                if (!fs::exists(folder / file, error)) {
                    fault(file + " is missing");
                    continue;
                }
                Result<int> index = checkpoint.addFile(folder / file);
                if (!index.ok()) return index.status();
                const int64_t bytes = checkpoint.files()[size_t(*index)].bytes;
                if (bytes != t.bytes) {
                    fault(file + " has " + std::to_string(bytes) + " bytes, expected " +
                          std::to_string(t.bytes) + " (" + shapeText(t.shape) + " of " +
                          t.typeName + ")");
                    continue;
                }
                t.file = *index;
                COLIBRI_TRY(checkpoint.addTensor(std::move(t)));
            }
        }
    }
    if (count == 0) return {};
    if (count > kListed) faults += "\n  and " + std::to_string(count - kListed) + " more";
    return Status(Code::BadInput,
                  folder.string() + ": the expert files do not match config.json" + faults);
}

}  // namespace colibri
