// SPDX-License-Identifier: Apache-2.0
#include "engine/model/container.h"

#include <algorithm>
#include <system_error>

#include "engine/base/file.h"
#include "engine/base/hasher.h"
#include "engine/base/printable.h"
#include "engine/base/progress_gate.h"
#include "engine/base/readable.h"
#include "engine/model/layout.h"
#include "engine/model/model_json.h"
#include "kernels/packed.h"

namespace colibri {

namespace {

// Size of one read, and interval of checks for a cancellation.
constexpr int64_t kChunkBytes = 4 << 20;
constexpr int64_t kModelJsonLimit = 256 << 20;
constexpr size_t kListedFaults = 20;

Status checkSize(const std::filesystem::path& file, int64_t expected) {
    std::error_code error;
    auto size = std::filesystem::file_size(file, error);
    if (error) {
        COLIBRI_TRY(checkReadable(file.parent_path()));
        COLIBRI_TRY(checkReadable(file));
        return Status(Code::BadInput, printable(file.string()) + ": " + error.message(),
                      "The container is incomplete; convert the model again");
    }
    if (int64_t(size) != expected) {
        return Status(Code::BadInput,
                      file.string() + ": " + std::to_string(size) + " bytes, expected " +
                          std::to_string(expected),
                      "The file is truncated or damaged; convert the model again");
    }
    return {};
}

// Hashes ranges of files, with progress over all of them.
class Verifier {
public:
    Verifier(uint64_t total, const ProgressFn& progress, const CancelFlag* cancel)
        : m_gate(progress), m_cancel(cancel), m_buffer(size_t(kChunkBytes)), m_total(total) {}

    Status range(const File& file, int64_t offset, int64_t bytes, uint64_t expected,
                 const std::string& what) {
        m_hasher.reset();
        for (int64_t done = 0; done < bytes;) {
            if (cancelled(m_cancel)) {
                return Status(Code::Cancelled, "Verification was cancelled");
            }
            int64_t n = std::min(kChunkBytes, bytes - done);
            COLIBRI_TRY(file.readAt(offset + done, {m_buffer.data(), size_t(n)}));
            m_hasher.update(m_buffer.data(), size_t(n));
            done += n;
            m_done += uint64_t(n);
            m_gate.report(m_stage, m_done, m_total);
        }
        if (m_hasher.digest() != expected && ++m_faults <= kListedFaults) {
            m_list += "\n  " + what;
        }
        return {};
    }

    void stage(std::string text) { m_stage = std::move(text); }

