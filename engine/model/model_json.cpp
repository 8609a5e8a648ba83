// SPDX-License-Identifier: Apache-2.0
#include "engine/model/model_json.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <unordered_map>
#include <utility>

#include "engine/base/json_fields.h"
#include "engine/base/printable.h"
#include "engine/model/config_json.h"
#include "engine/model/layout.h"

namespace colibri {

namespace {

using Json = nlohmann::json;
using OrderedJson = nlohmann::ordered_json;

DType dtypeOf(Fields& fields, const std::string& text) {
    std::optional<DType> type = dtypeFromName(text);
    if (!type) {
        fields.fail("weight type \"" + text + "\" is not supported by this version",
                    Code::Unsupported);
    }
    return type.value_or(DType::F32);
}

// Reads one name for all three matrices, or an array of the names for w1, w3 and w2.
ExpertTypes expertTypes(Fields& fields, const char* key) {
    const Json* value = fields.find(key);
    if (!value || !value->is_array()) return ExpertTypes::all(dtypeOf(fields, fields.text(key)));
    if (value->size() != 3) {
        fields.fail(std::string("\"") + key + "\" does not have three types");
        return {};
    }
    const auto at = [&](size_t i) {
        const Json& name = (*value)[i];
        return dtypeOf(fields, name.is_string() ? name.get<std::string>() : name.dump());
    };
    return {at(0), at(1), at(2)};
}

OrderedJson typesJson(const ExpertTypes& types) {
    const auto name = [](DType type) { return std::string(dtypeName(type)); };
    if (types.same()) return name(types.w1);
    return OrderedJson::array({name(types.w1), name(types.w3), name(types.w2)});
}

uint64_t hashField(Fields& fields, const Json& value) {
    std::optional<uint64_t> hash;
    if (value.is_string()) hash = parseHexHash(value.get_ref<const std::string&>());
    if (!hash) fields.fail("a hash is not 16 hex digits");
    return hash.value_or(0);
}

TensorInfo readTensor(Fields& parent, const Json& json, const std::string& where) {
    Fields f(json, where);
    TensorInfo t;
    t.name = f.text("name");
    t.dtype = dtypeOf(f, f.text("dtype"));
    t.packed = f.flag("packed");
    const Json* shape = f.array("shape");
    if (shape && shape->size() == 2) {
        t.rows = wholeNumber((*shape)[0]).value_or(0);
        t.cols = wholeNumber((*shape)[1]).value_or(0);
    }
    t.file = f.text("file");
    t.offset = f.integer("offset", 0, INT64_MAX);
    t.bytes = f.integer("bytes", 1, INT64_MAX);
    if (const Json* hash = f.find("xxh3"))
        t.hash = hashField(f, *hash);
    else
        f.fail("\"xxh3\" is missing");
    if (!f.status().ok()) {
        parent.fail("tensor \"" + t.name + "\": " + f.status().message(), f.status().code());
    }
    return t;
}

ExpertLayer readExpertLayer(Fields& parent, const Json& json, const std::string& where) {
    Fields f(json, where);
    ExpertLayer e;
    e.layer = f.integer("layer", 0, 1 << 20);
    e.file = f.text("file");
    e.types = expertTypes(f, "dtype");
    e.recordBytes = f.integer("record_bytes", 1, INT64_MAX);
    e.w1Offset = f.integer("w1_offset", 0, INT64_MAX);
    e.w3Offset = f.integer("w3_offset", 0, INT64_MAX);
    e.w2Offset = f.integer("w2_offset", 0, INT64_MAX);
    if (const Json* hashes = f.array("xxh3")) {
        for (const Json& h : *hashes) e.hashes.push_back(hashField(f, h));
    }
    if (!f.status().ok()) {
        parent.fail("experts of layer " + std::to_string(e.layer) + ": " + f.status().message(),
                    f.status().code());
    }
    return e;
}

Status wrong(const std::string& where, const std::string& what) {
    return Status(Code::BadInput, where + ": " + what);
}

std::string shapeText(int64_t rows, int64_t cols) {
    return "[" + std::to_string(rows) + ", " + std::to_string(cols) + "]";
}

std::string notWhole(DType type, int64_t cols) {
    return ": rows of " + std::to_string(cols) + " are not whole blocks of " +
           std::string(dtypeName(type));
}

// Checks that the table has exactly the tensors that the config requires, all within dense.bin and
// without overlaps.
Status checkTensors(const ContainerInfo& info, const std::string& where) {
    std::unordered_map<std::string, const TensorInfo*> byName;
    for (const TensorInfo& t : info.tensors) {
        if (!byName.emplace(t.name, &t).second) {
            return wrong(where, "duplicate tensor \"" + t.name + "\"");
        }
    }
    size_t known = 0;
    for (const TensorSpec& spec : denseTensors(info.config)) {
        auto it = byName.find(spec.name);
        if (it == byName.end()) {
            if (spec.optional) continue;
            return wrong(where, "tensor \"" + spec.name + "\" is missing");
        }
        ++known;
        const TensorInfo& t = *it->second;
        std::string name = "tensor \"" + t.name + "\"";
        if (t.rows != spec.rows || t.cols != spec.cols) {
            return wrong(where, name + " has shape " + shapeText(t.rows, t.cols) + ", expected " +
                                    shapeText(spec.rows, spec.cols));
        }
        if (t.packed != spec.matrix || (!spec.matrix && t.dtype != DType::F32)) {
            return wrong(where, name + " has the wrong kind of storage");
        }
        if (!fitsBlocks(t.dtype, t.cols)) return wrong(where, name + notWhole(t.dtype, t.cols));
        if (t.file != kDenseFile) return wrong(where, name + " is not in " + kDenseFile);
        if (t.bytes != tensorBytes(spec, t.dtype)) {
            return wrong(where, name + " has " + std::to_string(t.bytes) + " bytes, expected " +
                                    std::to_string(tensorBytes(spec, t.dtype)));
        }
        if (t.offset % kTensorAlign != 0 || t.offset > info.denseBytes - t.bytes) {
            return wrong(where, name + " at byte " + std::to_string(t.offset) +
                                    " is not aligned or extends past the end of " + kDenseFile);
        }
    }
    if (known != info.tensors.size()) {
        for (const TensorSpec& spec : denseTensors(info.config)) byName.erase(spec.name);
        return wrong(where, "tensor \"" + byName.begin()->first + "\" is not part of this model");
    }
    std::vector<std::pair<int64_t, int64_t>> spans;
    for (const TensorInfo& t : info.tensors) spans.emplace_back(t.offset, t.offset + t.bytes);
    std::sort(spans.begin(), spans.end());
    for (size_t i = 1; i < spans.size(); ++i) {
        if (spans[i].first < spans[i - 1].second) {
            return wrong(where, "two tensors overlap at byte " + std::to_string(spans[i].first) +
                                    " of " + kDenseFile);
        }
    }
    return {};
}

Status checkExperts(const ContainerInfo& info, const std::string& where) {
    const ModelConfig& c = info.config;
    if (int64_t(info.expertLayers.size()) != c.moeLayerCount()) {
        return wrong(where, std::to_string(info.expertLayers.size()) +
                                " layers of experts are listed, expected " +
                                std::to_string(c.moeLayerCount()));
    }
    size_t next = 0;
    for (int64_t layer = 0; layer < c.numLayers; ++layer) {
        if (!c.moeLayer[size_t(layer)]) continue;
        const ExpertLayer& e = info.expertLayers[next++];
        std::string name = "experts of layer " + std::to_string(layer);
        if (e.layer != layer) return wrong(where, name + " are missing or out of order");
        for (const auto& [type, cols] :
             {std::pair{e.types.w1, c.hiddenSize}, std::pair{e.types.w3, c.hiddenSize},
              std::pair{e.types.w2, c.expertSize}}) {
            if (!fitsBlocks(type, cols)) return wrong(where, name + notWhole(type, cols));
        }
        if (isQuantised(e.types.w1) != isQuantised(e.types.w3)) {
            return wrong(where, name + ": only one of w1 and w3 is quantised");
        }
        ExpertLayer want = expertLayout(c, layer, e.types);
        if (e.file != want.file) {
            return wrong(where, name + " are in \"" + e.file + "\", expected " + want.file);
        }
        if (e.recordBytes != want.recordBytes || e.w1Offset != want.w1Offset ||
            e.w3Offset != want.w3Offset || e.w2Offset != want.w2Offset) {
            return wrong(where, name + " have records of " + std::to_string(e.recordBytes) +
                                    " bytes, or offsets, that do not fit the sizes (" +
                                    std::to_string(want.recordBytes) + " bytes)");
        }
        if (int64_t(e.hashes.size()) != c.numExperts) {
            return wrong(where, name + ": " + std::to_string(e.hashes.size()) +
                                    " hashes, expected " + std::to_string(c.numExperts));
        }
    }
    return {};
}

OrderedJson headJson(const ContainerInfo& info) {
    OrderedJson j;
    j["schema"] = kContainerSchema;
    writeConfig(j, info.config);
    j["source"] = info.source;
    j["fingerprint"] = info.fingerprint;
    j["dense_bytes"] = info.denseBytes;
    return j;
}

}  // namespace

Result<ContainerInfo> parseModelJson(std::string_view text, const std::string& where) {
    Result<Json> json = parseJson(text, where);
    if (!json) return json.status();
    Fields f(*json, where);
    int64_t schema = f.integer("schema", 1, INT64_MAX);
    if (!f.status().ok()) return f.status();
    if (schema > kContainerSchema) {
        return Status(Code::Unsupported,
                      where + ": container schema " + std::to_string(schema) +
                          ", this program reads up to " + std::to_string(kContainerSchema),
                      "Convert the model again, or use a newer version");
    }
    ContainerInfo info;
    readConfig(f, info.config);
    info.source = printable(f.text("source", ""));
    info.fingerprint = printable(f.text("fingerprint", ""));
    info.denseBytes = f.integer("dense_bytes", 1, INT64_MAX);
    if (!f.status().ok()) return f.status();
    if (Status s = checkConfig(info.config); !s.ok()) return s.in(where);
    if (const Json* tensors = f.array("tensors")) {
        for (const Json& t : *tensors) info.tensors.push_back(readTensor(f, t, "tensor table"));
    }
    if (const Json* layers = f.array("experts")) {
        for (const Json& e : *layers) {
            info.expertLayers.push_back(readExpertLayer(f, e, "expert table"));
        }
    }
    if (!f.status().ok()) return f.status();
    COLIBRI_TRY(checkTensors(info, where));
    COLIBRI_TRY(checkExperts(info, where));
    info.updateExpertType();
    for (const ExpertLayer& e : info.expertLayers) {
        info.expertBytes += e.recordBytes * info.config.numExperts;
    }
    return info;
}

std::string writeModelJson(const ContainerInfo& info) {
    std::string out = headJson(info).dump(1, ' ', false, Json::error_handler_t::replace);
    out.pop_back();  // "}" : the tables follow, one entry per line
    while (!out.empty() && (out.back() == '\n' || out.back() == ' ')) out.pop_back();
    out += ",\n \"tensors\": [";
    const char* comma = "\n  ";
    for (const TensorInfo& t : info.tensors) {
        OrderedJson j;
        j["name"] = t.name;
        j["dtype"] = std::string(dtypeName(t.dtype));
        j["packed"] = t.packed;
        j["shape"] = {t.rows, t.cols};
        j["file"] = t.file;
        j["offset"] = t.offset;
        j["bytes"] = t.bytes;
        j["xxh3"] = hexHash(t.hash);
        out += comma + j.dump(-1, ' ', false, Json::error_handler_t::replace);
        comma = ",\n  ";
    }
    out += "\n ],\n \"experts\": [";
    comma = "\n  ";
    for (const ExpertLayer& e : info.expertLayers) {
        OrderedJson j;
        j["layer"] = e.layer;
        j["file"] = e.file;
        j["dtype"] = typesJson(e.types);
        j["record_bytes"] = e.recordBytes;
        j["w1_offset"] = e.w1Offset;
        j["w3_offset"] = e.w3Offset;
        j["w2_offset"] = e.w2Offset;
        OrderedJson hashes = OrderedJson::array();
        for (uint64_t h : e.hashes) hashes.push_back(hexHash(h));
        j["xxh3"] = hashes;
        out += comma + j.dump(-1, ' ', false, Json::error_handler_t::replace);
        comma = ",\n  ";
    }
    out += "\n ]\n}";
    return out;
}

}  // namespace colibri
