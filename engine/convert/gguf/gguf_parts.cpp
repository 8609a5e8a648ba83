// SPDX-License-Identifier: Apache-2.0
#include "engine/convert/gguf/gguf_parts.h"

#include <algorithm>
#include <cstdio>
#include <iterator>

#include "engine/base/file.h"
#include "engine/convert/source/foreign.h"

namespace colibri {

namespace {

namespace fs = std::filesystem;

constexpr int64_t kMostParts = 9999;

// "-00002-of-00005"; numbers start at 1.
std::string partSuffix(int64_t number, int64_t count) {
    char text[48];
    std::snprintf(text, sizeof text, "-%05lld-of-%05lld", static_cast<long long>(number),
                  static_cast<long long>(count));
    return text;
}

int64_t splitCount(const GgufHeader& header) {
    return header.integer("split.count").value_or(1);
}

Result<GgufHeader> readPart(const fs::path& path, Checkpoint& checkpoint) {
    COLIBRI_TRY(checkContent(path, Expected::Gguf));
    Result<int> index = checkpoint.addFile(path);
    if (!index) return index.status();
    Result<File> file = File::open(path, File::Mode::Read);
    if (!file) return file.status();
    Result<GgufHeader> header = readGgufHeader(*file, checkpoint.files()[size_t(*index)].bytes);
    if (!header) return header.status();
    for (SourceTensor& t : header->tensors) t.file = *index;
    return header;
}

Status checkParts(const std::vector<fs::path>& paths) {
    std::string list;
    size_t missing = 0;
    std::error_code error;
    for (const fs::path& path : paths) {
        if (fs::exists(path, error)) continue;
        if (++missing <= kListed) list += "\n  " + path.filename().string();
    }
    if (missing == 0) return {};
    if (missing > kListed) list += "\n  and " + std::to_string(missing - kListed) + " more";
    return Status(Code::BadInput,
                  paths.front().parent_path().string() + ": " + std::to_string(missing) + " of " +
                      std::to_string(paths.size()) + " parts of the model are missing" + list,
                  "Put all parts in one folder");
}

}  // namespace

Result<GgufParts> openGgufParts(const fs::path& path, Checkpoint& checkpoint) {
    GgufParts out;
    out.name = path.stem().string();
    Checkpoint alone;  // only the given part, to find the number of parts
    Result<GgufHeader> given = readPart(path, alone);
    if (!given) return given.status();
    const int64_t count = splitCount(*given);
    if (count <= 1) {
        checkpoint = std::move(alone);
        out.header = std::move(*given);
        return out;
    }
    const std::string suffix = partSuffix(given->integer("split.no").value_or(0) + 1, count);
    if (count > kMostParts || !out.name.ends_with(suffix)) {
        return Status(Code::BadInput,
                      path.string() + ": the content is part \"" + suffix +
                          "\" of a model, but the name is not",
                      "Give the parts their original names");
    }
    out.name.resize(out.name.size() - suffix.size());
    std::vector<fs::path> paths;
    for (int64_t i = 1; i <= count; ++i) {
        paths.push_back(path.parent_path() /
                        (out.name + partSuffix(i, count) + path.extension().string()));
    }
    COLIBRI_TRY(checkParts(paths));
    for (int64_t i = 0; i < count; ++i) {
        const std::string where = paths[size_t(i)].string();
        Result<GgufHeader> part = readPart(paths[size_t(i)], checkpoint);
        if (!part) return part.status();
        if (part->integer("split.no").value_or(-1) != i || splitCount(*part) != count) {
            return Status(Code::BadInput, where + ": the content is not part " +
                                              std::to_string(i + 1) + " of " +
                                              std::to_string(count));
        }
        if (i == 0) {
            out.header = std::move(*part);
        } else {
            std::move(part->tensors.begin(), part->tensors.end(),
                      std::back_inserter(out.header.tensors));
        }
    }
    const auto tensors = int64_t(out.header.tensors.size());
    const int64_t expected = out.header.integer("split.tensors.count").value_or(tensors);
    if (expected != tensors) {
        return Status(Code::BadInput, paths.front().string() + ": the parts contain " +
                                          std::to_string(tensors) + " tensors, expected " +
                                          std::to_string(expected));
    }
    return out;
}

}  // namespace colibri