    Status result(const std::filesystem::path& dir) const {
        if (m_faults == 0) return {};
        std::string list = m_list;
        if (m_faults > kListedFaults) {
            list += "\n  and " + std::to_string(m_faults - kListedFaults) + " more";
        }
        return Status(Code::BadInput, dir.string() + ": checksums do not match in" + list);
    }

private:
    ProgressGate m_gate;
    const CancelFlag* m_cancel;
    std::vector<std::byte> m_buffer;
    Hasher m_hasher;
    std::string m_stage, m_list;
    uint64_t m_done = 0, m_total = 0;
    size_t m_faults = 0;
};

}  // namespace

const TensorInfo* ContainerInfo::find(const std::string& name) const {
    for (const TensorInfo& t : tensors) {
        if (t.name == name) return &t;
    }
    return nullptr;
}

int64_t ContainerInfo::expertRecordBytes() const {
    int64_t bytes = 0;
    for (const ExpertLayer& e : expertLayers) bytes = std::max(bytes, e.recordBytes);
    return bytes;
}

int64_t ContainerInfo::parameterCount() const {
    int64_t count =
        config.moeLayerCount() * config.numExperts * 3 * config.hiddenSize * config.expertSize;
    for (const TensorInfo& t : tensors) count += t.rows * t.cols;
    return count;
}

int64_t ContainerInfo::activeParameterCount() const {
    int64_t idle = config.moeLayerCount() * (config.numExperts - config.topK) * 3 *
                   config.hiddenSize * config.expertSize;
    return parameterCount() - idle;
}

ContainerInfo::TypeBytes ContainerInfo::denseTypeBytes() const {
    TypeBytes bytes{};
    for (const TensorInfo& t : tensors) {
        if (t.packed) bytes[size_t(t.dtype)] += t.bytes;
    }
    return bytes;
}

ContainerInfo::TypeBytes ContainerInfo::expertTypeBytes() const {
    TypeBytes bytes{};
    for (const ExpertLayer& e : expertLayers) {
        const int64_t in = config.hiddenSize, out = config.expertSize;
        bytes[size_t(e.types.w1)] += packedBytes(e.types.w1, out, in);
        bytes[size_t(e.types.w3)] += packedBytes(e.types.w3, out, in);
        bytes[size_t(e.types.w2)] += packedBytes(e.types.w2, in, out);
    }
    return bytes;
}

namespace {

// The types in use, the one with the most bytes first.
template <typename Bytes>
std::vector<DType> byBytes(const Bytes& bytes) {
    std::vector<DType> types;
    for (int i = 0; i < kDTypeCount; ++i) {
        if (bytes[size_t(i)] > 0) types.push_back(DType(i));
    }
    std::stable_sort(types.begin(), types.end(),
                     [&](DType a, DType b) { return bytes[size_t(a)] > bytes[size_t(b)]; });
    return types;
}

std::string namesOf(const std::vector<DType>& types) {
    std::string out;
    for (DType type : types) out += (out.empty() ? "" : ", ") + std::string(dtypeName(type));
    return out;
}

}  // namespace

void ContainerInfo::updateExpertType() {
    const std::vector<DType> expert = byBytes(expertTypeBytes());
    expertType = expert.empty() ? DType::F32 : expert.front();
}

std::string ContainerInfo::denseTypeNames() const {
    return namesOf(byBytes(denseTypeBytes()));
}
std::string ContainerInfo::expertTypeNames() const {
    return namesOf(byBytes(expertTypeBytes()));
}

Result<ContainerInfo> openContainer(const std::filesystem::path& dir) {
    std::error_code error;
    if (!std::filesystem::is_directory(dir, error)) {
        COLIBRI_TRY(checkReadable(dir));
        return Status(Code::BadInput, printable(dir.string()) + ": no such folder",
                      "A converted model is a folder with a model.json");
    }
    std::filesystem::path jsonPath = dir / kModelFile;
    if (!std::filesystem::exists(jsonPath, error)) {
        COLIBRI_TRY(checkReadable(dir));
        COLIBRI_TRY(checkReadable(jsonPath));
        return Status(Code::BadInput, printable(dir.string()) + ": no model.json in this folder",
                      "Convert a downloaded checkpoint first");
    }
    Result<std::string> text = readTextFile(jsonPath, kModelJsonLimit);
    if (!text) return text.status();
    Result<ContainerInfo> info = parseModelJson(*text, jsonPath.string());
    if (!info) return info.status();
    info->dir = dir;
    COLIBRI_TRY(checkSize(dir / kDenseFile, info->denseBytes));
    for (const ExpertLayer& e : info->expertLayers) {
        COLIBRI_TRY(checkSize(dir / e.file, e.recordBytes * info->config.numExperts));
    }
    info->hasTokenizer = std::filesystem::is_regular_file(dir / "tokenizer.json", error);
    info->hasTemplate = std::filesystem::is_regular_file(dir / "chat_template.jinja", error);
    return info;
}

Status verifyContainer(const ContainerInfo& info, const ProgressFn& progress,
                       const CancelFlag* cancel) {
    uint64_t total = uint64_t(info.expertBytes);
    for (const TensorInfo& t : info.tensors) total += uint64_t(t.bytes);
    Verifier verifier(total, progress, cancel);

    verifier.stage("Dense weights");
    Result<File> dense = File::open(info.dir / kDenseFile, File::Mode::Read);
    if (!dense) return dense.status();
    for (const TensorInfo& t : info.tensors) {
        COLIBRI_TRY(verifier.range(*dense, t.offset, t.bytes, t.hash, "tensor \"" + t.name + "\""));
    }
    size_t index = 0;
    for (const ExpertLayer& e : info.expertLayers) {
        verifier.stage("Experts, layer " + std::to_string(++index) + " of " +
                       std::to_string(info.expertLayers.size()));
        Result<File> file = File::open(info.dir / e.file, File::Mode::Read);
        if (!file) return file.status();
        for (size_t expert = 0; expert < e.hashes.size(); ++expert) {
            COLIBRI_TRY(verifier.range(
                *file, int64_t(expert) * e.recordBytes, e.recordBytes, e.hashes[expert],
                "layer " + std::to_string(e.layer) + ", expert " + std::to_string(expert)));
        }
    }
    return verifier.result(info.dir);
}

}  // namespace colibri
