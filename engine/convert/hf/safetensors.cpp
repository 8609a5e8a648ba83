// SPDX-License-Identifier: Apache-2.0
#include "engine/convert/hf/safetensors.h"

#include <algorithm>
#include <cstring>

#include "engine/base/json_fields.h"
#include "engine/base/printable.h"
#include "engine/convert/source/foreign.h"

namespace colibri {

namespace {

constexpr int64_t kJsonLimit = 32 << 20;  // the largest known header is below 20 MiB

struct StoredType {
    const char* name;
    int bits;
    std::optional<DType> dtype;
};
const StoredType kStoredTypes[] = {
    {"F32", 32, DType::F32}, {"F16", 16, DType::F16}, {"BF16", 16, DType::BF16},
    {"F64", 64, {}},         {"F8_E4M3", 8, {}},      {"F8_E5M2", 8, {}},
    {"F8_E8M0", 8, {}},      {"F8_E4M3FNUZ", 8, {}},  {"F8_E5M2FNUZ", 8, {}},
    {"F6_E2M3", 6, {}},      {"F6_E3M2", 6, {}},      {"F4", 4, {}},
    {"I64", 64, {}},         {"U64", 64, {}},         {"I32", 32, {}},
    {"U32", 32, {}},         {"I16", 16, {}},         {"U16", 16, {}},
    {"I8", 8, {}},           {"U8", 8, {}},           {"BOOL", 8, {}},
    {"C64", 64, {}},
};

const StoredType* findType(const std::string& name) {
    for (const StoredType& row : kStoredTypes) {
        if (name == row.name) return &row;
    }
    return nullptr;
}

Status bad(const std::string& where, const std::string& what) {
    return Status(Code::BadInput, where + ": " + what);
}

// The length of the JSON, checked against the file size.
Result<int64_t> headerLength(std::span<const std::byte> start, int64_t fileBytes,
                             const std::string& where) {
    if (fileBytes < 8 || start.size() < 8) {
        return Status(Code::BadInput, where + ": " + std::to_string(fileBytes) +
                                          " bytes is too short for a safetensors file");
    }
    uint64_t length;
    std::memcpy(&length, start.data(), sizeof length);
    if (length > uint64_t(kJsonLimit)) {
        return bad(where, "a header of " + std::to_string(length) +
                              " bytes (at most 32 MiB); not a safetensors file, or damaged");
    }
    if (int64_t(length) > fileBytes - 8) {
        return bad(where, "the header of " + std::to_string(length) +
                              " bytes extends past the end of the file (" +
                              std::to_string(fileBytes) + " bytes); the file is truncated");
    }
    return int64_t(length);
}

Result<SourceTensor> parseEntry(const std::string& name, const nlohmann::json& json,
                                int64_t dataStart, int64_t fileBytes, const std::string& where) {
    const std::string at = where + ": tensor \"" + printable(name) + "\"";
    Fields f(json, at);
    SourceTensor t;
    t.name = name;
    t.typeName = f.text("dtype");
    const nlohmann::json* shape = f.array("shape");
    const nlohmann::json* offsets = f.array("data_offsets");
    if (!f.status().ok()) return f.status();
    const StoredType* type = findType(t.typeName);
    if (!type) return bad(at, "unknown dtype \"" + printable(t.typeName) + "\"");
    t.dtype = type->dtype;
    if (shape->size() > 8) return bad(at, "more than 8 dimensions");
    int64_t elements = 1;
    for (const nlohmann::json& d : *shape) {
        std::optional<int64_t> size = wholeNumber(d);
        if (!size || *size < 0) return bad(at, "a dimension is not a whole number");
        t.shape.push_back(*size);
        if (__builtin_mul_overflow(elements, *size, &elements) || elements > kElementLimit) {
            return bad(at, "shape " + shapeText(t.shape) + " is too large");
        }
    }
    if (offsets->size() != 2) return bad(at, "\"data_offsets\" must hold two numbers");
    std::optional<int64_t> begin = wholeNumber((*offsets)[0]), end = wholeNumber((*offsets)[1]);
    if (!begin || !end || *begin < 0 || *end < *begin) {
        return bad(at, "\"data_offsets\" is not a range");
    }
    if (*end > fileBytes - dataStart) {
        return bad(at, "its data ends at byte " + std::to_string(*end) + " of " +
                           std::to_string(fileBytes - dataStart) +
                           "; the file is truncated or damaged");
    }
    t.bytes = *end - *begin;
    t.offset = dataStart + *begin;
    if (t.bytes != (elements * type->bits + 7) / 8) {
        return bad(at, std::to_string(t.bytes) + " bytes do not match shape " + shapeText(t.shape) +
                           " of " + t.typeName);
    }
    return t;
}

// The format does not allow overlaps or gaps.
Status checkCoverage(const std::vector<SourceTensor>& tensors, int64_t dataStart, int64_t fileBytes,
                     const std::string& where) {
    std::vector<const SourceTensor*> sorted;
    for (const SourceTensor& t : tensors) sorted.push_back(&t);
    std::sort(sorted.begin(), sorted.end(), [](auto* a, auto* b) {
        return std::pair(a->offset, a->bytes) < std::pair(b->offset, b->bytes);
    });
    int64_t at = dataStart;
    for (const SourceTensor* t : sorted) {
        if (t->offset != at) {
            return bad(where, "tensor \"" + printable(t->name) + "\" " +
                                  (t->offset < at ? "overlaps another" : "leaves a gap before it") +
                                  " at byte " + std::to_string(t->offset));
        }
        at += t->bytes;
    }
    if (at != fileBytes) {
        return bad(where, std::to_string(fileBytes - at) + " bytes after the last tensor");
    }
    return {};
}

}  // namespace

Result<std::vector<SourceTensor>> parseSafetensorsHeader(std::span<const std::byte> start,
                                                         int64_t fileBytes,
                                                         const std::string& where) {
    Result<int64_t> length = headerLength(start, fileBytes, where);
    if (!length) return length.status();
    if (int64_t(start.size()) < 8 + *length) return bad(where, "the header is truncated");
    std::string_view text(reinterpret_cast<const char*>(start.data()) + 8, size_t(*length));
    Result<nlohmann::json> json = parseJson(text, where + ", header");
    if (!json) return json.status();
    if (!json->is_object()) return bad(where, "the header is not a JSON object");
    const int64_t dataStart = 8 + *length;
    std::vector<SourceTensor> tensors;
    for (auto& [name, entry] : json->items()) {
        if (name == "__metadata__") continue;
        Result<SourceTensor> t = parseEntry(name, entry, dataStart, fileBytes, where);
        if (!t) return t.status();
        tensors.push_back(std::move(*t));
    }
    COLIBRI_TRY(checkCoverage(tensors, dataStart, fileBytes, where));
    return tensors;
}

Status addSafetensorsFile(const std::filesystem::path& path, Checkpoint& checkpoint) {
    Result<int> index = checkpoint.addFile(path);
    if (!index) return index.status();
    const int64_t fileBytes = checkpoint.files()[size_t(*index)].bytes;
    std::vector<std::byte> start(size_t(std::min<int64_t>(fileBytes, kForeignBytes)));
    COLIBRI_TRY(checkpoint.read(*index, 0, start));
    COLIBRI_TRY(checkContent({reinterpret_cast<const char*>(start.data()), start.size()}, fileBytes,
                             Expected::Safetensors, path));
    Result<int64_t> length = headerLength(start, fileBytes, path.string());
    if (!length) return length.status();
    start.resize(size_t(8 + *length));
    COLIBRI_TRY(checkpoint.read(*index, 0, start));
    auto tensors = parseSafetensorsHeader(start, fileBytes, path.string());
    if (!tensors) return tensors.status();
    for (SourceTensor& t : *tensors) {
        t.file = *index;
        COLIBRI_TRY(checkpoint.addTensor(std::move(t)));
    }
    return {};
}

}  // namespace colibri
